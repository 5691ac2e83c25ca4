"""A student in use, with its companions: temperature, teacher, undistilled baseline.

A student's path tells which row of params.yaml it belongs to.  For a student that was moved
elsewhere, the teacher has to be named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline_lib.base.devices import resolve_batch_tokens, resolve_device, resolve_precision
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS, Classes
from pipeline_lib.base.layout import StudentPlace, student_place
from pipeline_lib.base.model_config import position_count
from pipeline_lib.base.promises import Stretch, answers_alone
from pipeline_lib.base.text import Text
from pipeline_lib.models.folders import Predict, check_names, require_model, served, stretches_of, temperature_of
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.students.tokenise import mask_sign
from pipeline_lib.models.teacher import Teacher
from pipeline_lib.params import Params
from pipeline_lib.shards.training_records import tuned_length

if TYPE_CHECKING:
    from pipeline_lib.models.students.student import Student

MAX_PIECES = 512
"""Word-piece limit for a teacher without one of its own."""


@dataclass(frozen=True)
class Router:
    """A student whose texts, if its confidence is at or below the ``threshold``, go to its teacher."""

    student: Predict
    teacher: Predict
    threshold: float
    kind: str = Classes.name

    def predict(self, texts: Sequence[Text]) -> tuple[np.ndarray, np.ndarray]:
        """Return the outputs, float (texts, classes), and whether they are the teacher's."""
        logits = self.student(texts)
        routed = KINDS[self.kind].confidence(logits) <= self.threshold
        if routed.any():
            logits[routed] = self.teacher([texts[row] for row in np.flatnonzero(routed)])
        return logits, routed


def student_in_use(folder: Path, student: "Student") -> tuple[Predict, str]:
    """Return a student's prediction function, with its temperature, and its mask token."""
    return served(folder, student.logits, temperature_of(folder)), mask_sign(student.tokenizer)


def alone_of(folder: Path, figure: float) -> Stretch | None:
    """Return what a student may answer alone so that at least this share of its answers is its teacher's."""
    measured = [Stretch(**each) for each in stretches_of(folder)]
    if not measured:
        raise PotstillError(
            f"{folder}: it was not compared with its teacher on dev, which --route requires. Evaluate it with `dvc "
            "repro`, or give the confidence with --threshold."
        )
    return answers_alone(measured, figure)


def teacher_of(folder: Path, params: Params) -> tuple[Path, int] | None:
    """Return the folder of a student's teacher, and its word-piece limit; None if no model can answer."""
    location = _place(folder, "--teacher")
    name = params.teacher_of(location.task, params.method(location.method))
    teacher = params.teachers[name]
    return (location.layout.teacher(location.task, name), teacher.max_length) if teacher.runs else None


def baseline_of(folder: Path, params: Params) -> Path | None:
    """Return the undistilled student of the same seed, or None if the row has no baseline."""
    location = _place(folder, "--baseline")
    baseline = params.method(location.method).baseline
    return None if baseline is None else location.layout.student(location.task, baseline, location.seed)


def open_teacher(
    folder: Path, names: list[str] | None, max_length: int | None, device: str = "auto", precision: str = "auto"
) -> tuple[Teacher, Predict]:
    """Load a teacher for use, by default as it is fastest here, with its prediction function.

    :param names: the student's classes, which must be the teacher's; None: no student is beside it.
    :param max_length: its word-piece limit; None: that of its fine-tuning, or if its folder doesn't
        say, the model's, at most :data:`MAX_PIECES`.
    """
    require_model(folder)
    where = resolve_device(device)
    teacher = load_teacher(folder, where, resolve_precision(precision, where))
    if names is not None:
        check_names(folder, teacher.label_names, names)
    positions = position_count(teacher.model.config.to_dict()) or MAX_PIECES
    length = max_length or tuned_length(folder) or min(positions, MAX_PIECES)
    tokens = resolve_batch_tokens(None, where)
    return teacher, served(folder, lambda texts: teacher.predict(texts, length, tokens))


def _place(folder: Path, option: str) -> StudentPlace:
    location = student_place(folder)
    if location is None:
        raise PotstillError(f"{folder}: not below data/students, so its teacher is not known. Name it with {option}.")
    return location
