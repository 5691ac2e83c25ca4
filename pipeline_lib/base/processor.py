"""Which processor computed a result, how many cores there are, and how many threads torch uses.

The guarantee is the same bytes on the same kind of processor with the same versions, whatever the number of workers.
The processor is not part of any key: where two machines share a store, one uses what the other computed as it is.
It is recorded beside the result instead.  Nothing here imports torch before it is needed.
"""

import math
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path


def cpu_name(info: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's model name, or the architecture if the system does not report it."""
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").split("\n"):
            if line.lower().startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def computed_on(device: str) -> str:
    """Return what a result was computed on: the processor or accelerator, and torch's version."""
    import torch

    cuda = device.startswith("cuda")
    name = torch.cuda.get_device_name(device) if cuda else cpu_name()
    kind = f"{name} (mps)" if device.startswith("mps") else name
    return f"{kind}, torch {torch.__version__}"


def used_accelerators() -> list[str]:
    """Return the names of the accelerators whose memory this process has used, sorted.

    A process that has not imported torch has used none; it is not imported for this.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    numbers = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    used = [number for number in numbers if torch.cuda.max_memory_allocated(number)]
    names = {torch.cuda.get_device_name(number) for number in used}
    if torch.backends.mps.is_available() and torch.mps.driver_allocated_memory():
        names.add(f"{cpu_name()} (mps)")
    return sorted(names)


VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")

CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return how many cores this process may use: in a container, those of its quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, math.ceil(min(allowed or 1, _quota())))


def _quota() -> float:
    """Return how many cores' time a container may use; infinite if it is not limited."""
    current, former = CGROUP / "cpu.max", CGROUP / "cpu"  # of cgroup versions 2 and 1
    try:
        if current.exists():
            quota, period = current.read_text().split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = ((former / name).read_text().strip() for name in names)
    except OSError:
        return math.inf
    return math.inf if quota in ("max", "-1") else int(quota) / int(period)


def use_one_thread() -> None:
    """Limit torch to one thread from now on, whether it is imported yet or not."""
    os.environ |= dict.fromkeys(VARIABLES, "1")
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@contextmanager
def single_thread() -> Iterator[None]:
    """Limit torch to one thread within the block: its thread pool does not survive a fork."""
    variables = {name: os.environ.get(name) for name in VARIABLES}
    before = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None
    use_one_thread()
    try:
        yield
    finally:
        for name, value in variables.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if "torch" in sys.modules:
            threads = before or int(variables["OMP_NUM_THREADS"] or os.cpu_count() or 1)
            sys.modules["torch"].set_num_threads(threads)
