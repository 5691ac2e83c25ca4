"""Reliability diagrams, answers against labels, and which rows are explained, on small numbers."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.calibration import BINS, reliability
from pipeline_lib.evaluation.word_importance_examples import EACH, _labels, _merit, explained_method, extremes
from pipeline_lib.results.diagrams import MAX_CLASSES, OTHERS, confusion_of, reliability_of
from tests.kit.made_up import made_up_method, made_up_scores


@pytest.mark.parametrize("rows", [7, 15, 200])
def test_a_diagrams_mean_distance_is_the_calibration_error(rows: int) -> None:
    draw = np.random.default_rng(1)
    labels, logits = draw.integers(0, 3, rows), draw.normal(size=(rows, 3))
    said, true = reliability(labels, logits)
    assert said.shape == true.shape == (BINS,)
    assert np.all(np.diff(said) >= -1e-9)
    error = KINDS["classification"].details(labels, logits)["ece"]
    assert np.abs(true - said).mean() == pytest.approx(error)


def test_seeds_are_averaged_and_rows_without_an_answer_left_out() -> None:
    labels = np.array([0, 1, 1])
    teacher = np.array([[3.0, 0.0], [np.nan, np.nan], [0.0, 3.0]], np.float32)
    students = [np.array([[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]]), np.array([[0.0, 9.0]] * 3)]
    outputs = {"teacher": [teacher], "student": students}
    found = reliability_of(labels, outputs, "classification")
    assert found["teacher"]["observed"] == pytest.approx([1.0] * BINS)
    assert np.mean(found["student"]["observed"]) == pytest.approx(2 / 3, abs=1e-6)
    counted = confusion_of(labels, outputs, ["no", "yes"], "classification")
    assert counted["counts"]["teacher"] == [[1.0, 0.0], [0.0, 1.0]]
    assert counted["counts"]["student"] == [[0.5, 0.5], [0.5, 1.5]]
    assert (counted["names"], counted["left_out"]) == (["no", "yes"], 0)


def test_scores_are_compared_in_ranges_and_in_bins_by_the_answer() -> None:
    labels = np.linspace(-1.0, 1.0, 60)
    outputs = {"exact": [labels[:, None]], "far": [np.full((60, 1), 9.0)]}
    found = confusion_of(labels, outputs, ["score"], "regression")
    assert np.array(found["counts"]["exact"]).diagonal().sum() == 60
    # What lies beyond the labels' range falls into the outermost.
    assert np.array(found["counts"]["far"])[:, -1].sum() == 60
    assert found["names"][0] == "-1 to -0.667"
    bins = reliability_of(labels, outputs, "regression")
    assert bins["exact"]["predicted"] == bins["exact"]["observed"]
    assert bins["far"]["predicted"] == [9.0] * BINS


def test_of_many_classes_those_mistaken_most_are_shown() -> None:
    classes = MAX_CLASSES + 8
    labels = np.repeat(np.arange(classes), 2)
    answers = labels.copy()
    answers[-2:] = 0
    outputs = {"student": [np.eye(classes)[answers]]}
    found = confusion_of(labels, outputs, [f"c{n}" for n in range(classes)], "classification")
    assert len(found["names"]) == MAX_CLASSES and found["names"][-1] == OTHERS
    assert {"c0", f"c{classes - 1}"} <= set(found["names"])
    assert found["left_out"] == classes - MAX_CLASSES + 1
    assert np.sum(found["counts"]["student"]) == len(labels)


def test_rows_are_explained_where_distillation_helped_and_hurt_most() -> None:
    given = ["one two three four", "too short", "a b c d", "one two three four", "e f g h", "i j k l"]
    differences = np.array([0.5, 0.9, -0.3, 0.4, 0.1, np.nan])
    assert extremes(differences, given) == [(0, "helped"), (4, "helped"), (2, "hurt")]
    many = [(f"word {n} of many", "and as many here") for n in range(20)]
    found = extremes(np.linspace(-1, 1, 20), many)
    assert [row for row, _ in found] == [19, 18, 17, 0, 1, 2]
    assert [kind for _, kind in found].count("hurt") == EACH


def test_the_best_distilled_row_is_explained() -> None:
    gain = {"difference": 0.02, "low": None, "high": None, "p": None, "p_holm": None}
    made = {"bilstm": made_up_method(0.95), "kd": made_up_method(0.8, gain)}
    assert explained_method(made_up_scores(made | {"ts": made_up_method(0.9, gain)})) == "ts"
    assert explained_method(made_up_scores({"bilstm": made_up_method(0.95)})) is None


def test_an_answer_is_as_good_as_its_probability_or_its_distance_to_the_label() -> None:
    scores = np.array([[1.0], [-2.0]])
    assert _merit(scores, np.array([1.5, 1.0]), 1.0, "regression").tolist() == [-0.5, -3.0]
    logits = np.array([[0.0, np.log(3.0)], [0.0, np.log(3.0)]])
    assert _merit(logits, np.array([1, 0]), 1.0, "classification") == pytest.approx([0.75, 0.25])


def test_a_row_without_a_label_or_an_answer_is_not_explained() -> None:
    teacher = np.array([[2.0, 0.0], [np.nan, np.nan], [0.0, 2.0]])
    labels = _labels(pa.chunked_array([[None, None, 1]]), teacher, "classification")
    assert labels.tolist() == [0, -1, 1]
    merits = [_merit(sign * np.array([[9.0, 0.0]] * 3), labels, 1.0, "classification") for sign in (1, -1)]
    assert np.isnan(merits[0]).tolist() == [False, True, False]
    given = [f"{word} two three four" for word in ("a", "b", "c")]
    assert extremes(merits[0] - merits[1], given) == [(0, "helped"), (2, "hurt")]
