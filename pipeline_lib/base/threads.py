"""How many cores there are, and how many threads torch uses, without importing torch."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""The variables that torch reads when it is imported."""

CGROUP = Path("/sys/fs/cgroup")
"""The folder in which Linux says what a container may use."""


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
