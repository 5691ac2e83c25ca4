"""Timing: who is called how often, and what is said of the machine."""

from collections.abc import Sequence

from pipeline_lib.evaluation.speed import time_in_turns


def test_contestants_take_turns_after_one_warm_up_each() -> None:
    calls: list[str] = []

    def contestant(name: str) -> object:
        def predict(texts: Sequence[str]) -> None:
            calls.append(f"{name}{len(texts)}")

        return predict

    found = time_in_turns({n: contestant(n) for n in "ab"}, ["x"] * 100, repeats=2)
    assert calls == ["a64", "b64", "a100", "b100", "a100", "b100"]
    assert all(rate["min"] <= rate["median"] <= rate["max"] for rate in found.values())
