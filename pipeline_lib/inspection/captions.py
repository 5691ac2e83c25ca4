"""What the work lists are called, and what is to be made of them."""

from dataclasses import dataclass
from typing import Literal, get_args

ListName = Literal["uncertain", "labels", "student", "augmentation"]
LISTS: tuple[ListName, ...] = get_args(ListName)
DIVERGENCE = "Jensen-Shannon divergence, bits"


@dataclass(frozen=True)
class Caption:
    """Words of a list: see :class:`pipeline_lib.inspection.work_lists.WorkList`."""

    title: str
    explanation: str
    measure: str
    missing: str


CLASSES: dict[ListName, Caption] = {
    "uncertain": Caption(
        "Most uncertain",
        "Rows as they were written whose answer by the teacher has the highest entropy: ambiguous "
        "texts, or a kind of text that the teacher does not know.",
        "entropy, bits",
        "The teacher answered no row.",
    ),
    "labels": Caption(
        "Teacher against gold",
        "Labelled rows to whose label the teacher gives the least probability: likely label "
        "errors, or what the teacher gets wrong. It may have learned the labels of train by "
        "heart, so that errors there stand lower than on held-out splits.",
        "1 - probability of the label",
        "No row has both a label and an answer of the teacher.",
    ),
    "student": Caption(
        "Student against teacher",
        "Rows on which student and teacher lie furthest apart: what distillation did not carry "
        "over.",
        DIVERGENCE,
        "No student's answers are known.",
    ),
    "augmentation": Caption(
        "Most changed by augmentation",
        "Synthetic rows whose answer by the teacher lies furthest from that to their original: "
        "the words that matter, or rows that no longer say anything.",
        DIVERGENCE,
        "No row was made by augmentation.",
    ),
}
SCORES: dict[ListName, Caption] = {
    "uncertain": Caption(
        "Most uncertain",
        "Held-out rows on which the seeds of one student differ most: a score has no entropy, and "
        "what training decides by chance is not known well.",
        "standard deviation over seeds",
        "No answers of several seeds are known.",
    ),
    "labels": Caption(
        "Teacher against gold",
        "Labelled rows whose score the teacher misses by most: likely label errors, or what the "
        "teacher gets wrong. It may have learned the scores of train by heart.",
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
        "Synthetic rows whose score by the teacher lies furthest from that of their original.",
        "distance of the scores",
        CLASSES["augmentation"].missing,
    ),
}
