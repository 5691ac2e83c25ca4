"""Timing: who is called how often, and what is said of the machine."""

from collections.abc import Sequence
from pathlib import Path

from pipeline_lib.evaluation.speed import cpu_name, time_in_turns


def test_contestants_take_turns_after_one_warm_up_each() -> None:
    calls: list[str] = []

    def contestant(name: str) -> object:
        def predict(texts: Sequence[str]) -> None:
            calls.append(f"{name}{len(texts)}")

        return predict

    found = time_in_turns({n: contestant(n) for n in "ab"}, ["x"] * 100, repeats=2)
    assert calls == ["a64", "b64", "a100", "b100", "a100", "b100"]
    assert all(rate["min"] <= rate["median"] <= rate["max"] for rate in found.values())


def test_cpu_name_is_read_where_the_system_tells(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: Fast CPU: 2 GHz\n")
    assert cpu_name(info) == "Fast CPU: 2 GHz"
    assert cpu_name(tmp_path / "absent")
