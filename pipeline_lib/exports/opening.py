"""Opens a student, whatever format its folder has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.exports.folders import form_of
from pipeline_lib.storage.columns import Text


@dataclass(frozen=True)
class Opened:
    """A student, or a sentence encoder, ready for use.

    :ivar label_names: class names, or the name of a regression's score; empty for an encoder.
    :ivar predict: maps texts or pairs to logits, divided by the temperature, or to vectors.
    """

    label_names: list[str]
    is_pair: bool
    predict: Callable[[Sequence[Text]], np.ndarray]


def open_student(folder: Path) -> Opened:
    """Open a student's own folder, or an exported one.

    :raises DistilleryError: if it contains no student.
    """
    opened = _exported(folder)
    if opened is None:
        from pipeline_lib.evaluation.companions import scaled, temperature_of
        from pipeline_lib.students.student import load_student

        student = load_student(folder)
        predict = scaled(student.predict, temperature_of(folder))
        return Opened(student.label_names, student.is_pair, predict)
    if not opened.label_names:
        raise DistilleryError(
            f"{folder}: a sentence encoder, which gives vectors, not answers. Use `distill encode`."
        )
    return opened


def open_encoder(folder: Path) -> tuple[Callable[[Sequence[str]], np.ndarray], int]:
    """Open a sentence encoder, in its own folder or an exported one.

    :returns: the function that encodes texts, and the width of its vectors.
    :raises DistilleryError: if it contains none.
    """
    opened = _exported(folder)
    if opened is None:
        from pipeline_lib.students.sentence_encoder import load_encoder

        encoder = load_encoder(folder)
        return encoder.encode, encoder.width
    if opened.label_names:
        raise DistilleryError(
            f"{folder}: an exported student, which gives answers, not vectors. Give the folder of "
            "an encoder, or of a student below data/students."
        )
    return opened.predict, opened.predict(["one"]).shape[1]


def _exported(folder: Path) -> Opened | None:
    form = form_of(folder)
    if form == "numpy":
        return _open_numpy(folder)
    if form is None or not form.startswith("onnx"):
        return None
    from pipeline_lib.exports.onnx_student import load_onnx_student

    student = load_onnx_student(folder)
    return Opened(student.label_names, student.is_pair, student.predict)


def _open_numpy(folder: Path) -> Opened:
    # Use the library's own copy: code from a folder must not be run without being asked to.
    from pipeline_lib.exports.numpy_student import Student

    try:
        student = Student(folder)
    except Exception as error:  # tokenizers raises bare Exceptions
        reason = str(error).splitlines()[0]
        raise DistilleryError(
            f"{folder}: the numpy student cannot be opened ({reason}). Export it again."
        ) from error
    predict = student.logits if student.label_names else student.encode
    return Opened(student.label_names, student.is_pair, predict)
