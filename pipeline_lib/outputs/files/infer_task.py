"""Reads a file of answers without a task: the classes are those that the file itself names."""

from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.label_lists import bracketed
from pipeline_lib.outputs.files.answer_files import read_answers
from pipeline_lib.outputs.files.given_rows import Given
from pipeline_lib.outputs.files.teacher_rows import BATCHES, format_of
from pipeline_lib.params import AnswerFiles, Range, Task


def task_of(file: Path, settings: AnswerFiles) -> Task:
    """Return the task that a file's answers are to: its classes or scores, sentences or pairs.

    It has nothing else: no source, and no columns.
    """
    kind = format_of(file, settings.format)
    if kind in BATCHES:
        raise PotstillError(
            f"{file}: {kind}, which is read by the names of a task's classes or the range of its "
            "scores. Name the task with --task."
        )
    metadata, rows = read_answers(file, kind, [])
    names: dict[str, str] = {}
    numbers, text = False, ["text"]
    several = False
    for _, row in rows:
        several |= row.kind == "label" and bracketed(str(row.value)) is not None
        if len(row.texts) == 2:
            text = ["text", "text_pair"]
        for name in _named(row):
            names.setdefault(name.strip().casefold(), name)
        numbers |= _is_score(row)
    classes = settings.classes or metadata.classes or list(names.values())
    if numbers and not classes:
        # Only a batch's answers are read by the range.
        labels = Range(min=0.0, max=1.0)
        return Task.model_construct(kind="regression", text=text, label="score", labels=labels)
    if len(classes) == 1:
        raise PotstillError(
            f"{file}: names no class but {classes[0]!r}. Name the task with --task, or all "
            "`classes` in the file's metadata."
        )
    labels = {name: [name] for name in classes}
    kind = "multilabel" if several else "classification"
    return Task.model_construct(kind=kind, text=text, labels=labels)


def _named(row: Given) -> list[str]:
    """Return the classes that a row names."""
    if isinstance(row.value, dict):
        return list(row.value)
    if row.kind == "label" and (entries := bracketed(str(row.value))) is not None:
        return row.value if isinstance(row.value, list) else entries
    return [row.value] if isinstance(row.value, str) and not _is_score(row) else []


def _is_score(row: Given) -> bool:
    """Whether a row's answer is one number."""
    if row.kind == "logits":
        return len(row.value) == 1
    if row.kind != "label":
        return False
    try:
        float(row.value)
    except (TypeError, ValueError):
        return False
    return True
