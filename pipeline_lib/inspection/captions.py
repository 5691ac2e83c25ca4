"""Names of rules and work lists, with their titles and explanations."""

from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

RuleName = Literal["mask", "replace", "ngram", "original"]
"""What was done to a row of a transfer set."""
NEXT: Final = "label-next"
ReviewName = Literal["uncertain", "labels", "student", "augmentation"]
ListName = ReviewName | Literal["label-next"]
LISTS: tuple[ReviewName, ...] = get_args(ReviewName)
"""The lists of rows to review.  The list of texts to label is made only if it is asked for, since
the student has to answer them."""
DIVERGENCE = "Jensen-Shannon divergence, bits"
SCORES_SPREAD = "standard deviation over seeds"


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
        "Rows to whose label the teacher gives the lowest probability: likely label errors, or what the teacher gets "
        "wrong. It may have memorised the labels of train, so errors there rank lower than on held-out splits.",
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
    NEXT: Caption(
        "To label next",
        "Unlabelled texts that the student is unsure of, and that differ from one another: of the texts it is least "
        "sure of, each is the furthest from those above it.",
        "1 - probability of the student's answer",
        "Every text has a label.",
    ),
}
_DISTANCE = "distance of the scores"
SCORES: dict[ListName, Caption] = {
    "uncertain": Caption(
        "Most uncertain",
        "Held-out rows on which the seeds of one student differ most: a score has no entropy, so "
        "the spread over seeds stands in for it.",
        SCORES_SPREAD,
        "No answers of several seeds are known.",
    ),
    "labels": replace(
        CLASSES["labels"],
        explanation="Rows whose label the teacher's score misses by most: likely label errors, or what the "
        "teacher gets wrong. It may have memorised the scores of train.",
        measure=_DISTANCE,
    ),
    "student": replace(CLASSES["student"], measure=_DISTANCE),
    "augmentation": replace(
        CLASSES["augmentation"],
        explanation="Synthetic rows for which the teacher's score is furthest from its score of the original.",
        measure=_DISTANCE,
    ),
    NEXT: replace(
        CLASSES[NEXT],
        explanation="Unlabelled texts on whose score the student's seeds differ most, and that differ from one "
        "another: each is the furthest from those above it.",
        measure=SCORES_SPREAD,
    ),
}
