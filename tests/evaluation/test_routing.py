"""Routing on rows worked out by hand, and on many made up."""

from typing import Any

import numpy as np
import pytest

from pipeline_lib.base.kinds.probabilities import threshold_at
from pipeline_lib.evaluation.routing import MAX_LOSS, SHARES, Routed
from pipeline_lib.results.schema import RoutingPoint

CONFIDENCES = np.array([0.9, 0.5, 0.7, 0.6, 0.8])


@pytest.mark.parametrize(("share", "threshold", "rows"), [(0.0, 0.0, 0), (0.4, 0.65, 2), (0.8, 0.85, 4), (1.0, 1.0, 5)])
def test_the_threshold_takes_the_least_sure_share(share: float, threshold: float, rows: int) -> None:
    assert threshold_at(CONFIDENCES, share) == pytest.approx(threshold)
    assert (threshold_at(CONFIDENCES, share) >= CONFIDENCES).sum() == rows
    assert threshold_at(np.full(4, 0.75), 0.5) == 0.75  # equally sure rows go on together


def routed(student: list[bool], teacher: list[bool], test: list[bool] | None = None) -> Routed:
    """One student whose dev rows are given by rising confidence; on test it is always unsure."""
    rising = np.linspace(0.5, 0.9, len(student))
    hits = {"dev": {1: np.array(student)}}
    teachers = {"dev": np.array(teacher)}
    if test is not None:
        hits["test"] = {1: np.zeros(len(test), bool)}
        teachers["test"] = np.array(test)
    return Routed({"dev": {1: rising}, "test": {1: np.full(4, 0.5)}}, hits, teachers, 0.1)


def test_the_least_share_that_keeps_the_teachers_accuracy() -> None:
    # The student errs in its two least sure rows; there, the teacher is right.
    found = routed([False, False, True, True, True], [True] * 5, [True] * 4).routing()
    assert found.best.share == found.best.routed["dev"] == 0.4
    assert found.best.accuracy["dev"].mean == 1.0
    # On test every row is as unsure as the least sure of dev.
    assert found.best.routed["test"] == found.best.accuracy["test"].mean == 1.0
    assert found.best.cost == {"dev": 0.5, "test": 1.1}
    assert found.teacher_accuracy == {"dev": 1.0, "test": 1.0}
    # Hidden splits have shares and no accuracy.
    best = routed([False, True], [True, True]).routing().best
    assert best.accuracy["test"] is None and best.routed["test"] == 1.0


def test_a_student_as_good_as_its_teacher_needs_none_and_a_useless_one_always() -> None:
    assert routed([True] * 4, [True] * 4).least_share() == 0.0
    assert routed([False] * 4, [True] * 4).least_share() == 1.0
    # It is right where the teacher errs, in its surest row: routing that, too, would cost.
    assert routed([False, True], [True, False]).routing().best.accuracy["dev"].mean == 1.0


def test_the_curve_runs_from_the_student_to_the_teacher() -> None:
    rng = np.random.default_rng(1)
    sure = {seed: rng.uniform(0.5, 1.0, 400) for seed in (1, 2)}
    hits = {seed: rng.random(400) < own for seed, own in sure.items()}
    teacher = rng.random(400) < 0.95
    found = Routed({"dev": sure}, {"dev": hits}, {"dev": teacher}, 0.05).routing()
    assert tuple(point.share for point in found.curve) == SHARES
    accuracies = [point.accuracy["dev"].by_seed for point in found.curve]
    assert accuracies[0] == {str(seed): own.mean() for seed, own in hits.items()}
    assert accuracies[-1] == dict.fromkeys(("1", "2"), teacher.mean())
    for point in found.curve:
        assert point.routed["dev"] == point.share
        assert point.cost["dev"] == pytest.approx(0.05 + point.share)
    # No smaller share will do: not one row less, on the average over seeds, less an error.
    routing = Routed({"dev": sure}, {"dev": hits}, {"dev": teacher}, 0.05)
    least, before = (
        _least_accuracy(routing.point(share), sure, hits, teacher)
        for share in (found.best.share, found.best.share - 1 / 400)
    )
    assert before < teacher.mean() - MAX_LOSS <= least + 1e-9


def _least_accuracy(point: RoutingPoint, sure: Any, hits: Any, teacher: np.ndarray) -> float:
    differences = []
    for seed, confidences in sure.items():
        routed = confidences <= point.thresholds[str(seed)]
        differences.append(np.where(routed, 0.0, hits[seed] * 1.0 - teacher))
    error = np.sqrt(np.mean([own.var() for own in differences]) / len(teacher))
    return point.accuracy["dev"].mean - error


def test_the_share_that_is_chosen_keeps_its_word_on_other_rows() -> None:
    # The student errs as it says, the teacher is right in 95 %; dev has 500 rows, test many.
    kept = []
    for number in range(40):
        rng = np.random.default_rng(number)
        sure = {s: {1: rng.uniform(0.5, 1.0, n)} for s, n in (("dev", 500), ("test", 20_000))}
        hits = {s: {1: rng.random(len(own[1])) < own[1]} for s, own in sure.items()}
        teacher = {s: rng.random(len(own[1])) < 0.95 for s, own in sure.items()}
        found = Routed(sure, hits, teacher, 0.05).routing()
        kept.append(found.best.accuracy["test"].mean >= found.teacher_accuracy["test"] - MAX_LOSS)
    # The smallest share that will do on dev keeps it in half of the cases.
    assert np.mean(kept) >= 0.75
