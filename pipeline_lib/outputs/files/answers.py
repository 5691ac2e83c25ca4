"""A teacher's answers in files, as logits in the order of the task's classes, or as scores."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.probabilities import softmax
from pipeline_lib.outputs.files.answer_files import read_answers
from pipeline_lib.outputs.files.answer_logits import (
    class_number,
    class_order,
    completed,
    in_order,
    logits_of,
    missing_classes,
    score_of,
    smoothed,
)
from pipeline_lib.outputs.files.gathering import Values
from pipeline_lib.outputs.files.given_rows import Given, GivenRows, parts_of
from pipeline_lib.outputs.files.keyed_table import KeyedTable
from pipeline_lib.outputs.files.teacher_rows import Described
from pipeline_lib.params import AnswerFiles, Task


class Answers(Values):
    """A task's answers."""

    name = "answers"
    counts: ClassVar[tuple[str, ...]] = (*Values.counts, "low_coverage")
    # Bare labels give one output per class, and probabilities may have few digits.
    few = True
    another = "answer"
    again = "have the teacher answer again, and put its file here."

    def __init__(self, settings: AnswerFiles, task: Task) -> None:
        self.settings, self.task = settings, task

    def read(self, path: Path) -> tuple[Described, Iterator[GivenRows]]:
        """Read a file; see :meth:`Values.read`.

        :raises DistilleryError: also for an unknown or missing class, and numbers that are not
            probabilities.
        """
        asked = self.task.score_range or self.task.label_names
        described, rows = read_answers(path, self.settings.format, asked)
        classes = self.settings.classes or described.classes
        order = None if classes is None else class_order(classes, self.task, str(path))

        def value_of(row: Given, where: str) -> np.ndarray | None:
            logits, coverage = self._logits(row, classes, order, where)
            if coverage is not None and coverage < self.settings.min_coverage:
                return None
            if row.texts is not None and len(row.texts) != len(self.task.text):
                raise DistilleryError(
                    f"{where}: {len(row.texts)} texts, but the task reads {len(self.task.text)} "
                    f"({', '.join(self.task.text)}). A pair has `text` and `text_pair`."
                )
            return logits

        return described, parts_of(path, rows, value_of)

    def _logits(
        self, row: Given, classes: list[str] | None, order: np.ndarray | None, where: str
    ) -> tuple[np.ndarray, float | None]:
        """Return a row's logits, float32 (classes,), and the coverage that has to suffice."""
        if self.task.is_regression:
            return score_of(row, self.task, where), row.coverage
        if row.kind == "label":
            number = class_number(row.value, classes, self.task, where)
            probs = smoothed(number, len(self.task.label_names), self.settings)
            return logits_of(probs, self.settings), None
        values, named = in_order(row.value, order, self.task, where)
        if row.kind == "logits":
            if not named.all():
                lacking = missing_classes(named, self.task)
                raise DistilleryError(f"{where}: no logit for {lacking}. Give one for each class.")
            return values.astype(np.float32), None
        probs, coverage = completed(values, named, row.coverage, where)
        return logits_of(probs, self.settings), coverage

    def same(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """Return which answers are equal, bool (rows,)."""
        return (one == two).all(axis=1)

    def facts(self, table: KeyedTable) -> list[str]:
        """Return the distribution of the answers and weights."""
        logits = table[:]
        if self.task.is_regression:
            lines = [f"scores {logits.min():g} to {logits.max():g}, mean {logits.mean():.3f}"]
        else:
            counts = np.bincount(logits.argmax(1), minlength=len(self.task.label_names))
            each = zip(self.task.label_names, counts.tolist(), strict=True)
            lines = [f"classes: {', '.join(f'{name} {count:,}' for name, count in each)}"]
            sure = softmax(logits).max(1)
            lines.append(f"probability of the class chosen: mean {sure.mean():.3f}")
        if table.weights is not None:
            lines.append(f"weights {table.weights.min():g} to {table.weights.max():g}")
        return lines
