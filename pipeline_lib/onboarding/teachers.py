"""Chooses the teacher: a row of ``models``, a model's folder, or a file of answers."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import kind_of_model
from pipeline_lib.base.kinds.kind import finite_number
from pipeline_lib.base.model_config import (
    check_is_model,
    check_problem_type,
    is_classifier,
    is_language_model,
    output_names,
    read_config,
    unused_files,
)
from pipeline_lib.onboarding.labels import Labels

_log = logging.getLogger(__name__)
_SIGN = "[MASK]"
_STEPS = 126
"""As many as in profiles/tour.yaml, which has two epochs of 4,028 rows."""
_BATCH, _MOST_EPOCHS, _LEAST_BATCH = 64, 10, 16
"""A set too small for these steps gets smaller batches."""
FEW = {"batch_size": 16, "epochs": 8, "head": "probe", "select": "last"}
"""Few single texts: the head starts as a probe, and the last step is kept, since dev is too small to choose on."""
_ROWS_PER_CLASS = 15
"""With fewer, the probe itself is the teacher.  Measured at 1.3 to 13 rows of a class, where it is better, and at 17
and more, where fine-tuning is (benchmarks/few_rows.md)."""


@dataclass(frozen=True)
class Chosen:
    """A teacher.

    :ivar name: the name of its row; :ivar kind: the kind of its tuning; :ivar model: the row of ``models`` that it
        is tuned from; :ivar path: its folder or file; :ivar classes: see :func:`class_order`; :ivar outputs: how many
        a finished model has, one for scores.
    :ivar task_kind: the kind of task that a finished model answers; None if it may be any.
    :ivar force: whether it is used even if its answers contradict the labels.
    """

    name: str
    kind: str
    model: str | None = None
    path: Path | None = None
    classes: list[str] | None = None
    outputs: int | None = None
    task_kind: str | None = None
    force: bool = False

    @property
    def runs(self) -> bool:
        """Whether a model is run for its answers."""
        return self.kind != "answers"


def choose_teacher(choice: str | None, models: Sequence[str], default: str) -> Chosen:
    """Return the teacher that a user named.

    :param choice: a row of ``models``, a folder, or a file; None for the default.
    :param models: the rows that exist; :param default: the one to tune.
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
    return Chosen("answers", "answers", path=path)


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


def class_order(labels: Labels, is_ordered: bool) -> list[str] | None:
    """Return the order of the classes in a file of answers; None if each answer has to name its class.

    A list has one number for each class, and labels that are numbers count the classes from 0.

    :param labels: the task's classes; :param is_ordered: whether the user named them in this order.
    """
    names = [*labels]
    # Classes 1 to 5 cannot be counted from 0, too.
    is_word = all(finite_number(name) is None for name in names)
    return names if names == [str(index) for index in range(len(names))] or (is_ordered and is_word) else None


def tuning_of(
    chosen: Chosen, path: str, rows: int, classes: int, is_few: bool, base: Mapping[str, Any]
) -> dict[str, Any]:
    """Return ``tuning`` of its row.

    :param path: its folder or file, below ``inputs``; :param rows: rows of the training set.
    :param classes: labels of which one applies to a row, or 1; :param is_few: whether it is tuned on few single texts.
    :param base: the tuning of the teacher that it replaces.
    """
    if chosen.kind == "finished":
        return {"kind": "finished", "checkpoint": path} | ({"force": True} if chosen.force else {})
    if chosen.kind == "answers":
        tuning = {"kind": "answers", "files": [path], "classes": chosen.classes}
        return tuning | {"mask": _SIGN, "provenance": {}}
    if chosen.kind == "scored":
        settings = (chosen.path / "tokenizer_config.json").read_text(encoding="utf-8")
        has_template = (chosen.path / "chat_template.jinja").exists() or "chat_template" in settings
        return {"kind": "scored"} | ({"chat": True} if has_template else {})
    if is_few:
        return {"kind": "probe"} if rows < _ROWS_PER_CLASS * classes else base | FEW
    size = _BATCH
    while size > _LEAST_BATCH and _MOST_EPOCHS * -(-rows // size) < _STEPS:
        size //= 2
    epochs = min(_MOST_EPOCHS, max(2, -(-_STEPS // max(1, -(-rows // size)))))
    without_probe = {key: value for key, value in base.items() if key not in ("head", "select")}
    return without_probe | {"batch_size": size, "epochs": epochs}


def _model(path: Path) -> Chosen:
    check_is_model(path, f"--teacher {path}")
    if unused := unused_files(path):
        _log.warning("%s: %s: not used, only the transformer and its tokenizer are.", path, ", ".join(unused))
    config = read_config(path)
    name = "".join(sign if sign.isalnum() else "_" for sign in path.resolve().name)
    if is_classifier(config):
        outputs = output_names(config, path)
        kind = kind_of_model(outputs, config)
        check_problem_type(config, path, kind)
        return Chosen(name, "finished", path=path, outputs=len(outputs), task_kind=kind)
    return Chosen(name, "scored" if is_language_model(config) else "single", name, path)
