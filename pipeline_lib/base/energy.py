"""Energy that this machine takes while a stage runs, where its counters can be read.

Processors count in Linux's powercap folder (RAPL): the packages, that is cores, caches and memory
controllers, without memory, disks and fans.  Since Linux 5.10 only root may read it, unless an
administrator allows it.  NVIDIA's accelerators count in their driver (NVML, from Volta on).

Both are of the whole machine: other processes on it are counted too, and other machines are not.
"""

import ctypes
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

POWERCAP = Path("/sys/class/powercap")
MOST_WATTS = 600.0
"""More than a processor's package takes.  A counter that would need more than this to pass its
range since it was last read has passed it once at most."""
PAUSE = 10.0
"""Seconds between two readings while a stage runs."""
Energy = dict[str, float | None]
"""Joules of ``processor`` and ``accelerators``; None where they cannot be read."""


class Package:
    """The counter of one processor package.

    It starts again at 0 after some 65 or 262 kJ, which a busy processor takes in minutes.

    :param folder: of the package in the powercap folder.
    :raises OSError, ValueError: if it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._counter = folder / "energy_uj"
        self._range = int((folder / "max_energy_range_uj").read_text())
        self._last, self._when = int(self._counter.read_text()), time.monotonic()
        self._total: int | None = 0

    def read(self) -> int | None:
        """Return the microjoules since the start; None if the counter may have wrapped twice."""
        value, now = int(self._counter.read_text()), time.monotonic()
        if (now - self._when) * MOST_WATTS * 1e6 >= self._range:
            self._total = None
        if self._total is not None:
            self._total += (value - self._last) % self._range
        self._last, self._when = value, now
        return self._total


class Accelerators:
    """The energy counters of all NVIDIA accelerators of this machine.

    :param library: NVML; by default the driver's.
    :raises OSError: if there is no driver, or an accelerator that does not count.
    """

    def __init__(self, library: Any = None) -> None:
        # The library stays initialised: otherwise the driver may be unloaded, and count from 0.
        self._nvml = library or ctypes.CDLL("libnvidia-ml.so.1")
        self._call("nvmlInit_v2")
        number = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(number))
        self._handles = [ctypes.c_void_p() for _ in range(number.value)]
        for index, handle in enumerate(self._handles):
            self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
        if not self._handles:
            raise OSError("NVML: no accelerators")
        self._start = self._millijoules()

    def read(self) -> int:
        """Return the millijoules since the start."""
        return self._millijoules() - self._start

    def _millijoules(self) -> int:
        total = 0
        for handle in self._handles:
            counter = ctypes.c_ulonglong()
            self._call("nvmlDeviceGetTotalEnergyConsumption", handle, ctypes.byref(counter))
            total += counter.value
        return total

    def _call(self, function: str, *arguments: Any) -> None:
        if status := getattr(self._nvml, function)(*arguments):
            raise OSError(f"NVML: {function}: status {status}")


class Meter:
    """Adds up what this machine takes from now on.

    :param powercap: the folder of the packages; :param nvml: see :class:`Accelerators`.
    """

    def __init__(self, powercap: Path, nvml: Any = None) -> None:
        self._packages: list[Package] = []
        self._accelerators: Accelerators | None = None
        with suppress(OSError, ValueError):
            self._packages = [Package(folder) for folder in _packages(powercap)]
        with suppress(OSError, AttributeError):
            self._accelerators = Accelerators(nvml)
        self._next = time.monotonic() + PAUSE

    def sample(self) -> None:
        """Read the packages' counters if that was some time ago, so that no wrap is missed."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PAUSE
            self._of_packages()

    def energy(self) -> Energy:
        """Return the joules since the meter was made."""
        milli = None
        with suppress(OSError):
            milli = self._accelerators and self._accelerators.read()
        return {"processor": self._of_packages(), "accelerators": None if milli is None or milli < 0 else milli / 1e3}

    def _of_packages(self) -> float | None:
        try:
            micro = [package.read() for package in self._packages]
        except (OSError, ValueError):
            return None
        return sum(micro) / 1e6 if micro and None not in micro else None


def _packages(powercap: Path) -> list[Path]:
    """Return the folders of the packages, without the domains within and around them."""
    folders = sorted(powercap.glob("intel-rapl:*"))
    return [path for path in folders if (path / "name").read_text().startswith("package")]


_running: Meter | None = None


def start_meter() -> Meter:
    """Return a meter that :func:`sample` reads from now on."""
    global _running
    _running = Meter(POWERCAP)
    return _running


def sample() -> None:
    """Read the running meter; to be called now and then, by whatever reports progress."""
    if _running is not None:
        _running.sample()
