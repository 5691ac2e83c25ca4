"""Sentences per second of the frontier's systems on a number of cores; frontier.py starts it.

    python benchmarks/frontier_rates.py JOB.json RATES.json CORES

It is a separate process because libraries read their number of threads when they are imported;
:func:`environment` sets it for them.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from frontier_systems import Predict, System
from harness import summary, take_turns

SLOW = {"teacher": 16, "SetFit": 16}
"""For slow systems, one sentence in this many is enough."""


def environment(cores: int) -> dict[str, str]:
    """Return the environment of a process that may use this many cores."""
    threads = {name: str(cores) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return os.environ | threads | {"TOKENIZERS_PARALLELISM": "true" if cores > 1 else "false"}


def main(job: Path, out: Path, cores: int) -> None:
    """Time all systems of the job in turns, each from raw text to probabilities."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    asked = json.loads(job.read_text("utf-8"))
    turns = {}
    for record in asked["systems"]:
        system = System(**record)
        share = SLOW.get(system.name.split(",")[0], 1)
        turns[system.name] = _turn(system.load(), asked["sample"][::share])
    for measure in turns.values():
        measure()  # one-off work is not counted
    rates = take_turns(turns, asked["repeats"])
    found = {name: summary(values) for name, values in rates.items()}
    out.write_text(json.dumps(found), "utf-8")


def _turn(predict: Predict, sample: list[str]) -> Callable[[], float]:
    def measure() -> float:
        start = time.perf_counter()
        predict(sample)
        return len(sample) / (time.perf_counter() - start)

    return measure


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
