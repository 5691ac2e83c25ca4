"""The approximate index of vectors: a query's candidates without scanning all rows.

It is usearch's nearest-neighbour graph (HNSW) by cosine, and holds the vectors as float16, in memory while it is built.
"""

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.errors import PotstillError, install_extra, reason_of
from pipeline_lib.base.files import atomic_path

Blocks = Iterable[tuple[int, np.ndarray]]
"""First row numbers and vectors, float16 or float32 (rows, width), in row order."""
Candidates = Callable[[np.ndarray, int], list[np.ndarray]]
"""Queries, float32 (queries, width), and a number to each query's nearest rows, int64, at most as many."""


def write_approximate(path: Path, blocks: Blocks, width: int) -> None:
    """Write the index of vectors to ``path``, atomically."""
    index = graph_type()(ndim=width, metric="cos", dtype="f16")
    for first, vectors in blocks:
        keys = np.arange(first, first + len(vectors), dtype=np.uint64)
        # Several threads link some rows so badly that no query finds them, others at each build.
        index.add(keys, np.ascontiguousarray(vectors, np.float32), threads=1)
    with atomic_path(path) as temporary:
        try:
            index.save(str(temporary))
        except RuntimeError as error:  # if the disk is full
            raise OSError(str(error)) from error


def open_approximate(path: Path) -> Candidates:
    """Map an index into memory, to be searched."""
    try:
        index = graph_type().restore(str(path), view=True)
        if index is None:
            raise ValueError("no header")
    except (OSError, RuntimeError, ValueError) as error:
        raise PotstillError(
            f"{path}: not an index of usearch ({reason_of(error)}). Delete it, and run the same `distill index` again."
        ) from error

    def candidates(queries: np.ndarray, count: int) -> list[np.ndarray]:
        result = index.search(queries, min(count, len(index)))
        # For a single query it returns the matches themselves, for several a batch of them.
        per_query = [result] if len(queries) == 1 else [result[row] for row in range(len(queries))]
        return [matches.keys.astype(np.int64) for matches in per_query]

    return candidates


def graph_type() -> Any:
    """Return usearch's class of indexes, or say how to install it."""
    try:
        return importlib.import_module("usearch.index").Index
    except ImportError as error:
        raise PotstillError(
            f"approximate: usearch is not installed. Run `{install_extra('usearch')}`, or search exactly."
        ) from error
