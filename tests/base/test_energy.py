"""The energy of a stage: from counters that wrap, that are forbidden, that are not there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base import energy
from pipeline_lib.base.energy import Meter

RANGE = 262_143_328_850
"""Microjoules after which a counter starts again: with 600 W, after 437 s."""


class FakeNvml:
    """A driver of cards whose counters hold so many millijoules; None: a card has none."""

    def __init__(self, *millijoules: int | None) -> None:
        self.millijoules = list(millijoules)

    def nvmlInit_v2(self) -> int:  # noqa: N802  its name
        return 0

    def nvmlDeviceGetCount_v2(self, number: Any) -> int:  # noqa: N802
        number._obj.value = len(self.millijoules)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:  # noqa: N802
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, total: Any) -> int:  # noqa: N802
        value = self.millijoules[handle.value - 1]
        if value is None:
            return 3  # NVML_ERROR_NOT_SUPPORTED
        total._obj.value = value
        return 0


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide this machine's own accelerators."""

    def refuse(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(energy.ctypes, "CDLL", refuse)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what lets time pass."""
    now = [100.0]
    monkeypatch.setattr(energy.time, "monotonic", lambda: now[0])
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


def domain(powercap: Path, name: str, called: str, microjoules: int) -> Path:
    """Write one domain of a powercap folder; return its counter."""
    folder = powercap / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{called}\n")
    (folder / "max_energy_range_uj").write_text(f"{RANGE}\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    return folder / "energy_uj"


def processor(meter: Meter) -> float | None:
    return meter.energy()["processor"]


def test_packages_are_added_up_and_nothing_twice(tmp_path: Path, clock: Callable[[float], None]) -> None:
    first = domain(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    second = domain(tmp_path, "intel-rapl:1", "package-1-die-0", 7)
    others = [
        domain(tmp_path, "intel-rapl:0:0", "core", 0),  # a part of package 0
        domain(tmp_path, "intel-rapl:2", "psys", 0),  # the board, packages included
        domain(tmp_path, "intel-rapl-mmio:0", "package-0", 0),  # the same as another interface
    ]
    meter = Meter(tmp_path)
    assert meter.energy() == {"processor": 0.0, "accelerators": None}
    for counter in others:
        counter.write_text("999000000")
    first.write_text("8500000")
    second.write_text("1000007")
    clock(1)
    assert processor(meter) == 4.5


def test_a_counter_that_starts_again_is_read_on(tmp_path: Path, clock: Callable[[float], None]) -> None:
    counter = domain(tmp_path, "intel-rapl:0", "package-0", RANGE - 1_000_000)
    meter = Meter(tmp_path)
    # Two hours at some 140 W, read every few minutes: it starts again every half hour.
    total = 0
    for _ in range(24):
        clock(300)
        total += 42_000_000_000
        counter.write_text(str((RANGE - 1_000_000 + total) % RANGE))
        meter.sample()
    assert total > 3 * RANGE and processor(meter) == total / 1e6


def test_a_counter_that_may_have_started_again_twice_is_unknown(tmp_path: Path, clock: Callable[[float], None]) -> None:
    domain(tmp_path, "intel-rapl:0", "package-0", 0)
    meter = Meter(tmp_path)
    clock(430)
    assert processor(meter) == 0.0
    clock(440)
    assert processor(meter) is None
    clock(1)
    assert processor(meter) is None


def test_what_cannot_be_read_is_unknown_and_not_0(tmp_path: Path) -> None:
    assert Meter(tmp_path / "none").energy() == {"processor": None, "accelerators": None}
    counter = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    domain(tmp_path, "intel-rapl:1", "package-1", 0)
    meter = Meter(tmp_path)
    # As a counter that only root may read: it is there, and cannot be opened.
    counter.unlink()
    counter.mkdir()
    assert processor(meter) is None
    # One package of two is not the machine.
    assert processor(Meter(tmp_path)) is None


def test_accelerators_count_in_their_driver(tmp_path: Path) -> None:
    nvml = FakeNvml(1_000_000, 50)
    meter = Meter(tmp_path, nvml)
    nvml.millijoules = [1_002_500, 1050]
    assert meter.energy() == {"processor": None, "accelerators": 3.5}
    # A driver that was loaded again counts from 0.
    nvml.millijoules = [10, 10]
    assert meter.energy()["accelerators"] is None
    nvml.millijoules = [None, 10]
    assert meter.energy()["accelerators"] is None


@pytest.mark.parametrize("nvml", [FakeNvml(), FakeNvml(5, None), object()])
def test_no_accelerators_or_some_that_do_not_count(tmp_path: Path, nvml: Any) -> None:
    assert Meter(tmp_path, nvml).energy()["accelerators"] is None


def test_the_running_meter_is_read_as_progress_is_shown(
    tmp_path: Path, clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline_lib.base.progress import show_progress

    counter = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    monkeypatch.setattr(energy, "_running", None)
    energy.sample()  # outside a stage there is none
    meter = energy.start_meter()
    with show_progress("training", "steps") as advance:
        for done in range(1, 5):
            clock(400)
            counter.write_text(str(done * 200_000_000_000 % RANGE))
            advance(done, 5)
    assert processor(meter) == 800_000.0
