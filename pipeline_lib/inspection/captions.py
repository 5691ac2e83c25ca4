"""Titles and explanations of the work lists."""

from dataclasses import dataclass
from typing import Literal, get_args

ListName = Literal["uncertain", "labels", "student", "augmentation"]
LISTS: tuple[ListName, ...] = get_args(ListName)
DIVERGENCE = "Jensen-Shannon divergence, bits"


@dataclass(frozen=True)
class Caption:
    """The texts of a list: see :class:`pipeline_lib.inspection.work_lists.WorkList`."""

    title: str
    explanation: str
    measure: str
    missing: str


CLASSES: dict[ListName, Caption] = {
    "uncertain": Caption(
        "Most uncertain",
        "Original rows for which the teacher's answer has the highest entropy: ambiguous texts, or "
        "a kind of text that the teacher does not know.",
        "entropy, bits",
        "The teacher answered no row.",
    ),
    "labels": Caption(
        "Teacher against gold",
        "Rows to whose label the teacher gives the lowest probability: likely label errors, or "
        "what the teacher gets wrong. It may have memorised the labels of train, so errors there "
        "rank lower than on held-out splits.",
        "1 - probability of the label",
        "No row has both a label and an answer of the teacher.",
    ),
    "student": Caption(
        "Student against teacher",
        "Rows on which student and teacher differ most: what distillation did not transfer.",
        DIVERGENCE,
        "No student's answers are known.",
    ),
    "augmentation": Caption(
        "Most changed by augmentation",
        "Synthetic rows for which the teacher's answer is furthest from its answer to the "
        "original: the words that matter, or rows that no longer make sense.",
        DIVERGENCE,
        "No row was made by augmentation.",
    ),
}
SCORES: dict[ListName, Caption] = {
    "uncertain": Caption(
        "Most uncertain",
        "Held-out rows on which the seeds of one student differ most: a score has no entropy, so "
        "the spread over seeds stands in for it.",
        "standard deviation over seeds",
        "No answers of several seeds are known.",
    ),
    "labels": Caption(
        "Teacher against gold",
        "Rows whose label the teacher's score misses by most: likely label errors, or what the "
        "teacher gets wrong. It may have memorised the scores of train.",
        "distance of the scores",
        CLASSES["labels"].missing,
    ),
    "student": Caption(
        "Student against teacher",
        CLASSES["student"].explanation,
        "distance of the scores",
        CLASSES["student"].missing,
    ),
    "augmentation": Caption(
        "Most changed by augmentation",
        "Synthetic rows for which the teacher's score is furthest from its score of the original.",
        "distance of the scores",
        CLASSES["augmentation"].missing,
    ),
}
