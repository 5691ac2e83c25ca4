"""A GLUE submission: predictions on hidden test sets, in the benchmark's file names and format.

The rules are those of gluebenchmark.com: one zip with eleven files at its top level; each
tab-separated with the header ``index  prediction``; the index counts test rows from 0; classes by
their names in the official data, scores of STS-B as numbers from 0 to 5.  Every file is checked
against them before anything is written, and ``distill check`` checks the tasks before any training.
"""

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.params import HubDataset, Params, Range, Task

HEADER = "index\tprediction"


@dataclass(frozen=True)
class Official:
    """One file of the benchmark: its rows, and its valid answers, or the range of its scores."""

    rows: int
    answers: tuple[str, ...] = ("0", "1")
    scores: tuple[float, float] | None = None

    @property
    def constant(self) -> str:
        """An answer that is valid for every row."""
        return self.answers[0] if self.scores is None else format_score(sum(self.scores) / 2)

    def answer(self, label: str, meaning: list[str] | Range) -> str | None:
        """Return how a class is written, or None if the file accepts neither form.

        It is written as its raw value in the official data, or, since the hub has numbers where the
        benchmark wants names, as the label's name in params.yaml.
        """
        raw_values = [] if isinstance(meaning, Range) else meaning
        return next((form for form in (*raw_values, label) if form in self.answers), None)


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
"""The eleven files of the benchmark."""


def answers(task: Task, name: str, outputs: np.ndarray) -> list[str]:
    """Return each row's answer as it is written into the official file ``name``.

    :param outputs: float, shape (rows, classes), or (rows, 1) for a regression.
    """
    problems = task_faults(task, name)
    if problems:
        raise PotstillError("\n".join(problems))
    decided = KINDS[task.kind].decide(outputs)
    if task.score_range:
        clipped = np.clip(decided, task.labels.min, task.labels.max)
        return [format_score(score) for score in clipped.tolist()]
    written = [FILES[name].answer(*label) for label in task.labels.items()]
    return [written[number] for number in decided]


def params_faults(params: Params) -> list[str]:
    """Return what is wrong with every task's ``submission``, before anything is trained."""
    problems = []
    tasks_of: dict[str, str] = {}
    for task, settings in params.tasks.items():
        for split, name in (settings.submission or {}).items():
            key = f"tasks.{task}.submission.{split}"
            problems += [f"{key}: {fault}" for fault in task_faults(settings, name)]
            if split not in _splits(settings):
                problems.append(f"{key}: no such split; the source names {_listed(_splits(settings))}.")
            if name in tasks_of:
                problems.append(f"{key}: {name} is the file of task {tasks_of[name]} too. Keep one.")
            tasks_of[name] = task
    return problems


def task_faults(task: Task, name: str) -> list[str]:
    """Return why the official file ``name`` rejects a task's answers; empty if it does not."""
    official = FILES.get(name)
    if official is None:
        return [f"{name}: no file of the benchmark. Name one of {_listed(FILES)}."]
    if official.scores is not None:
        return _score_faults(task, name, *official.scores)
    if task.score_range:
        return [f"{name} takes {_listed(official.answers)}, but the task is a regression."]
    written = {label: official.answer(label, meaning) for label, meaning in task.labels.items()}
    unknown = [label for label, answer in written.items() if answer is None]
    if unknown:
        return [
            f"{name} takes {_listed(official.answers)}, but neither the label {unknown[0]!r} nor any of its raw values "
            "is one of these. Give the label the benchmark's name in `labels`."
        ]
    if len(set(written.values())) < len(written):
        return [f"{name}: two labels are written as the same answer: {written}. Correct `labels`."]
    return []


def _score_faults(task: Task, name: str, low: float, high: float) -> list[str]:
    if task.score_range and low <= task.labels.min and task.labels.max <= high:
        return []
    return [f"{name} takes scores from {low:g} to {high:g}: make `labels` a range within these."]


def _splits(task: Task) -> list[str]:
    source = task.source
    named = list(source.splits if isinstance(source, HubDataset) else source.files)
    return [*named, "test"] if task.split is not None and task.split.test else named


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def format_score(score: float) -> str:
    """Return a score with three decimals, as the benchmark's example has it."""
    return f"{score:.3f}"


def faults(name: str, values: Sequence[str]) -> list[str]:
    """Return what is wrong with the answers of one file; empty if it follows the rules."""
    official = FILES.get(name)
    if official is None:
        return [f"{name}: no file of the benchmark. Name one of {_listed(FILES)}."]
    if len(values) != official.rows:
        return [f"{name}: {len(values):,} answers, the official test set has {official.rows:,} rows."]
    for row, answer in enumerate(values):
        if official.scores is None and answer not in official.answers:
            return [f"{name}: row {row}: answer {answer!r}; it takes {_listed(official.answers)}."]
        if official.scores is not None and not _within(answer, *official.scores):
            return [f"{name}: row {row}: score {answer!r} is not a number from 0 to 5."]
    return []


def _within(answer: str, low: float, high: float) -> bool:
    try:
        return low <= float(answer) <= high
    except ValueError:
        return False


def write_submission(path: Path, files: Mapping[str, Sequence[str]], fill: bool) -> list[str]:
    """Write the zip and return the names of the files that were filled with a constant answer.

    :param files: maps file names to answers in the order of the test rows.
    :param fill: fill missing official files with a constant answer; the benchmark only accepts complete submissions.
    """
    missing = [name for name in FILES if name not in files]
    problems = [fault for name, values in files.items() for fault in faults(name, values)]
    if missing and not fill:
        problems.append(
            f"missing: {', '.join(missing)}. Add these tasks to params.yaml with `submission`, or "
            "fill them with a constant answer (--fill)."
        )
    if problems:
        raise PotstillError("\n".join(f"{path}: {fault}" for fault in problems))
    constants = {name: [FILES[name].constant] * FILES[name].rows for name in missing}
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, values in sorted({**files, **constants}.items()):
            lines = [HEADER, *(f"{row}\t{answer}" for row, answer in enumerate(values))]
            # A fixed date: equal answers give equal bytes.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, "\n".join(lines) + "\n")
    return missing
