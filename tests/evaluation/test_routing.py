"""Routing on rows worked out by hand, and promises on many made up."""

import math

import numpy as np
import pytest

from pipeline_lib.base.kinds.probabilities import threshold_at
from pipeline_lib.base.promises import LEVEL, answers_alone, chance, stretches
from pipeline_lib.evaluation.routing import SHARES, Routed

CONFIDENCES = np.array([0.9, 0.5, 0.7, 0.6, 0.8])


@pytest.mark.parametrize(("share", "threshold", "rows"), [(0.0, 0.0, 0), (0.4, 0.65, 2), (0.8, 0.85, 4), (1.0, 1.0, 5)])
def test_the_threshold_takes_the_least_sure_share(share: float, threshold: float, rows: int) -> None:
    assert threshold_at(CONFIDENCES, share) == pytest.approx(threshold)
    assert (threshold_at(CONFIDENCES, share) >= CONFIDENCES).sum() == rows
    assert threshold_at(np.full(4, 0.75), 0.5) == 0.75  # equally sure rows go on together


def test_chance_is_the_binomial_tail() -> None:
    for rows, right, share in ((5, 3, 0.5), (20, 19, 0.9), (3, 0, 0.2), (0, 0, 0.9)):
        ways = (math.comb(rows, n) * share**n * (1 - share) ** (rows - n) for n in range(right, rows + 1))
        assert chance(rows, right, share) == pytest.approx(sum(ways))


def test_as_many_tenths_are_answered_alone_as_keep_the_promise() -> None:
    rising = np.linspace(0.5, 0.9, 1000)
    right = np.ones(1000, bool)
    right[:400] = False
    alone = answers_alone(stretches(rising, right), 0.95)
    assert (alone.rows, alone.right) == (600, 600) and (rising > alone.threshold).sum() == 600
    assert answers_alone(stretches(rising, right), 0.8).rows == 700
    assert answers_alone(stretches(rising[-58:], right[-58:]), 0.95) is None
    assert answers_alone(stretches(rising[-59:], right[-59:]), 0.95).rows == 59
    assert answers_alone(stretches(np.full(1000, 0.7), right), 0.95) is None


def test_a_promise_is_broken_at_most_as_often_as_its_level_says() -> None:
    # Each answer is right with the probability that a student states, or that it overstates by 0.03.
    for bias in (0.0, 0.03):
        broken = []
        for number in range(400):
            rng = np.random.default_rng(number)
            sure = rng.uniform(0.6, 1.0, 600)
            alone = answers_alone(stretches(sure, rng.random(600) < sure - bias), 0.85)
            if alone is not None:
                broken.append((alone.threshold + 1) / 2 - bias < 0.85)
        assert len(broken) > 100 and sum(broken) / 400 <= 1 - LEVEL


def routed(student: list[bool], teacher: list[bool], labelled: tuple[str, ...] = ("dev", "test")) -> Routed:
    rising = {"dev": np.linspace(0.5, 0.9, 500), "test": np.full(500, 0.5)}
    student_hits, teacher_hits = (np.repeat(hits, 100) for hits in (student, teacher))
    return Routed(
        {split: {1: values} for split, values in rising.items()},
        {split: {1: student_hits == teacher_hits} for split in rising},
        {split: {1: student_hits} for split in labelled},
        {split: teacher_hits for split in labelled},
        0.1,
    )


def test_student_and_teacher_together() -> None:
    # The student errs in its two least sure fifths; there, the teacher is right.
    together = routed([False, False, True, True, True], [True] * 5).routing()
    assert together.best.share == together.best.routed["dev"] == 0.4 and together.best.accuracy["dev"].mean == 1.0
    assert together.best.routed["test"] == together.best.accuracy["test"].mean == 1.0
    assert together.best.cost == {"dev": 0.5, "test": 1.1} and together.agreement == {"dev": 1.0, "test": None}
    assert together.teacher_accuracy == {"dev": 1.0, "test": 1.0}
    assert tuple(point.share for point in together.curve) == SHARES
    assert [together.curve[end].accuracy["dev"].mean for end in (0, -1)] == [0.6, 1.0]
    hidden = routed([False, False, True, True, True], [True] * 5, ()).routing()
    assert hidden.best.routed == together.best.routed and hidden.agreement == together.agreement
    assert hidden.best.accuracy == {"dev": None, "test": None} and hidden.teacher_accuracy == {}
    assert routed([False] * 5, [True] * 5).routing().best.thresholds == {"1": 1.0}
