"""Students that answer the rows of a set while it is read."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import Text
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.rows import Answering, Features, Names
from pipeline_lib.models.folders import check_names, check_outputs, require_model, temperature_of
from pipeline_lib.models.serving import student_in_use
from pipeline_lib.models.students.student import Student, load_student
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.masking import signed_sentences


def running_student(folder: Path, rows: JoinedRows, names: Names) -> Answering:
    """Load a student, with its temperature, to answer any batch; its classes must be ``names``, if these are known."""
    student = _fitting(folder, rows, names)
    predict, sign = student_in_use(folder, student)
    return lambda batch: predict(_texts(batch.table, sign))


def running_features(folder: Path, rows: JoinedRows, names: Names) -> Features:
    """Load a student, with its temperature, to answer rows and return its features."""
    student = _fitting(folder, rows, names)
    _, sign = student_in_use(folder, student)
    temperature = temperature_of(folder)

    def answers(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        logits, features = student.logits_and_features(_texts(table, sign))
        return check_outputs(folder, logits / temperature), features

    return answers


def _fitting(folder: Path, rows: JoinedRows, names: Names) -> Student:
    require_model(folder)
    student = load_student(folder)
    if student.is_pair != rows.is_pair:
        kinds = ("sentences", "pairs of sentences")
        raise PotstillError(
            f"{folder}: a student of {kinds[student.is_pair]}; {rows.name} holds "
            f"{kinds[rows.is_pair]}. Name a student of its task."
        )
    if names is not None:
        check_names(folder, student.label_names, list(names))
    if rows.classes is not None and rows.classes != len(student.label_names):
        raise PotstillError(
            f"{folder}: answers with {len(student.label_names)} numbers, the teacher of "
            f"{rows.name} with {rows.classes}. Name a student of its task."
        )
    return student


def _texts(table: pa.Table, sign: str) -> list[Text]:
    sides = [signed_sentences(table, side, lambda: sign) for side in column_suffixes(table)]
    return sides[0] if len(sides) == 1 else list(zip(*sides, strict=True))
