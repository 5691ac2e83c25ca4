"""The proof that stored outputs stand beside the rows they belong to (DESIGN, row-for-row).

Three measurements: content keys equal in every row; the stored argmax agrees with the labels of the
original examples as often as the teacher itself does; and a random sample, run through the teacher
again one sentence at a time, gives the stored logits within tolerance.
"""

from typing import Any

import numpy as np

from pipeline_lib.errors import DistilleryError
from pipeline_lib.shards import ShardSet
from pipeline_lib.teachers.model import Teacher
from pipeline_lib.teachers.outputs import aligned

SAMPLE = 64
TOLERANCE = {"float32": 0.01, "bfloat16": 0.5, "float16": 0.1}
"""Greatest difference between a stored logit and the same row run alone, by number format."""
AGREEMENT_TOLERANCE = 0.03


def prove_alignment(
    inputs: ShardSet, outputs: ShardSet, teacher: Teacher, max_length: int, own_accuracy: float
) -> dict[str, Any]:
    """Measure the alignment and return the figures.

    :param own_accuracy: the teacher's accuracy on training rows, taken when it was fine-tuned.
    :raises DistilleryError: if a measurement contradicts the alignment.
    """
    rows, matches, labelled, agreed = 0, 0, 0, 0
    texts: list[str] = []
    stored: list[np.ndarray] = []
    generator = np.random.default_rng(0)
    share = SAMPLE / max(1, inputs.manifest.rows)
    answers = (table["key"].to_numpy() for table in outputs.tables())
    for (table, logits), keys in zip(aligned(inputs, outputs), answers, strict=True):
        rows += table.num_rows
        matches += int((table["key"].to_numpy() == keys).sum())
        labels = table["label"].to_numpy()
        known = ~np.isnan(labels.astype(float))
        labelled += int(known.sum())
        agreed += int((logits.argmax(1)[known] == labels[known]).sum())
        picked = np.nonzero(generator.random(table.num_rows) < share)[0]
        texts += table["text"].take(picked).to_pylist()
        stored += list(logits[picked])
    figures = {
        "rows": rows,
        "rows_with_equal_key": matches,
        "labelled_rows": labelled,
        "argmax_equals_label": round(agreed / labelled, 6) if labelled else None,
        "teacher_own_accuracy": round(own_accuracy, 6),
        "recomputed_rows": len(texts),
        **_recompute(texts, np.array(stored), teacher, max_length),
    }
    _judge(figures, teacher.precision, outputs)
    return figures


def _recompute(
    texts: list[str], stored: np.ndarray, teacher: Teacher, max_length: int
) -> dict[str, Any]:
    if not texts:
        return {"greatest_logit_difference": 0.0, "flipped_argmax": 0}
    again = np.concatenate([teacher.predict([t], max_length, max_length) for t in texts])
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
    agreement = figures["argmax_equals_label"]
    own = figures["teacher_own_accuracy"]
    if agreement is not None and agreement < own - AGREEMENT_TOLERANCE:
        raise DistilleryError(
            f"{outputs.folder}: the stored argmax equals the label in {agreement:.1%} of the "
            f"labelled rows, the teacher itself reached {own:.1%}. {remedy}"
        )
