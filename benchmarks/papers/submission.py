"""A GLUE submission: one system's answers on the hidden test sets, as the zip that gluebenchmark.com takes.

    python benchmarks/papers/submission.py bilstm_kd_mask_pos bilstm_kd_mask_pos_256    # after dvc repro

For a task that lacks the first row, the next is taken; of its seeds, the best on dev. A file without a task, such as
AX.tsv, gets a constant answer: the benchmark takes all eleven or none.
"""

import zipfile
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, Range, load_params
from pipeline_lib.results.diagrams import read_predictions
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.shards.columns import matrix

BINARY, PAIRS = ("0", "1"), ("entailment", "not_entailment")
INFERENCE = ("contradiction", "entailment", "neutral")
FILES = {
    "AX.tsv": ("", "", 1104, INFERENCE),
    "CoLA.tsv": ("cola", "test", 1063, BINARY),
    "MNLI-m.tsv": ("mnli", "test", 9796, INFERENCE),
    "MNLI-mm.tsv": ("mnli", "test_mismatched", 9847, INFERENCE),
    "MRPC.tsv": ("mrpc", "test", 1725, BINARY),
    "QNLI.tsv": ("qnli", "test", 5463, PAIRS),
    "QQP.tsv": ("qqp", "test", 390965, BINARY),
    "RTE.tsv": ("rte", "test", 3000, PAIRS),
    "SST-2.tsv": ("sst2", "test", 1821, BINARY),
    "STS-B.tsv": ("stsb", "test", 1379, ("2.500",)),
    "WNLI.tsv": ("wnli", "test", 146, BINARY),
}
"""Task, split, rows and valid answers of each official file; of a score, one in the middle."""


def answers(params: Params, task: str, split: str, valid: tuple[str, ...], systems: list[str]) -> list[str]:
    """Return a task's answers as the benchmark writes them: classes by name or number, scores from 0 to 5."""
    settings, layout = params.tasks[task], Layout()
    system = next((name for name in systems if name in params.methods_of(task)), None)
    if system is None:
        raise PotstillError(f"{task}: none of {', '.join(systems)}. Name one of {', '.join(params.methods_of(task))}.")
    scores = TaskScores.read(layout.scores(task))
    by_seed = scores.methods[system].scores["dev"][scores.metric].by_seed
    rows = read_predictions(layout, task, split)
    decided = KINDS[settings.kind].decide(matrix(rows[f"{system}-{max(by_seed, key=by_seed.__getitem__)}"]))
    if settings.score_range:
        return [f"{score:.3f}" for score in np.clip(decided, settings.labels.min, settings.labels.max)]
    # As in the official data or, where the hub has numbers for names, as in params.yaml.
    forms = [[*([] if isinstance(raw, Range) else raw), name] for name, raw in settings.labels.items()]
    written = [next((form for form in each if form in valid), each[-1]) for each in forms]
    return [written[number] for number in decided]


def main(
    systems: Annotated[list[str], typer.Argument(help="Rows of params.yaml.")],
    out: Annotated[Path, typer.Option(help="The zip to write.")] = Path("submission.zip"),
) -> None:
    """Write the zip, or name the file that the benchmark would refuse."""
    params = load_params()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (task, split, count, valid) in FILES.items():
            is_there = task in params.tasks
            written = answers(params, task, split, valid, systems) if is_there else [valid[0]] * count
            bad = (
                {*written} - {*valid}
                if task != "stsb"
                else {answer for answer in written if not 0 <= float(answer) <= 5}
            )
            if len(written) != count or bad:
                out.unlink()
                raise PotstillError(f"{name}: {len(written):,} answers for {count:,} rows; not valid: {bad or 'none'}.")
            lines = ["index\tprediction", *(f"{row}\t{answer}" for row, answer in enumerate(written))]
            archive.writestr(name, "\n".join(lines) + "\n")
            typer.echo(f"{name}: {count:,} {'answers' if is_there else 'constant answers'}")


if __name__ == "__main__":
    typer.run(main)
