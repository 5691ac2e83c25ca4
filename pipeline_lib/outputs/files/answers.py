"""Answers of a teacher that is not run here, looked up by the text they answer.

They are read from files into one table, by content key: a hash of the text as the teacher read it.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import read_record, write_json
from pipeline_lib.outputs.files.answer_files import Given, read_answers
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
from pipeline_lib.outputs.files.content_keys import content_keys
from pipeline_lib.outputs.health import MAX_ROWS, check_outputs
from pipeline_lib.params import AnswerFiles, Task
from pipeline_lib.shards.columns import list_column, matrix
from pipeline_lib.shards.shard_sets import read_shard, write_shard

TABLE, RECORD = "answers.arrow", "answers.json"
"""A teacher's answers by content key, sorted; and their metadata."""
REASONS = 10
"""How many of the most frequent reasons for no answer to show: each row may have its own."""


@dataclass
class Answers:
    """A teacher's answers by content key, in the order of the keys.

    :ivar keys: uint64 (rows,), unique; :ivar logits: float32 (rows, classes), or (rows, 1).
    :ivar weights: float32 (rows,); None: all rows count equally.
    :ivar counts: of the files' rows; :ivar errors: how often each reason for no answer was given.
    :ivar rows: where each was read, int64 (rows, 2): the number of its file, and its row there.
        Not stored.
    """

    keys: np.ndarray
    logits: np.ndarray
    weights: np.ndarray | None
    provenance: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    rows: np.ndarray | None = None

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the index of each key's answer, int64 (rows,); -1 where there is none."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)

    def are_few(self) -> bool:
        """Whether fewer than half of the answers are distinct, as with bare labels.

        Then a sorted set, or a rare class, gives many consecutive rows the same one.
        """
        chosen = self.logits[:: -(-len(self.logits) // MAX_ROWS) or 1]
        return 2 * len(np.unique(chosen, axis=0)) < len(chosen)

    def write(self, folder: Path, mask: str) -> None:
        """Write the answers and their metadata."""
        columns = {"key": pa.array(self.keys), "logits": list_column(self.logits)}
        if self.weights is not None:
            columns["weight"] = pa.array(self.weights)
        write_shard(folder / TABLE, pa.table(columns))
        metadata = {"mask": mask, "provenance": self.provenance}
        metadata |= {"counts": self.counts, "errors": self.errors}
        write_json(folder / RECORD, metadata)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what :meth:`write` wrote."""
        table, metadata = read_shard(folder / TABLE), read_record(folder / RECORD, "provenance")
        weights = table["weight"].to_numpy() if "weight" in table.column_names else None
        return cls(
            *(table["key"].to_numpy(), matrix(table["logits"]), weights),
            *(metadata["provenance"], metadata["counts"], metadata["errors"]),
        )


def read_files(files: Sequence[Path], settings: AnswerFiles, task: Task) -> Answers:
    """Read a task's answers from its files; there may be none.

    Rows with an ``error``, and those whose probabilities cover too little, have no answer.  A text
    that is repeated with the same answer counts once.

    :raises DistilleryError: naming file and row, for an unknown or missing class, numbers that are
        not probabilities, or a text with two answers.
    """
    reader = _Reader(settings, task)
    for path in files:
        reader.read(path)
    return reader.answers()


def gather(files: Sequence[Path], settings: AnswerFiles, task: Task) -> Answers:
    """Read a task's answers as :func:`read_files` does, and check that they are plausible.

    :raises DistilleryError: if there are none, or all are the same; and see :func:`read_files`.
    """
    answers = read_files(files, settings, task)
    where = ", ".join(path.name for path in files)
    if not len(answers.keys):
        reasons = "; ".join(f"{reason} ({count:,})" for reason, count in frequent(answers.errors))
        raise DistilleryError(f"{where}: no answers. {reasons or 'Put rows into the file.'}")
    # Bare labels give one output per class, and probabilities may have few digits.
    remedy = "Nothing was stored: have the teacher answer again, and put its file here."
    check_outputs(answers.logits, answers.keys, where, remedy, few=True)
    return answers


def frequent(errors: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the most frequent reasons for no answer with their counts, and the rest as one."""
    often = sorted(errors.items(), key=lambda item: -item[1])
    rest = often[REASONS:]
    others = [(f"{len(rest):,} other reasons", sum(count for _, count in rest))]
    return often[:REASONS] + others * bool(rest)


class _Reader:
    """Collects the rows of files, as numbers only: there may be millions."""

    def __init__(self, settings: AnswerFiles, task: Task) -> None:
        self.settings, self.task = settings, task
        self.keys, self.numbers = array("Q"), array("q")
        self.logits, self.weights = array("f"), array("d")
        self.files: list[tuple[int, Path]] = []
        self.provenance = dict(settings.provenance)
        self.counts = dict.fromkeys(("rows", "answered", "repeated", "errors", "low_coverage"), 0)
        self.errors: dict[str, int] = {}
        self.weighted = False

    def read(self, path: Path) -> None:
        asked = self.task.score_range or self.task.label_names
        described, rows = read_answers(path, self.settings.format, asked)
        self.files.append((len(self.keys), path))
        self.provenance = {**described.provenance, **self.provenance}
        classes = self.settings.classes or described.classes
        order = None if classes is None else class_order(classes, self.task, str(path))
        for row in rows:
            self.counts["rows"] += 1
            where = f"{path}: row {row.number}"
            logits = self._logits(row, classes, order, where)
            if logits is not None:
                self._add(self._key(row, where), logits, row)

    def _key(self, row: Given, where: str) -> int:
        if row.texts is None:
            return row.key
        if len(row.texts) != len(self.task.text):
            raise DistilleryError(
                f"{where}: {len(row.texts)} texts, but the task reads {len(self.task.text)} "
                f"({', '.join(self.task.text)}). A pair has `text` and `text_pair`."
            )
        return int(content_keys([[text] for text in row.texts])[0])

    def _logits(
        self,
        row: Given,
        classes: Sequence[str] | None,
        order: np.ndarray | None,
        where: str,
    ) -> np.ndarray | None:
        """Return a row's logits; None if it has no answer, which is counted."""
        if row.error is not None:
            self.counts["errors"] += 1
            self.errors[row.error] = self.errors.get(row.error, 0) + 1
            return None
        if self.task.is_regression:
            return self._covered(score_of(row, self.task, where), row.coverage)
        if row.kind == "label":
            number = class_number(row.value, classes, self.task, where)
            return logits_of(
                smoothed(number, len(self.task.label_names), self.settings), self.settings
            )
        values, named = in_order(row.value, order, self.task, where)
        if row.kind == "logits":
            if not named.all():
                lacking = missing_classes(named, self.task)
                raise DistilleryError(f"{where}: no logit for {lacking}. Give one for each class.")
            return values.astype(np.float32)
        probs, coverage = completed(values, named, row.coverage, where)
        return self._covered(logits_of(probs, self.settings), coverage)

    def _covered(self, logits: np.ndarray, coverage: float | None) -> np.ndarray | None:
        if coverage is not None and coverage < self.settings.min_coverage:
            self.counts["low_coverage"] += 1
            return None
        return logits

    def _add(self, key: int, logits: np.ndarray, row: Given) -> None:
        self.weighted |= row.weight is not None
        self.keys.append(key)
        self.numbers.append(row.number)
        self.logits.frombytes(logits.tobytes())
        self.weights.append(1.0 if row.weight is None else row.weight)

    def answers(self) -> Answers:
        """Return the answers, one per text.

        :raises DistilleryError: if a text has two.
        """
        keys, weights = np.asarray(self.keys), np.asarray(self.weights)
        logits = np.asarray(self.logits).reshape(-1, len(self.task.label_names))
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        again = np.concatenate([[False], ordered[1:] == ordered[:-1]])[: len(keys)]
        first = order[~again][np.cumsum(~again) - 1]
        rows, earlier = order[again], first[again]
        same = (logits[rows] == logits[earlier]).all(axis=1) & (weights[rows] == weights[earlier])
        if not same.all():
            row, other = min(zip(rows[~same].tolist(), earlier[~same].tolist(), strict=True))
            raise DistilleryError(
                f"{self._row(row)}: the same text as {self._row(other)}, with another answer. Keep "
                "one of the two rows."
            )
        kept = order[~again]
        self.counts["answered"], self.counts["repeated"] = len(kept), len(rows)
        kept_weights = weights[kept].astype(np.float32) if self.weighted else None
        files = np.searchsorted([start for start, _ in self.files], kept, side="right") - 1
        read = np.stack([files, np.asarray(self.numbers)[kept]], axis=1)
        metadata = self.provenance, self.counts, self.errors
        return Answers(keys[kept], logits[kept], kept_weights, *metadata, rows=read)

    def _row(self, index: int) -> str:
        file = [path for start, path in self.files if start <= index][-1]
        return f"{file}: row {self.numbers[index]}"
