"""A GLUE submission: predictions on hidden test sets, in the benchmark's file names and format.

The rules are those of gluebenchmark.com: one zip of eleven files at its top; each tab-separated
with the header ``index  prediction``; the index counts test rows from 0; classes by their names in
the data, scores of STS-B as numbers from 0 to 5.  Every file is held against them before anything
is written.
"""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline_lib.errors import DistilleryError
from pipeline_lib.evaluation.metrics import decide
from pipeline_lib.files import atomic_path
from pipeline_lib.params import Range, Task

HEADER = "index\tprediction"


@dataclass(frozen=True)
class Official:
    """One file of the benchmark: its rows, and the answers it takes, or the range of its scores."""

    rows: int
    answers: tuple[str, ...] = ("0", "1")
    scores: tuple[float, float] | None = None

    @property
    def constant(self) -> str:
        """An answer that is valid for every row."""
        return self.answers[0] if self.scores is None else format_score(sum(self.scores) / 2)


_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("contradiction", "entailment", "neutral")
FILES = {
    "AX.tsv": Official(1104, _INFERENCE),
    "CoLA.tsv": Official(1063),
    "MNLI-m.tsv": Official(9796, _INFERENCE),
    "MNLI-mm.tsv": Official(9847, _INFERENCE),
    "MRPC.tsv": Official(1725),
    "QNLI.tsv": Official(5463, _ENTAILMENT),
    "QQP.tsv": Official(390965),
    "RTE.tsv": Official(3000, _ENTAILMENT),
    "SST-2.tsv": Official(1821),
    "STS-B.tsv": Official(1379, (), (0.0, 5.0)),
    "WNLI.tsv": Official(146),
}
"""The eleven files that the benchmark takes."""


def answers(task: Task, outputs: np.ndarray) -> list[str]:
    """Return each row's answer as it is written: the raw value of its class, or its score.

    :param outputs: float, shape (rows, classes), or (rows, 1) of a regression.
    """
    found = decide(outputs)
    if task.is_regression:
        clipped = np.clip(found, task.labels.min, task.labels.max)
        return [format_score(score) for score in clipped.tolist()]
    written = [
        name if isinstance(meaning, Range) else meaning[0] for name, meaning in task.labels.items()
    ]
    return [written[number] for number in found]


def format_score(score: float) -> str:
    """Return a score with three decimals, as the benchmark's example has it."""
    return f"{score:.3f}"


def faults(name: str, given: Sequence[str]) -> list[str]:
    """Return what is wrong with the answers of one file; nothing if it keeps the rules."""
    official = FILES.get(name)
    if official is None:
        return [f"{name}: no file of the benchmark. Name one of {', '.join(FILES)}."]
    if len(given) != official.rows:
        return [
            f"{name}: {len(given):,} answers, the official test set has {official.rows:,} rows."
        ]
    for row, answer in enumerate(given):
        if official.scores is None and answer not in official.answers:
            known = ", ".join(official.answers)
            return [f"{name}: row {row}: answer {answer!r}; it takes {known}."]
        if official.scores is not None and not _within(answer, *official.scores):
            return [f"{name}: row {row}: score {answer!r} is no number from 0 to 5."]
    return []


def _within(answer: str, low: float, high: float) -> bool:
    try:
        return low <= float(answer) <= high
    except ValueError:
        return False


def write_submission(path: Path, files: Mapping[str, Sequence[str]], fill: bool) -> list[str]:
    """Write the zip and return the names of the files that were filled with a constant answer.

    :param files: file name to answers in the order of the test rows.
    :param fill: give official files that are missing a constant answer; the benchmark takes only
        complete submissions.
    :raises DistilleryError: naming every fault, if a rule is broken; then nothing is written.
    """
    missing = [name for name in FILES if name not in files]
    found = [fault for name, given in files.items() for fault in faults(name, given)]
    if missing and not fill:
        found.append(
            f"missing: {', '.join(missing)}. Add these tasks to params.yaml with `submission`, or "
            "fill them with a constant answer (--fill)."
        )
    if found:
        raise DistilleryError("\n".join(f"{path}: {fault}" for fault in found))
    constants = {name: [FILES[name].constant] * FILES[name].rows for name in missing}
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, given in sorted({**files, **constants}.items()):
            lines = [HEADER, *(f"{row}\t{answer}" for row, answer in enumerate(given))]
            # A fixed date: equal answers give equal bytes.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, "\n".join(lines) + "\n")
    return missing
