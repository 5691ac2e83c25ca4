"""Approximate indexes of vectors, by usearch or faiss: a query's candidates without scanning all rows.

Both are nearest-neighbour graphs (HNSW) by cosine.  They hold the vectors as float16, in memory while they are built;
a search memory-maps usearch's file.
"""

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import numpy as np

from pipeline_lib.base.errors import PotstillError, install_extra, reason_of
from pipeline_lib.base.files import atomic_path
from pipeline_lib.shards.vectors import unit

LINKS = 32
"""Neighbours per vector in faiss's graph; usearch's default is 16."""
VISITED = 128
"""Minimum nodes that faiss visits per query: its default of 16 finds too little."""


Blocks = Iterable[tuple[int, np.ndarray]]
"""First row numbers and vectors, float16 or float32 (rows, width), in row order."""
Candidates = Callable[[np.ndarray, int], list[np.ndarray]]
"""Queries, float32 (queries, width), and a number to each query's nearest rows, int64, at most as many."""


def _write_usearch(path: Path, blocks: Blocks, width: int) -> None:
    index = _library("usearch", "usearch.index").Index(ndim=width, metric="cos", dtype="f16")
    for first, vectors in blocks:
        keys = np.arange(first, first + len(vectors), dtype=np.uint64)
        # Several threads link some rows so badly that no query finds them, others at each build.
        index.add(keys, np.ascontiguousarray(vectors, np.float32), threads=1)
    index.save(str(path))


def _open_usearch(path: Path) -> Candidates:
    index = _library("usearch", "usearch.index").Index.restore(str(path), view=True)
    if index is None:  # the result for a file without its header
        raise ValueError("no header")

    def candidates(queries: np.ndarray, count: int) -> list[np.ndarray]:
        result = index.search(queries, min(count, len(index)))
        # For a single query it returns the matches themselves, for several a batch of them.
        per_query = [result] if len(queries) == 1 else [result[row] for row in range(len(queries))]
        return [matches.keys.astype(np.int64) for matches in per_query]

    return candidates


def _write_faiss(path: Path, blocks: Blocks, width: int) -> None:
    faiss = _library("faiss", "faiss")
    index = faiss.index_factory(width, f"HNSW{LINKS}_SQfp16", faiss.METRIC_INNER_PRODUCT)
    for _, vectors in blocks:
        # The inner products of vectors of length 1 are cosines.
        vectors = np.ascontiguousarray(unit(vectors.astype(np.float32)))
        if not index.is_trained:
            index.train(vectors)
        index.add(vectors)
    faiss.write_index(index, str(path))


def _open_faiss(path: Path) -> Candidates:
    index = _library("faiss", "faiss").read_index(str(path))

    def candidates(queries: np.ndarray, count: int) -> list[np.ndarray]:
        index.hnsw.efSearch = max(VISITED, count)
        _, nearest = index.search(unit(queries).astype(np.float32), count)
        return [rows[rows >= 0].astype(np.int64) for rows in nearest]

    return candidates


WRITERS = {"usearch": _write_usearch, "faiss": _write_faiss}
OPENERS = {"usearch": _open_usearch, "faiss": _open_faiss}


def require_library(kind: str) -> None:
    """Check that a kind's library is installed."""
    _library(kind, kind)


def write_approximate(kind: str, path: Path, blocks: Blocks, width: int) -> None:
    """Write the index of vectors to ``path``, atomically."""
    with atomic_path(path) as temporary:
        try:
            WRITERS[kind](temporary, blocks, width)
        except RuntimeError as error:  # raised by both libraries if the disk is full
            raise OSError(str(error)) from error


def open_approximate(kind: str, path: Path) -> Candidates:
    """Open an index to search."""
    try:
        return OPENERS[kind](path)
    except (OSError, RuntimeError, ValueError) as error:
        raise PotstillError(
            f"{path}: not an index of {kind} ({reason_of(error)}). Delete it, and run the same `distill index` again."
        ) from error


def _library(kind: str, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise PotstillError(
            f"approximate: {kind} is not installed. Run `{install_extra(kind)}`, or search exactly."
        ) from error
