"""Answers of a teacher that is no model here, found by what they answer to.

They are read from files into one table, by content key: a hash of the text as the teacher read it.
The pass then finds each row's answer by its key, never by its place.  Probabilities become logits
by the logarithm (Ba and Caruana 2014, section 2.2), less their mean over classes, as the softmax
does not know the difference (the centred log-ratio, Aitchison 1982).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import atomic_path, read_record, sha256_file, write_json
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.probabilities import answered
from pipeline_lib.engine.passes import Output, ShardPass
from pipeline_lib.params import AnswerFiles, Task
from pipeline_lib.storage.columns import column_suffixes, list_column, matrix
from pipeline_lib.storage.shards import ShardSet, read_shard, write_shard
from pipeline_lib.teachers.answer_files import Given, Numbers, read_answers
from pipeline_lib.teachers.health import check_outputs
from pipeline_lib.text.masking import signed_sentences

TABLE, RECORD = "answers.arrow", "answers.json"
"""A teacher's answers by content key, sorted; and what is said of them."""
UNANSWERED = "unanswered.jsonl"
"""Beside outputs: the rows of the set that have no answer."""
SEPARATOR = "\x1f"
"""Stands between the two sentences of a pair in what the content key is of."""
EXCESS = 0.01
"""By how much probabilities may add up to more than 1: they are written with few digits."""


def content_keys(columns: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the content key of each text or pair, uint64 (rows,); spaces at the ends do not count.

    :param columns: the first sentences and, of pairs, the second ones.
    """
    stripped = ([text.strip() for text in column] for column in columns)
    return string_keys([SEPARATOR.join(parts) for parts in zip(*stripped, strict=True)])


def row_keys(rows: pa.Table, mask: str) -> np.ndarray:
    """Return the content key of each row of a shard, uint64 (rows,).

    :param mask: what stands for a masked word.
    """
    return content_keys(read_texts(rows, mask))


def read_texts(rows: pa.Table, mask: str) -> list[list[str]]:
    """Return a shard's texts as the teacher reads them, by side."""
    return [signed_sentences(rows, side, lambda: mask) for side in column_suffixes(rows)]


@dataclass
class Answers:
    """A teacher's answers by content key, in the order of the keys.

    :ivar keys: uint64 (rows,), none twice; :ivar logits: float32 (rows, classes), or (rows, 1).
    :ivar weights: float32 (rows,), or None: all count alike.
    :ivar counts: what the files held; :ivar errors: how often each reason for no answer was given.
    """

    keys: np.ndarray
    logits: np.ndarray
    weights: np.ndarray | None
    provenance: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the place of each key's answer, int64 (rows,); -1 where there is none."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)

    def write(self, folder: Path, mask: str) -> None:
        """Write the answers, and what is said of them."""
        columns = {"key": pa.array(self.keys), "logits": list_column(self.logits)}
        if self.weights is not None:
            columns["weight"] = pa.array(self.weights)
        write_shard(folder / TABLE, pa.table(columns))
        said = {"mask": mask, "provenance": self.provenance}
        said |= {"counts": self.counts, "errors": self.errors}
        write_json(folder / RECORD, said)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what :meth:`write` wrote."""
        table, said = read_shard(folder / TABLE), read_record(folder / RECORD, "provenance")
        weights = table["weight"].to_numpy() if "weight" in table.column_names else None
        return cls(
            *(table["key"].to_numpy(), matrix(table["logits"]), weights),
            *(said["provenance"], said["counts"], said["errors"]),
        )


def read_files(files: Sequence[Path], settings: AnswerFiles, task: Task) -> Answers:
    """Read a task's answers out of its files; there may be none.

    Rows with an ``error``, and those whose probabilities cover too little, have no answer.  A text
    that stands there again with the same answer counts once.

    :raises DistilleryError: naming file and row: of a class that the task does not have, or lacks;
        numbers that are no probabilities; or a text with two answers.
    """
    reader = _Reader(settings, task)
    for path in files:
        reader.read(path)
    return reader.answers()


def gather(files: Sequence[Path], settings: AnswerFiles, task: Task) -> Answers:
    """Read a task's answers as :func:`read_files` does, and check that they can be right.

    :raises DistilleryError: if there are none, or all are alike; and see :func:`read_files`.
    """
    answers = read_files(files, settings, task)
    where = ", ".join(path.name for path in files)
    if not len(answers.keys):
        reasons = "; ".join(f"{reason} ({count:,})" for reason, count in answers.errors.items())
        raise DistilleryError(f"{where}: no answers. {reasons or 'Put rows into the file.'}")
    # Bare labels come to one output per class, and probabilities may have few digits.
    remedy = "Nothing was stored: have the teacher answer again, and put its file here."
    check_outputs(answers.logits, answers.keys, where, remedy, few=True)
    return answers


class _Reader:
    """Gathers rows of files, and where each came from."""

    def __init__(self, settings: AnswerFiles, task: Task) -> None:
        self.settings, self.task = settings, task
        self.places: dict[int, int] = {}
        self.logits: list[np.ndarray] = []
        self.weights: list[float] = []
        self.rows: list[str] = []
        self.provenance = dict(settings.provenance)
        self.counts = dict.fromkeys(("rows", "answered", "repeated", "errors", "low_coverage"), 0)
        self.errors: dict[str, int] = {}
        self.weighted = False

    def read(self, path: Path) -> None:
        described, rows = read_answers(path, self.settings.format, self.task.label_names)
        self.provenance = {**described.provenance, **self.provenance}
        classes = self.settings.classes or described.classes
        order = None if classes is None else class_order(classes, self.task, str(path))
        for given in rows:
            self.counts["rows"] += 1
            where = f"{path}: row {given.number}"
            found = self._logits(given, classes, order, where)
            if found is not None:
                self._add(self._key(given, where), found, given, where)

    def _key(self, given: Given, where: str) -> int:
        if given.texts is None:
            return given.key
        if len(given.texts) != len(self.task.text):
            raise DistilleryError(
                f"{where}: {len(given.texts)} texts, and the task reads {len(self.task.text)} "
                f"({', '.join(self.task.text)}). A pair has `text` and `text_pair`."
            )
        return int(content_keys([[text] for text in given.texts])[0])

    def _logits(
        self,
        given: Given,
        classes: Sequence[str] | None,
        order: np.ndarray | None,
        where: str,
    ) -> np.ndarray | None:
        """Return a row's logits; None where it has no answer, which is counted."""
        if given.error is not None:
            self.counts["errors"] += 1
            self.errors[given.error] = self.errors.get(given.error, 0) + 1
            return None
        if self.task.is_regression:
            return _score(given, self.task, where)
        if given.kind == "label":
            own = class_number(given.value, classes, self.task, where)
            return logits_of(
                smoothed(own, len(self.task.label_names), self.settings), self.settings
            )
        values, named = _in_order(given.value, order, self.task, where)
        if given.kind == "logits":
            if not named.all():
                raise DistilleryError(
                    f"{where}: no logit for {_missing(named, self.task)}. Give one for each class."
                )
            return values.astype(np.float32)
        probs, coverage = completed(values, named, given.coverage, where)
        if coverage < self.settings.min_coverage:
            self.counts["low_coverage"] += 1
            return None
        return logits_of(probs, self.settings)

    def _add(self, key: int, logits: np.ndarray, given: Given, where: str) -> None:
        weight = 1.0 if given.weight is None else given.weight
        self.weighted |= given.weight is not None
        place = self.places.setdefault(key, len(self.logits))
        if place == len(self.logits):
            self.logits.append(logits)
            self.weights.append(weight)
            self.rows.append(where)
        elif np.array_equal(self.logits[place], logits) and self.weights[place] == weight:
            self.counts["repeated"] += 1
        else:
            text = "" if given.texts is None else f" {' / '.join(given.texts)!r:.80}"
            raise DistilleryError(
                f"{where}: the same text as {self.rows[place]}, with another answer:{text}. Keep "
                "one of the two rows."
            )

    def answers(self) -> Answers:
        self.counts["answered"] = len(self.logits)
        width = len(self.task.label_names)
        logits = np.array(self.logits, np.float32).reshape(-1, width)
        keys = np.fromiter(self.places, np.uint64, len(self.places))
        order = np.argsort(keys)
        weights = np.array(self.weights, np.float32)[order] if self.weighted else None
        said = self.provenance, self.counts, self.errors
        return Answers(keys[order], logits[order], weights, *said)


def class_order(classes: Sequence[str], task: Task, where: str) -> np.ndarray:
    """Return which of a file's classes is each of the task's, int64 (classes,).

    Case and spaces at the ends do not count.

    :raises DistilleryError: if one is missing, unknown, or stands there twice.
    """
    given, wanted = ([_plain(name) for name in names] for names in (classes, task.label_names))
    if task.is_regression:
        return np.zeros(1, np.int64)
    for name, own in zip(classes, given, strict=True):
        if own not in wanted:
            raise _unknown(name, task, where)
        if given.count(own) > 1:
            raise DistilleryError(f"{where}: class {name!r} stands there twice. Name each once.")
    missing = [n for n, own in zip(task.label_names, wanted, strict=True) if own not in given]
    if missing:
        raise DistilleryError(
            f"{where}: class {missing[0]!r} is missing among {', '.join(classes)}. Name every "
            "class of the task's `labels`."
        )
    return np.array([given.index(own) for own in wanted])


def class_number(value: Any, classes: Sequence[str] | None, task: Task, where: str) -> int:
    """Return the number of a label: a class's name, or its place in the file's classes.

    :raises DistilleryError: if there is none.
    """
    names = [_plain(name) for name in task.label_names]
    if isinstance(value, str) and _plain(value) in names:
        return names.index(_plain(value))
    place = float(value) if _is_number(value) else None
    if classes is None or place is None:
        remedy = " A number needs `classes`, whose place it is." if place is not None else ""
        raise DistilleryError(f"{_unknown(value, task, where)}{remedy}")
    if place not in range(len(classes)):
        raise DistilleryError(
            f"{where}: label {value} is no place in the classes {', '.join(classes)}, which are "
            "numbered from 0. Correct it."
        )
    return names.index(_plain(classes[int(place)]))


def completed(
    values: np.ndarray, named: np.ndarray, coverage: float | None, where: str
) -> tuple[np.ndarray, float]:
    """Return a whole distribution, float64 (classes,), and how much of it went to classes.

    What the classes that are named leave of 1 is spread evenly over the others; where all are
    named, it went to no class, and they are brought to 1.

    :param values: probabilities, 0 where none is named; :param named: which are, bool (classes,).
    :param coverage: of the classes named together; None: they add up to it.
    :raises DistilleryError: if they are no probabilities.
    """
    total = float(values.sum())
    if (values < 0).any() or total > 1.0 + EXCESS:
        raise DistilleryError(
            f"{where}: {values[named].round(4).tolist()} are no probabilities (from 0 to 1, "
            "together at most 1). Give `logits`, or correct them."
        )
    covered = min(1.0, total) if coverage is None else coverage
    if not total:
        return np.full(len(values), 1.0 / len(values)), 0.0
    if named.all():
        return values / total, covered
    others = (1.0 - covered) / (~named).sum()
    # Unless it is said, nothing went anywhere else: {spam: 0.1} is ham for the rest.
    return np.where(named, values / total * covered, others), 1.0 if coverage is None else covered


def smoothed(number: int, classes: int, settings: AnswerFiles) -> np.ndarray:
    """Return the distribution of a bare label (Szegedy et al. 2016, section 7), (classes,)."""
    share = settings.smoothing
    return (1.0 - share) * np.eye(classes)[number] + share / classes


def logits_of(probs: np.ndarray, settings: AnswerFiles) -> np.ndarray:
    """Return logarithms of probabilities, none below the floor, less their mean: (classes,)."""
    logs = np.log(np.maximum(probs, settings.floor))
    return (logs - logs.mean()).astype(np.float32)


def _score(given: Given, task: Task, where: str) -> np.ndarray:
    value = given.value if given.kind == "label" else None
    if given.kind == "logits" and len(given.value) == 1:
        [value] = given.value.values() if isinstance(given.value, Mapping) else given.value
    if not _is_number(value):
        raise DistilleryError(
            f"{where}: {task.label_names[0]} is a score, and this row has {given.kind} "
            f"{given.value!r:.40}. Give one number in `label` or `logits`."
        )
    return np.array([value], np.float32)


def _in_order(
    value: Numbers, order: np.ndarray | None, task: Task, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return a row's numbers in the order of the task's classes, and which classes have one."""
    classes = len(task.label_names)
    if isinstance(value, list):
        if order is None:
            raise DistilleryError(
                f"{where}: a list of numbers, and nothing says which class is which. Name the "
                "`classes` in the file's metadata or in the teacher's row of params.yaml."
            )
        if len(value) != classes:
            raise DistilleryError(
                f"{where}: {len(value)} numbers for the {classes} classes "
                f"{', '.join(task.label_names)}. Give one for each."
            )
        return np.array(value, np.float64)[order], np.ones(classes, bool)
    names = [_plain(name) for name in task.label_names]
    values, named = np.zeros(classes), np.zeros(classes, bool)
    for name, number in value.items():
        if _plain(name) not in names:
            raise _unknown(name, task, where)
        place = names.index(_plain(name))
        values[place], named[place] = values[place] + number, True
    return values, named


def _missing(named: np.ndarray, task: Task) -> str:
    return ", ".join(np.array(task.label_names)[~named])


def _unknown(name: Any, task: Task, where: str) -> DistilleryError:
    return DistilleryError(
        f"{where}: class {name!r} is unknown; the task's are {', '.join(task.label_names)}. Name "
        "it as in `labels`, or correct it."
    )


def _plain(name: str) -> str:
    return name.strip().casefold()


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


@dataclass(frozen=True)
class AnswerPass(ShardPass):
    """The pass that finds the answer to every row of a shard by its content key.

    Rows without one have not-a-number in all logits.

    :ivar folder: of the answers; :ivar digest: of their table.
    :ivar mask: what stands for a masked word; :ivar provenance: where the answers are from.
    """

    kind: ClassVar[str] = "logits"
    folder: Path
    digest: str
    mask: str
    provenance: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Take the answers in ``folder``."""
        said = read_record(folder / RECORD, "mask", "provenance")
        provenance = tuple(sorted(said["provenance"].items()))
        return cls(folder, sha256_file(folder / TABLE), said["mask"], provenance)

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input and the code."""
        own = {"answers": self.digest, "mask": self.mask, "provenance": dict(self.provenance)}
        return own | {"precision": "as given"}

    def load(self) -> None:
        """Load the answers, so that forked workers share them."""
        _loaded(self.folder, self.digest)

    def outputs(self, rows: pa.Table) -> Iterator[Output]:
        """Yield columns key (uint64), logits and, where rows are weighted, weight (float32)."""
        answers = _loaded(self.folder, self.digest)
        places = answers.find(row_keys(rows, self.mask))
        found = places >= 0
        logits = np.full((len(places), answers.logits.shape[1]), np.nan, np.float32)
        logits[found] = answers.logits[places[found]]
        columns = {"key": rows["key"], "logits": list_column(logits)}
        if answers.weights is not None:
            weights = np.ones(len(places), np.float32)
            weights[found] = answers.weights[places[found]]
            columns["weight"] = pa.array(weights)
        yield pa.table(columns), answered_counts(logits)


@lru_cache(maxsize=1)
def _loaded(folder: Path, digest: str) -> Answers:
    return Answers.read(folder)


def answered_counts(logits: np.ndarray) -> dict[str, int]:
    """Return how many rows have an answer, and how many none."""
    known = int(answered(logits).sum())
    return {"answered": known, "unanswered": len(logits) - known}


def list_unanswered(inputs: ShardSet, outputs: ShardSet, mask: str) -> int:
    """Write the rows of a set without an answer beside the outputs, if any; return how many.

    :param mask: what stands for a masked word.
    """
    count = outputs.manifest.counts.get("unanswered", 0)
    if count:
        with (
            atomic_path(outputs.folder / UNANSWERED) as path,
            path.open("w", encoding="utf-8") as stream,
        ):
            for row in unanswered(inputs, outputs, mask):
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def unanswered(inputs: ShardSet, outputs: ShardSet, mask: str) -> Iterator[dict[str, Any]]:
    """Yield what says of each row of a set that it has no answer: shard, row, content key, texts.

    :param mask: what stands for a masked word.
    """
    shards = zip(inputs.manifest.shards, inputs.tables(), outputs.tables(), strict=True)
    for shard, rows, found in shards:
        missing = np.flatnonzero(~answered(matrix(found["logits"])))
        if not len(missing):
            continue
        chosen = rows.take(missing)
        texts = read_texts(chosen, mask)
        for row, key, *own in zip(missing.tolist(), content_keys(texts), *texts, strict=True):
            place = {"shard": shard.name, "row": row, "key": f"{key:016x}"}
            yield place | dict(zip(("text", "text_pair"), own, strict=False))
