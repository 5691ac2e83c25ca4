"""Timing by a clock made up here: who is called how often, on which texts, and what is counted."""

from collections.abc import Sequence

import numpy as np
import pytest

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.exports.timing import GROUP, latency, spread, time_in_turns

TEXTS = ["x" * length for length in range(10 * GROUP)]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class System:
    """A system that takes so long per call and per text.

    :ivar calls: how many texts each call had.
    """

    def __init__(self, clock: Clock, per_text: float, per_call: float = 0.0) -> None:
        self.clock, self.per_text, self.per_call = clock, per_text, per_call
        self.calls: list[int] = []

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(len(texts))
        self.clock.now += self.per_call + self.per_text * len(texts)
        return np.zeros((len(texts), 2))


@pytest.mark.parametrize("rate", [2.0, 50.0, 170.0, 8000.0, 300000.0])
@pytest.mark.parametrize("seconds", [0.01, 1.0])
def test_a_turn_lasts_long_enough_and_not_much_longer(rate: float, seconds: float) -> None:
    clock = Clock()
    system = System(clock, 1 / rate)
    found = time_in_turns({"a": system}, TEXTS, seconds, repeats=3, clock=clock)["a"]
    assert (found.min, found.median, found.max) == pytest.approx([rate] * 3, rel=0.001)
    turn = system.calls[-1]
    assert turn / rate >= seconds * (1 - 1e-9)
    # Whole groups are timed, so a slow system takes longer.
    assert turn <= max(1.2 * seconds * rate + GROUP, GROUP)
    assert system.calls[-3:] == [turn] * 3


def test_overhead_is_spread_over_a_turn_and_systems_take_turns() -> None:
    clock, order = Clock(), []
    found = time_in_turns({"a": System(clock, 1e-4, 0.01)}, TEXTS, 1.0, 3, clock)["a"]
    assert 9800 < found.median < 10000
    systems = {name: System(clock, 1e-3) for name in "ab"}
    calling = {name: lambda texts, name=name: order.append(name) or systems[name](texts) for name in "ab"}
    time_in_turns(calling, TEXTS, 1.0, 2, clock)
    assert order[-4:] == ["a", "b", "a", "b"]


def test_a_turn_that_ends_early_goes_on_with_the_same_texts() -> None:
    clock = Clock()
    system = System(clock, 1e-3)

    def faster_once_warm(texts: Sequence[str]) -> np.ndarray:
        system.per_text = 1e-3 if len(system.calls) < 3 else 2.5e-4
        return system(texts)

    found = time_in_turns({"a": faster_once_warm}, TEXTS, 1.0, 1, clock)["a"]
    assert found.median == pytest.approx(4000)
    turn = system.calls[-1]
    assert system.calls[-4:] == [turn] * 4 and 4 * turn * 2.5e-4 >= 1.0


@pytest.mark.parametrize("count", [1, GROUP, GROUP + 1, 3 * GROUP, 10 * GROUP, 23 * GROUP + 5])
def test_texts_are_spread_evenly_over_all_lengths(count: int) -> None:
    texts = spread(TEXTS, count)
    assert count <= len(texts) < count + GROUP and len(texts) % GROUP == 0
    lengths = np.array([len(text) for text in texts])
    assert lengths.mean() == pytest.approx(np.mean([len(t) for t in TEXTS]), abs=GROUP / 2)
    groups = lengths.reshape(-1, GROUP)
    assert (groups[:, -1] - groups[:, 0] == GROUP - 1).all()
    assert spread(["a", "bb"], 5) == ["a", "bb"] and len(spread(["a", "bb"], 100)) == 8


def test_latency_is_that_of_single_texts_in_any_order() -> None:
    clock = Clock()
    system = System(clock, 0.002)
    assert latency(system, TEXTS, 1.0, clock) == pytest.approx(2.0)
    assert set(system.calls) == {1} and len(system.calls) == pytest.approx(500, abs=1)
    slow = System(clock, 3.0)
    assert latency(slow, TEXTS[:3], 1.0, clock) == pytest.approx(3000)
    assert len(slow.calls) == 16


def test_agreement_is_of_classes_or_a_correlation() -> None:
    logits = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 2.0], [1.0, 2.0]])
    moved = logits + np.array([[0, 0], [0, 0], [0, 0], [3, 0]])
    assert KINDS["classification"].same_answers(logits, moved) == 0.75
    scores = np.array([[1.0], [2.0], [4.0]])
    assert KINDS["regression"].same_answers(scores, 3 * scores + 1) == pytest.approx(1.0)
    marks = np.array([[1.0, -1.0], [1.0, 1.0]])
    assert KINDS["multilabel"].same_answers(marks, marks * [[1, 1], [1, -1]]) == 0.75
    assert KINDS["regression"].same_answers(scores, -scores) == pytest.approx(-1.0)
