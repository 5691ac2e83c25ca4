"""What storing sentence vectors in fewer bytes costs: in cosine, encoder loss and task score.

    python benchmarks/storage.py --encoder sra --task sst2 --row bilstm_sra

Run it in a workspace where `dvc repro` has finished `pretrain`, and `train` of the task.  The vectors of the
encoder's corpus are computed in each format and an encoder is trained on each; all are evaluated against the float32
vectors of held-out sentences, and on dev with the row that starts from the encoder.  It writes results/storage.json.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from harness import RESULTS, Out, facts, say, table, write_results

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.outputs.vectors import VectorPass
from pipeline_lib.params import load_params
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.training_records import EncoderRecord
from pipeline_lib.shards.vectors import unit
from pipeline_lib.training.distillation.encoders import EncoderTraining, held_back_loss, mean_of
from pipeline_lib.training.distillation.general import encoder_row
from pipeline_lib.training.distillation.plans import make_plan
from pipeline_lib.training.distillation.regressions import student_row
from pipeline_lib.training.search import train_rows

DATA = Path("data")
FORMATS = ("float32", "float16")


def main(
    encoder: Annotated[str, typer.Option(help="A key of `encoders` in params.yaml.")] = "sra",
    task: Annotated[str | None, typer.Option(help="A task to train on, starting from the encoder.")] = None,
    row: Annotated[str, typer.Option(help="The task's row.")] = "bilstm_sra",
    out: Out = RESULTS,
) -> None:
    """Train one encoder on vectors of each format."""
    params, start = load_params(), facts(("torch", "transformers"), usable_cores(), 1)
    shared = Layout(DATA)
    plain = VectorPass.of(params, shared.model(params.sentence_vectors.model))
    formats: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for storage in FORMATS:
            layout = Layout(_data(Path(folder) / storage))
            encoder_of = encoder_row(params, encoder, layout, plain.device)
            _compute(encoder_of.spec(0, encoder_of.rates[0]), replace(plain, storage=storage))
            engine = make_engine(params, plain.device)
            [(training, record)] = train_rows([encoder_of], engine)[encoder].trainings.values()
            exact = Layout(Path(folder) / "float32")
            formats[storage] = _judge(training, replace(training, layout=exact), record)
            if task is not None:
                formats[storage]["dev"] = _tune(training, task, row)
            say(f"{storage}: {formats[storage]}")
    results = {"facts": start, "encoder": encoder, "formats": formats}
    results |= {"task": task, "row": row, "seeds": params.seeds} if task else {}
    write_results("storage", results, _lines(results, params.sentence_vectors.pooling), out)


def _data(folder: Path) -> Path:
    """Return a folder of artifacts with everything but the vectors."""
    folder.mkdir()
    for path in DATA.iterdir():
        if path.name not in ("vectors", "encoders"):
            (folder / path.name).symlink_to(path.resolve())
    return folder


def _compute(training: EncoderTraining, vector_pass: VectorPass) -> None:
    layout, engine = training.layout, make_engine(training.params, vector_pass.device)
    sets = {layout.wikipedia_vectors(s): layout.wikipedia(s) for s in ("train", "validation")}
    joined = [(task, recipe) for task, recipe in training.row.tasks.items() if recipe]
    sets |= {layout.task_vectors(*pair): layout.transfer(*pair) for pair in joined}
    for vectors, inputs in sets.items():
        run_pass(vector_pass, ShardSet.open(inputs), vectors, engine)


def _judge(training: EncoderTraining, exact: EncoderTraining, record: EncoderRecord) -> dict[str, Any]:
    vectors, stored = (run.validation.vectors() for run in (exact, training))
    rows = np.arange(len(vectors))
    cosines = (unit(vectors[rows]) * unit(stored[rows])).sum(1)
    held_back = ShardSet.open(training.layout.wikipedia("validation"))
    answers = load_encoder(training.result.folder).encode(held_back.to_table()["text"].to_pylist())
    mean = mean_of(exact.train.vectors(), lambda rows: rows) if training.row.centre else 0.0
    manifests = [outputs.manifest for _, outputs, _ in training.train.sets]
    size = sum(shard.bytes for manifest in manifests for shard in manifest.shards)
    return {
        "bytes_per_sentence": round(size / sum(m.rows for m in manifests), 1),
        "least_cosine": round(float(cosines.min()), 6),
        "loss": round(held_back_loss(answers, vectors, mean), 6),
        "sentences": record.sentences,
    }


def _tune(training: EncoderTraining, task: str, row: str) -> list[float]:
    """Return the dev scores of the row trained from this encoder, one per seed."""
    params, layout = training.params, training.layout
    training.result.link_into(layout.encoder(training.name))
    plan = make_plan(params, task, row, layout)
    sets = layout.vocabulary(task), layout.split(task, "dev")
    student = student_row(plan, *sets, params.seeds, training.device)
    records = train_rows([student], make_engine(params, training.device))[row].records
    return [round(record.best_dev, 6) for record in records]


def _lines(results: dict[str, Any], pooling: str) -> list[str]:
    formats = results["formats"]
    headings = ["storage", "bytes a sentence", "lowest cosine with float32", "loss"]
    rows = [
        [name, f"{f['bytes_per_sentence']:,.0f}", f"{f['least_cosine']:.6f}", f"{f['loss']:.4f}"]
        for name, f in formats.items()
    ]
    note = []
    if "task" in results:
        note = [f"\nDev: mean ± standard deviation over seeds {results['seeds']}."]
        headings.append(f"{results['task']} {results['row']}, dev")
        for line, f in zip(rows, formats.values(), strict=True):
            line.append(f"{100 * np.mean(f['dev']):.1f} ± {100 * np.std(f['dev'], ddof=1):.1f}")
    return [
        "# Sentence vectors in fewer bytes",
        "",
        f"Encoder `{results['encoder']}`, {formats['float32']['sentences']:,} sentences, "
        f"{pooling}; loss ½(1 − cos) on held-out sentences, against their float32 vectors.",
        "",
        *table(headings, rows),
        *note,
    ]


if __name__ == "__main__":
    typer.run(main)
