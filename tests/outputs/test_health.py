"""The gates of a teacher's outputs: what is refused, and the small cases that are not."""

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import splitmix64
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.outputs.health import check_agreement, check_outputs

DRAW = np.random.default_rng(1)


def check(outputs: np.ndarray, keys: np.ndarray | None = None, few: bool = False) -> None:
    rows = np.arange(len(outputs), dtype=np.uint64) if keys is None else keys
    check_outputs(outputs.astype(np.float32), rows, "logits of b000-i001.arrow", "Do it.", few)


def with_nan() -> np.ndarray:
    outputs = DRAW.normal(size=(40, 2))
    outputs[[3, 7]] = np.nan, np.inf
    return outputs


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (with_nan(), r"b000-i001\.arrow: not a finite .* 2 of 40 rows \(rows 3, 7\)\. Do it"),
        (np.ones((40, 2)), r"b000-i001\.arrow: constant: the same output for 40 different .* rows 0 to 39"),
        (np.eye(2)[DRAW.integers(2, size=100)], r"hardly unique: 2 different outputs for 100 .* rows 0 to 99"),
        (1.0 + 1e-6 * DRAW.normal(size=(64, 3)), r"variance gone: a deviation of .* for 64 different inputs"),
    ],
)
def test_outputs_that_cannot_be_right(outputs: np.ndarray, message: str) -> None:
    with pytest.raises(PotstillError, match=message):
        check(outputs)


def test_small_and_lawful_cases_pass() -> None:
    check(np.zeros((0, 2)))
    check(np.ones((3, 2)))
    check(np.ones((31, 2)))
    check(np.ones((500, 2)), keys=np.zeros(500, np.uint64))
    # A shard of one class, an untrained head, a teacher in bfloat16 that is sure of everything.
    check(np.array([4.0, -4.0]) + 0.3 * DRAW.normal(size=(64, 2)))
    check(0.5 + 0.01 * DRAW.normal(size=(64, 2)))
    check(np.round((4.0 + 0.2 * DRAW.normal(size=(5000, 2))) * 64) / 64)
    check(np.eye(2)[DRAW.integers(2, size=100)], few=True)


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_agreement_far_below_the_teachers_own_is_refused(kind: str) -> None:
    regression = kind == "regression"
    labels = splitmix64(np.arange(400, dtype=np.uint64)) % np.uint64(2)
    outputs = np.eye(2)[labels.astype(int)] + 0.01
    if regression:
        labels = DRAW.normal(size=400).astype(np.float32)
        outputs = labels[:, None] + 0.1 * DRAW.normal(size=(400, 1))
    rows = 3 * np.arange(400)
    given = 0.95, kind, "logits of b001-i000.arrow", "Do it."
    labels = labels.astype(np.float32 if regression else np.int64)
    check_agreement(labels, outputs, rows, *given)
    with pytest.raises(PotstillError, match=r"b001-i000\.arrow: .* 400 labelled .* is 95\.0%"):
        check_agreement(labels, np.roll(outputs, 1, axis=0), rows, *given)
    # Too few to say, and labels of one class.
    check_agreement(labels[:31], -outputs[:31], rows[:31], *given)
    assert KINDS[kind].chance_agreement(labels, outputs) < 0.8


def test_rows_at_odds_with_their_labels_are_named_as_the_shard_numbers_them() -> None:
    labels, rows = np.arange(40) % 2, 10 + np.arange(40)
    outputs = np.eye(2)[labels]
    outputs[20:] = outputs[20:, ::-1]
    with pytest.raises(PotstillError, match=r"class: rows 30, 31, 32, 33, 34 and 15 more\)"):
        check_agreement(labels, outputs, rows, 0.95, "classification", "logits", "Do it.")
    scores = np.linspace(0.0, 1.0, 40)
    shuffled = np.tile([0.4, 0.6], 20)
    shuffled[[7, 5]] = 9.0, -8.0
    with pytest.raises(PotstillError, match=r"labels first: rows 17, 15, "):
        check_agreement(scores, shuffled[:, None], rows, 0.95, "regression", "logits", "Do it.")


def test_what_chance_leaves_shrinks_with_the_rows() -> None:
    assert KINDS["classification"].least_agreement(0.9, 36) == pytest.approx(0.9 - 4 * 0.05 - 0.03)
    assert KINDS["classification"].least_agreement(1.0, 100) == pytest.approx(1.0 - 0.04 - 0.03)
    assert KINDS["classification"].least_agreement(0.9, 40_000) > 0.86
    few, many = (KINDS["regression"].least_agreement(0.9, rows) for rows in (36, 4000))
    assert 0.2 < few < many < 0.87
