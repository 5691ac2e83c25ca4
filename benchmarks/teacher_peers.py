"""The usual ways to run a teacher: sentence-transformers' encode and transformers' pipeline."""

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import optional, rate, say

FORMATS = ("float32", "bfloat16", "float16")
BATCHES, ACCELERATOR_BATCHES = (32, 128, 256), (32, 256, 1024, 4096)
Run = Callable[[Sequence[str]], Any]


@contextmanager
def all_peers(
    teacher: Path, max_length: int, device: str, precisions: Sequence[str], cores: int
) -> Iterator[tuple[dict[str, Run], dict[str, str]]]:
    """Yield every peer at every setting of the grid, and why others are missing."""
    peers: dict[str, Run] = {}
    not_run: dict[str, str] = {}
    pools: list[tuple[Any, Any]] = []
    for name, load in (("sentence-transformers", _encoders), ("pipeline", _pipelines)):
        with optional(name, not_run):
            peers.update(load(teacher, max_length, device, precisions, cores, pools))
    try:
        yield peers, not_run
    finally:
        for model, pool in pools:
            model.stop_multi_process_pool(pool)


def _encoders(
    teacher: Path,
    max_length: int,
    device: str,
    precisions: Sequence[str],
    cores: int,
    pools: list[tuple[Any, Any]],
) -> Iterator[tuple[str, Run]]:
    import torch
    from sentence_transformers import SentenceTransformer

    for precision in precisions:
        # Without modules.json, a folder is an encoder with mean pooling, as documented.
        model = SentenceTransformer(
            str(teacher), device=device, model_kwargs={"dtype": getattr(torch, precision)}
        )
        model.max_seq_length = max_length
        encode = functools.partial(model.encode, show_progress_bar=False)
        for batch in BATCHES if device == "cpu" else ACCELERATOR_BATCHES:
            name = f"encode, {precision}, batch {batch}"
            yield name, lambda texts, e=encode, b=batch: e(list(texts), batch_size=b)
        if cores == 1 or device != "cpu":
            continue
        with _one_thread():
            pool = model.start_multi_process_pool(["cpu"] * cores)
        pools.append((model, pool))
        for batch in BATCHES:
            name = f"encode, {precision}, batch {batch}, a pool of {cores} one-thread processes"
            yield (
                name,
                lambda texts, e=encode, b=batch, p=pool: e(list(texts), batch_size=b, pool=p),
            )


def _pipelines(
    teacher: Path,
    max_length: int,
    device: str,
    precisions: Sequence[str],
    cores: int,
    pools: list[tuple[Any, Any]],
) -> Iterator[tuple[str, Run]]:
    import torch
    from transformers import pipeline

    for precision in precisions:
        run = pipeline(
            "text-classification", str(teacher), dtype=getattr(torch, precision), device=device
        )
        run = functools.partial(run, truncation=True, max_length=max_length, top_k=None)
        for batch in (1, *BATCHES):
            name = f"pipeline, {precision}, batch {batch}"
            yield name, lambda texts, r=run, b=batch: r(list(texts), batch_size=b)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit processes that are started inside the block to one thread each."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before


def rates_of(peers: dict[str, Run], texts: Sequence[str]) -> dict[str, float]:
    """Return the rows per second of every setting, the better of two runs."""
    rates = {}
    for name, run in peers.items():
        run(texts[:64])
        rates[name] = max(rate(run, texts) for _ in range(2))
        say(f"grid  {name}: {rates[name]:,.0f}")
    return rates


def defaults_and_best(grid: dict[str, float]) -> dict[str, str]:
    """Return the settings that take turns with ours, and their names."""
    roles: dict[str, list[str]] = {}
    for peer, default in (("encode", "float32, batch 32"), ("pipeline", "float32, batch 1")):
        names = [name for name in grid if name.startswith(peer)]
        if names:
            roles.setdefault(f"{peer}, {default}", []).append("defaults")
        for precision in FORMATS:
            same = [name for name in names if format_of(name) == precision]
            if same:
                best = max(same, key=grid.__getitem__)
                roles.setdefault(best, []).append(f"best of the grid in {precision}")
    return {name: "; ".join(words) for name, words in roles.items()}


def format_of(name: str) -> str:
    """Return the number format that a setting names."""
    return next(precision for precision in FORMATS if precision in name)
