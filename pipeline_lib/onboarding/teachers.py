"""Chooses the teacher: a row of ``models``, a model's folder, or a file of answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.model_config import check_problem_type, kind_of_model, output_names, read_config
from pipeline_lib.base.probabilities import Kind
from pipeline_lib.onboarding.labels import Labels, spelled
from pipeline_lib.onboarding.understanding import AnswerHints
from pipeline_lib.outputs.files.answer_rows import read_answers
from pipeline_lib.tables.label_lists import bracketed
from pipeline_lib.tables.values import finite_number

_HEADS = ("ForSequenceClassification",)
_SIGN = "[MASK]"
_STEPS = 126
"""As many as in profiles/tour.yaml, which has two epochs of 4,028 rows."""
_MOST_EPOCHS, _LEAST_BATCH = 10, 16
"""A set too small for these steps gets smaller batches: benchmarks/few_row_teachers.py."""


@dataclass(frozen=True)
class Chosen:
    """A teacher.

    :ivar name: the name of its row; :ivar kind: the kind of its tuning; :ivar model: the row of ``models`` that it
        is tuned from; :ivar path: its folder or file; :ivar hints: what its answers say about the task; :ivar
        classes: see :func:`class_order`; :ivar outputs: how many a finished model has, one for scores.
    :ivar task_kind: the kind of task that a finished model answers; None if it may be any.
    """

    name: str
    kind: str
    model: str | None = None
    path: Path | None = None
    hints: AnswerHints | None = None
    classes: list[str] | None = None
    outputs: int | None = None
    task_kind: Kind | None = None

    @property
    def runs(self) -> bool:
        """Whether a model is run for its answers."""
        return self.kind != "answers"


def choose_teacher(choice: str | None, models: Sequence[str], default: str, classes: Sequence[str]) -> Chosen:
    """Return the teacher that a user named.

    :param choice: a row of ``models``, a folder, or a file; None for the default.
    :param models: the rows that exist; :param default: the one to tune.
    :param classes: the task's classes, as far as they are named: a batch's replies may be one of them alone.
    """
    if choice is None or choice in models:
        return Chosen(choice or default, "single", choice or default)
    path = Path(choice)
    if path.is_dir():
        return _model(path)
    if not path.is_file():
        raise PotstillError(
            f"--teacher {choice}: neither a model of params.yaml ({', '.join(models)}), nor a "
            "model's folder, nor a file of answers. Correct it."
        )
    return Chosen("answers", "answers", path=path, hints=_hints(path, classes))


def in_model_order(folder: Path, labels: Labels) -> Labels:
    """Return a task's classes in the order of a finished model's outputs, if these are the same.

    Case and surrounding spaces are ignored, as later when the model is checked.
    """
    named = read_config(folder).get("id2label") or {}
    if not all(number.isdecimal() for number in named):
        return labels
    plain = {name.strip().casefold(): name for name in labels}
    order = [str(named[number]).strip().casefold() for number in sorted(named, key=int)]
    if sorted(order) != sorted(plain):
        return labels
    return {plain[name]: labels[plain[name]] for name in order}


def class_order(hints: AnswerHints, labels: Labels, is_ordered: bool) -> list[str] | None:
    """Return the order of the classes in a file of answers; None if each answer names its class.

    A list has one number for each class, and labels that are numbers count the classes from 0.

    :param labels: the task's classes; :param is_ordered: whether the user named them in this order.
    """
    names = [*labels]
    counts = [value for value in hints.numbers if not (isinstance(value, str) and value.strip() in names)]
    for value in counts:
        if not _is_place(value, names):
            raise PotstillError(
                f"--teacher: label {value} is a number, which counts the classes "
                f"{', '.join(names)} from 0. Write the classes' names as text."
            )
    if not counts and not hints.has_lists:
        return None
    if not is_ordered and names != [str(index) for index in range(len(names))]:
        raise PotstillError(
            "--teacher: the file does not say which class its numbers are for. Name the classes in "
            f"their order: --labels {quote(spelled(labels))}."
        )
    return names


def _is_place(value: str | float, names: Sequence[str]) -> bool:
    """Whether a number counts one of the classes, and is not another one's name."""
    index = float(value)
    if index not in range(len(names)):
        return False
    return names[int(index)] == f"{index:g}" or f"{index:g}" not in names


def tuning_of(chosen: Chosen, path: str, rows: int, base: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``tuning`` of its row.

    :param path: its folder or file, below ``inputs``; :param rows: rows of the training set.
    :param base: the tuning of the teacher that it replaces.
    """
    if chosen.kind == "finished":
        return {"kind": "finished", "checkpoint": path}
    if chosen.kind == "answers":
        tuning = {"kind": "answers", "files": [path], "format": None, "classes": chosen.classes}
        tuning |= {"mask": _SIGN, "smoothing": 0.1, "min_coverage": 0.5}
        return tuning | {"provenance": {}}
    size = base["batch_size"]
    while size > _LEAST_BATCH and _MOST_EPOCHS * -(-rows // size) < _STEPS:
        size //= 2
    epochs = min(_MOST_EPOCHS, max(2, -(-_STEPS // max(1, -(-rows // size)))))
    return {**base, "batch_size": size, "epochs": epochs}


def _model(path: Path) -> Chosen:
    if not (path / "config.json").is_file():
        raise PotstillError(f"--teacher {path}: no config.json, so this is not a model. Correct the folder.")
    config = read_config(path)
    heads = config.get("architectures") or []
    name = "".join(sign if sign.isalnum() else "_" for sign in path.resolve().name)
    if any(head.endswith(_HEADS) for head in heads):
        outputs = output_names(config, path)
        kind = kind_of_model(outputs, config.get("problem_type"))
        check_problem_type(config, path, kind)
        return Chosen(name, "finished", path=path, outputs=len(outputs), task_kind=kind)
    return Chosen(name, "single", name, path)


def _hints(path: Path, classes: Sequence[str]) -> AnswerHints:
    """Return what answers say about their task: the classes that they name, or scores."""
    described, rows = read_answers(path, None, [*classes])
    count = counted = replies = 0
    names: dict[str, None] = dict.fromkeys(described.classes or ())
    numbers: dict[str | float, None] = {}
    is_score = has_lists = several = False
    for _, row in rows:
        count += 1
        replies += row.of_reply
        entries = bracketed(str(row.value)) if row.kind == "label" else None
        if entries is not None:
            several = True
            names.update(dict.fromkeys(row.value if isinstance(row.value, list) else entries))
        elif row.kind == "label":
            is_number = finite_number(str(row.value)) is not None
            (numbers.setdefault(row.value) if is_number else names.setdefault(str(row.value)))
            counted += is_number
        elif isinstance(row.value, dict):
            names.update(dict.fromkeys(row.value))
        elif row.kind == "logits" and len(row.value) == 1:
            is_score = True
            numbers.setdefault(row.value[0])
        elif row.kind is not None:
            has_lists = True
    if replies and 2 * counted < count:
        numbers.clear()  # a few replies that are no answers
    if several:
        return AnswerHints("multilabel", [*names])
    if described.classes is not None:
        # Lists, and numbers as labels, refer to these.
        return AnswerHints("classification", [*names])
    if names or has_lists or not numbers:
        return AnswerHints("classification", [*names], [*numbers], has_lists)
    return AnswerHints("regression" if is_score else None, numbers=[*numbers])
