"""How many threads torch uses, set without importing torch unless something else has."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""The variables that torch reads when it is imported."""


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
