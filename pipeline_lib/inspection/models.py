"""Students and encoders that answer the rows of a set while it is read."""

from functools import partial
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.rows import Answering, Embed, Names
from pipeline_lib.models.checks import check_names, require_model
from pipeline_lib.models.serving import student_in_use
from pipeline_lib.models.students.sentence_encoder import SentenceEncoder, load_encoder
from pipeline_lib.models.students.student import load_student
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.masking import signed_sentences


def running_student(folder: Path, rows: JoinedRows, names: Names) -> Answering:
    """Load a student, with its temperature, to answer any batch of a set.

    :param names: the task's classes, which must match the student's; None if unknown.
    :raises DistilleryError: if there is no student, or it answers a different kind of rows.
    """
    require_model(folder)
    student = load_student(folder)
    if student.is_pair != rows.is_pair:
        kinds = ("sentences", "pairs of sentences")
        raise DistilleryError(
            f"{folder}: a student of {kinds[student.is_pair]}; {rows.name} holds "
            f"{kinds[rows.is_pair]}. Name a student of its task."
        )
    if names is not None:
        check_names(folder, student.label_names, list(names))
    if rows.classes is not None and rows.classes != len(student.label_names):
        raise DistilleryError(
            f"{folder}: answers with {len(student.label_names)} numbers, the teacher of "
            f"{rows.name} with {rows.classes}. Name a student of its task."
        )
    predict, sign = student_in_use(folder, student)

    def answers(batch: RowBatch) -> np.ndarray:
        sides = [
            signed_sentences(batch.table, s, lambda: sign) for s in column_suffixes(batch.table)
        ]
        return predict(sides[0] if len(sides) == 1 else list(zip(*sides, strict=True)))

    return answers


def running_encoder(folder: Path) -> Embed:
    """Load an encoder, or that of a student, to embed any sentences.

    :raises DistilleryError: if there is none.
    """
    require_model(folder)
    return partial(_embed, load_encoder(folder))


def _embed(encoder: SentenceEncoder, batch: RowBatch, side: str) -> np.ndarray:
    return encoder.encode_rows(batch.table, side)
