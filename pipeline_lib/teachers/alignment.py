"""The proof that stored outputs stand beside the rows they belong to (DESIGN, row-for-row).

Three measurements: content keys equal in every row; the stored outputs agree with the labels of the
original examples (in the argmax, or in correlation) as far as the teacher itself does; and a random
sample, run through the teacher again one example at a time, gives the stored outputs within
tolerance.
"""

from typing import Any

import numpy as np

from pipeline_lib.columns import Text, sides, texts
from pipeline_lib.errors import DistilleryError
from pipeline_lib.evaluation.metrics import agreement, label_array
from pipeline_lib.shards import ShardSet
from pipeline_lib.stored_vectors import StoredVectors, vector_tables
from pipeline_lib.teachers.model import Teacher
from pipeline_lib.teachers.outputs import aligned
from pipeline_lib.teachers.vectors import VectorPass

SAMPLE = 64
TOLERANCE = {"float32": 0.01, "bfloat16": 0.5, "float16": 0.1}
"""Greatest difference between a stored logit and the same row run alone, by number format."""
AGREEMENT_TOLERANCE = 0.03
LEAST_NEAREST = 0.9
"""The share of recomputed sentence vectors that must be nearest to their own stored ones: rows that
slipped would be so by chance only, however alike all vectors are."""


def prove_alignment(
    inputs: ShardSet, outputs: ShardSet, teacher: Teacher, max_length: int, own: float
) -> dict[str, Any]:
    """Measure the alignment and return the figures.

    :param own: the teacher's agreement on training rows, taken when it was fine-tuned.
    :raises DistilleryError: if a measurement contradicts the alignment.
    """
    rows, matches = 0, 0
    sample: list[Text] = []
    labels: list[np.ndarray] = []
    answers: list[np.ndarray] = []
    stored: list[np.ndarray] = []
    generator = np.random.default_rng(0)
    share = SAMPLE / max(1, inputs.manifest.rows)
    stored_keys = (table["key"].to_numpy() for table in outputs.tables())
    for (table, logits), keys in zip(aligned(inputs, outputs), stored_keys, strict=True):
        rows += table.num_rows
        matches += int((table["key"].to_numpy() == keys).sum())
        known = table["label"].is_valid().to_numpy()
        labels.append(label_array(table["label"].drop_null()))
        answers.append(logits[known])
        picked = np.nonzero(generator.random(table.num_rows) < share)[0]
        sample += texts(table.take(picked))
        stored += list(logits[picked])
    labelled, answered = np.concatenate(labels), np.concatenate(answers)
    figures = {
        "rows": rows,
        "rows_with_equal_key": matches,
        "labelled_rows": len(labelled),
        "agreement_with_labels": round(agreement(labelled, answered), 6),
        "teachers_own_agreement": round(own, 6),
        "recomputed_rows": len(sample),
        **_recompute(sample, np.array(stored), teacher, max_length),
    }
    _judge(figures, teacher.precision, outputs)
    return figures


def _recompute(
    sample: list[Text], stored: np.ndarray, teacher: Teacher, max_length: int
) -> dict[str, Any]:
    if not sample:
        return {"greatest_logit_difference": 0.0, "flipped_argmax": 0}
    again = np.concatenate([teacher.predict([t], max_length, max_length) for t in sample])
    return {
        "greatest_logit_difference": round(float(np.abs(again - stored).max()), 6),
        "flipped_argmax": int((again.argmax(1) != stored.argmax(1)).sum()),
    }


def _judge(figures: dict[str, Any], precision: str, outputs: ShardSet) -> None:
    remedy = "Delete this folder and .distillery/store/logits, then run `dvc repro`."
    if figures["rows_with_equal_key"] != figures["rows"]:
        raise DistilleryError(f"{outputs.folder}: rows and outputs have different keys. {remedy}")
    if figures["greatest_logit_difference"] > TOLERANCE[precision]:
        raise DistilleryError(
            f"{outputs.folder}: stored logits differ from the teacher's by "
            f"{figures['greatest_logit_difference']} (at most {TOLERANCE[precision]}). {remedy}"
        )
    found, own = figures["agreement_with_labels"], figures["teachers_own_agreement"]
    if found < own - AGREEMENT_TOLERANCE:
        raise DistilleryError(
            f"{outputs.folder}: the stored outputs agree with the labels by {found:.1%}, the "
            f"teacher itself does by {own:.1%}. {remedy}"
        )


def prove_vectors(inputs: ShardSet, outputs: ShardSet, own: VectorPass) -> dict[str, Any]:
    """Measure that stored sentence vectors stand beside their sentences; return the figures.

    :raises DistilleryError: if keys differ, or sentences run again have other vectors.
    """
    generator = np.random.default_rng(0)
    share = SAMPLE / max(1, inputs.manifest.rows)
    matches = 0
    sample: list[str] = []
    stored = [np.empty((0, own.teacher().width), np.float32)]
    for rows, answers in vector_tables(inputs, outputs):
        matches += int((rows["key"].to_numpy() == answers["key"].to_numpy()).sum())
        picked = np.nonzero(generator.random(rows.num_rows) < share)[0]
        for side in sides(rows.column_names):
            stored.append(StoredVectors([(answers, side)])[picked])
            sample += rows[f"text{side}"].take(picked).to_pylist()
    nearest = _share_nearest(sample, np.concatenate(stored), own)
    figures = {
        "rows": inputs.manifest.rows,
        "rows_with_equal_key": matches,
        "recomputed_rows": len(sample),
        "nearest_to_their_own": round(nearest, 6),
    }
    remedy = "Delete this folder and .distillery/store/vectors, then run `dvc repro`."
    if matches != inputs.manifest.rows:
        raise DistilleryError(f"{outputs.folder}: rows and vectors have different keys. {remedy}")
    if nearest < LEAST_NEAREST:
        raise DistilleryError(
            f"{outputs.folder}: of sentences run again, {nearest:.1%} are nearest to their own "
            f"stored vectors (at least {LEAST_NEAREST:.0%}). {remedy}"
        )
    return figures


def _share_nearest(sample: list[str], stored: np.ndarray, own: VectorPass) -> float:
    """Return the share of sentences whose vector, computed anew, is nearest to the stored one."""
    if not sample:
        return 1.0
    length = own.max_length
    again = np.concatenate([own.teacher().predict([t], length, length) for t in sample])
    distances = np.linalg.norm(again[:, None] - stored[None], axis=2)
    # Sentences that are the same to the model have the same vector: no one is nearer.
    slack = 0.01 * np.linalg.norm(again, axis=1)
    return float((distances.diagonal() <= distances.min(1) + slack).mean())
