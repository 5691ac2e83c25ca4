"""Measures sentences per second and latency, from raw text to logits, tokenisation included.

Systems take turns within one process, so that other load on the machine affects all of them equally.
"""

import os
import random
import statistics
import time
from collections.abc import Callable, Sequence

from pipeline_lib.base.text import Text
from pipeline_lib.models.folders import Predict
from pipeline_lib.results.speed import Rate

GROUP = 32
"""Sentences of similar length that stay together, so that a system that is timed on few sentences
pads its batches no more than one that is timed on many."""
LATENCIES = 16
Clock = Callable[[], float]


def use_cores(count: int) -> None:
    """Limit this process to some of its cores; call it before it starts any thread.

    A thread that already runs keeps its cores.  A system that cannot assign cores to processes,
    such as macOS, is left with torch's number of threads.
    """
    import torch

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    torch.set_num_threads(count)


def spread(texts: Sequence[Text], count: int) -> list[Text]:
    """Return ``count`` texts, rounded up to whole groups, evenly from the shortest to the longest.

    If there are too few, all of them are repeated.

    :param texts: sorted by length.
    """
    groups = [texts[start : start + GROUP] for start in range(0, len(texts), GROUP)]
    rounds, rest = divmod(-(-count // GROUP), len(groups))
    some = [groups[int((number + 0.5) * len(groups) / rest)] for number in range(rest)]
    return [text for group in [*groups * rounds, *some] for text in group]


def time_in_turns(
    systems: dict[str, Predict], texts: Sequence[Text], seconds: float, repeats: int, clock: Clock = time.perf_counter
) -> dict[str, Rate]:
    """Return each system's texts or pairs per second.

    :param texts: sorted by length.
    """
    turns = {name: _turn(predict, texts, seconds, clock) for name, predict in systems.items()}
    rates: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(repeats):
        for name, predict in systems.items():
            rates[name].append(_rate(predict, turns[name], seconds, clock))
    return {name: Rate.of(values) for name, values in rates.items()}


def _turn(predict: Predict, texts: Sequence[Text], seconds: float, clock: Clock) -> list[Text]:
    """Return texts that take a system a little longer than ``seconds``."""
    # The first call pays for kernels, caches and lazy imports.
    predict(spread(texts, GROUP))
    count, elapsed = GROUP, 0.0
    while elapsed < seconds / 10:
        start = clock()
        predict(spread(texts, count))
        elapsed = max(clock() - start, 1e-9)
        count = int(count * min(12.0, 1.1 * seconds / elapsed))
    return spread(texts, max(count, 1))


def _rate(predict: Predict, texts: Sequence[Text], seconds: float, clock: Clock) -> float:
    start, answered, elapsed = clock(), 0, 0.0
    while elapsed < seconds:
        predict(texts)
        answered += len(texts)
        elapsed = clock() - start
    return answered / elapsed


def latency(predict: Predict, texts: Sequence[Text], seconds: float, clock: Clock = time.perf_counter) -> float:
    """Return the median time of a call with a single text, in milliseconds.

    :param texts: sorted by length.
    :param seconds: for how long calls are made, unless they are very few.
    """
    order = random.Random(0).sample(range(len(texts)), len(texts))
    durations: list[float] = []
    while len(durations) < LATENCIES or sum(durations) < seconds:
        text = texts[order[len(durations) % len(order)]]
        start = clock()
        predict([text])
        durations.append(clock() - start)
    return 1000 * statistics.median(durations)
