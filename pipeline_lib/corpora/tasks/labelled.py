"""From rows of strings to examples with class numbers.

params.yaml says which raw values, or which range of numbers, mean which label.  A value that fits
no label is an error, or, if labels are given as ranges, is left out and counted.  A test file's
labels may be hidden; then no score is ever computed on it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.kind import Label, Meaning, Raw, finite_number
from pipeline_lib.params import GlueFolder, HubDataset, NeighbourPairs, OwnFiles, Source, Task
from pipeline_lib.tables.faults import no_rows
from pipeline_lib.tables.reader import ReadOptions, RowBatch, read_batches


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled row: its texts, and its class number, score or marks; None where it is hidden."""

    texts: tuple[str, ...]
    label: Label | None


def read_examples(folder: Path, task: Task) -> tuple[dict[str, list[Example]], dict[str, Any]]:
    """Read what ``fetch_data`` wrote for a task.

    :param folder: the task's folder of raw files, one per split.
    :param task: its parameters.
    :return: the examples of each split that the source names (train, dev, test, or all), in the files' order, and per
        split the counts of rows read, kept, and left out by reason, and the numbers of the rows that were kept though
        they have an empty text.
    """
    labels = KINDS[task.kind].meaning(task)
    splits: dict[str, list[Example]] = {}
    counts: dict[str, Any] = {}
    for split in split_names(task.source):
        paths = [folder / name for name in raw_names(task.source, split)]
        splits[split], counts[split] = _read_split(paths, split, task, labels)
    if task.learns_from_labels:
        _check_classes(splits, labels, folder)
    return splits, counts


def split_names(source: Source) -> list[str]:
    """Return the splits that a source names: train, dev, test, all, then further ones."""
    splits = source.splits if isinstance(source, HubDataset) else source.files
    usual = [name for name in ("train", "dev", "test", "all") if name in splits]
    return usual + sorted(name for name in splits if name not in usual)


def raw_names(source: Source, split: str) -> list[str]:
    """Return the names of the files in which ``fetch_data`` writes a split: train.csv, train-2.csv."""
    count = len(source.paths_of(split)) if isinstance(source, OwnFiles) else 1
    return [f"{split}{f'-{n}' if n > 1 else ''}.{file_format(source)}" for n in range(1, count + 1)]


def file_format(source: Source) -> str:
    """Return the format, and file ending, in which ``fetch_data`` writes a source's files."""
    if isinstance(source, HubDataset):
        return "parquet"
    return "tsv" if isinstance(source, GlueFolder) else source.format


def _read_split(paths: Sequence[Path], split: str, task: Task, labels: Meaning) -> tuple[list[Example], dict[str, Any]]:
    """Read the files of a split, one after the other."""
    column = task.label_of(split)
    optional = task.labels_of(split) if split.startswith("test") else []
    columns = [*task.text, *task.labels_of(split)]
    examples: list[Example] = []
    empty: list[int] = []
    counts = Counter(rows=0, kept=0, empty_text=0, outside_label_ranges=0, hidden_label=0)
    for batch in _batches(paths, columns, optional, read_options(task.source, split)):
        counts["rows"] += len(batch)
        rows = zip(batch.numbers, _rows(batch, task, column), strict=True)
        for number, (where, texts, raw) in rows:
            label = None if column is None else labels.classify(raw)
            example = Example(texts, label)
            reason = _reason_to_drop(example, raw, where, split, task, labels)
            if reason:
                counts[reason] += 1
                continue
            counts["hidden_label"] += example.label is None
            empty += [] if all(texts) else [number]
            examples.append(example)
    counts["kept"] = len(examples)
    return examples, dict(counts) | ({"kept_empty_text": empty} if empty else {})


def _batches(
    paths: Sequence[Path], columns: Sequence[str], optional: Sequence[str], options: ReadOptions
) -> Iterator[RowBatch]:
    for path in paths:
        rows = 0
        for batch in read_batches(path, columns, optional, options):
            rows += len(batch)
            yield batch
        if not rows:
            raise no_rows(str(path))


def read_options(source: Source, split: str) -> ReadOptions:
    """Return how the reader is to read a source's files."""
    options = ReadOptions(
        file_format(source), remedy="Correct the name in params.yaml, or list `columns` if there is no header line."
    )
    if isinstance(source, HubDataset | NeighbourPairs):
        return options
    if isinstance(source, GlueFolder):
        # Some rows of QQP's official training file end before their texts.
        return replace(options, quoted=False, columns=source.columns, short_rows=split == "train")
    return replace(options, quoted=source.quoted, encoding=source.encoding, columns=source.columns)


def _rows(batch: RowBatch, task: Task, label: str | list[str] | None) -> Iterator[tuple[str, tuple[str, ...], Raw]]:
    """Yield the file and number of each row, its texts, and its label, "" where there is none."""
    texts = zip(*(batch.texts(name) for name in task.text), strict=True)
    raws: Iterable[Raw] = [""] * len(batch)
    if isinstance(label, list):
        raws = zip(*(map(str.strip, batch.texts(name)) for name in label), strict=True)
    elif label is not None:
        read = batch.lists if KINDS[task.kind].has_several else batch.texts
        raws = map(str.strip, read(label))
    for number, (row, raw) in enumerate(zip(texts, raws, strict=True)):
        yield batch.where(number), tuple(value.strip() for value in row), raw


def _reason_to_drop(example: Example, raw: Raw, where: str, split: str, task: Task, labels: Meaning) -> str | None:
    if not all(example.texts):
        # Dropping a row of dev or test would change what is scored.  Only users' own files are theirs to correct.
        if not split.startswith(("dev", "test")):
            return "empty_text"
        if isinstance(task.source, OwnFiles):
            names = ", ".join(map(repr, task.text))
            raise PotstillError(f"{where}, column {names}: empty text. Fill it in or remove it.")
    if example.label is not None or task.label_of(split) is None:
        return None
    column = f"{where}, column {task.label_of(split)!r}"
    hidden = labels.hides(raw)
    if not isinstance(raw, str):
        [raw, *_], names = labels.cells(raw), task.labels_of(split)
        column = f"{where}, columns {', '.join(map(repr, names))}"
    if hidden:
        if split.startswith("test"):
            return None
        raise PotstillError(
            f"{column}: hidden label {raw!r}; only a test file may have those. Add the label or take the row out."
        )
    if labels.ranges and finite_number(raw) is not None:
        return "outside_label_ranges"
    wrong = "is not a number" if labels.ranges else "is not a label"
    raise PotstillError(
        f"{column}: {raw!r} {wrong}; `labels` in params.yaml knows {labels}. Add it there or correct the row."
    )


def _check_classes(splits: dict[str, list[Example]], labels: Meaning, folder: Path) -> None:
    split = "all" if "all" in splits else "train"
    missing = missing_classes(splits[split], labels)
    if missing:
        raise PotstillError(
            f"{folder}: no {split} example has the label {', '.join(missing)}. Correct `labels` in "
            "params.yaml, or add examples."
        )


def missing_classes(examples: Sequence[Example], labels: Meaning) -> list[str]:
    """Return the names of the classes, or labels, that no example has."""
    seen = {number for example in examples for number in numbers_of(example.label)}
    return [name for number, name in enumerate(labels.names) if number not in seen]


def numbers_of(label: float | Sequence[int] | None) -> list[float | None]:
    """Return the numbers of the classes that a row has: one, or any number of several labels."""
    if isinstance(label, Sequence):
        return [number for number, mark in enumerate(label) if mark]
    return [label]
