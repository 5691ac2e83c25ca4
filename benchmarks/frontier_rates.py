"""Sentences per second of the frontier's systems on a number of cores; frontier.py starts it.

    python benchmarks/frontier_rates.py JOB.json RATES.json CORES

It is a separate process because libraries read their number of threads when they are imported;
:func:`environment` sets it for them.
"""

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from frontier_systems import Predict, System
from harness import rate, seconds, summary, take_turns

from pipeline_lib.base.text import Text

SHARE = 16
"""One sentence in this many is enough for a system that needs more than SLOW seconds for them."""
SLOW = 1.0
"""So few sentences are not sorted into batches of similar length: a student that predicts in large
batches must be fast enough to be timed with all."""


def environment(cores: int) -> dict[str, str]:
    """Return the environment of a process that may use this many cores."""
    threads = {name: str(cores) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return os.environ | threads | {"TOKENIZERS_PARALLELISM": "true" if cores > 1 else "false"}


def main(job: Path, out: Path, cores: int) -> None:
    """Time all systems of the job in turns, each from raw text to probabilities."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    asked = json.loads(job.read_text("utf-8"))
    # JSON has no tuples, and a pair is one.
    sample = [text if isinstance(text, str) else tuple(text) for text in asked["sample"]]
    turns = {}
    for record in asked["systems"]:
        system = System(**record)
        turns[system.name] = _turn(system.load(), sample)
    rates = take_turns(turns, asked["repeats"])
    summaries = {name: summary(values) for name, values in rates.items()}
    out.write_text(json.dumps(summaries), "utf-8")


def _turn(predict: Predict, sample: list[Text]) -> Callable[[], float]:
    share = sample[::SHARE]
    predict(share)  # one-off work is not counted
    rows = share if seconds(lambda: predict(share)) > SLOW else sample
    return partial(rate, predict, rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
