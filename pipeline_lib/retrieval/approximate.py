"""Approximate indexes of vectors: a query's candidates without scanning all rows.

Both kinds are nearest-neighbour graphs (HNSW) by cosine.  They hold the vectors as float16, in
memory while they are built; a search memory-maps usearch's file.  Both are optional dependencies.
"""

import importlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from pipeline_lib.base.distribution import install_extra
from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.files import atomic_path
from pipeline_lib.shards.vectors import unit

LINKS = 32
"""Neighbours per vector in faiss's graph; usearch's default is 16."""
VISITED = 128
"""Minimum nodes that faiss visits per query: its default of 16 finds too little."""


class ApproximateIndex(Protocol):
    """Finds candidates by cosine."""

    def add(self, first: int, vectors: np.ndarray) -> None:
        """Add vectors, float32 (rows, width), as rows starting at ``first``."""

    def candidates(self, queries: np.ndarray, count: int) -> list[np.ndarray]:
        """Return each query's nearest rows, int64, at most ``count``.

        :param queries: float32 (queries, width).
        """

    def save(self, path: Path) -> None:
        """Write it to a file."""


class USearchIndex:
    """A usearch graph, whose file is memory-mapped rather than read."""

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def new(cls, width: int) -> "USearchIndex":
        """Return an empty one."""
        return cls(_library("usearch", "usearch.index").Index(ndim=width, metric="cos", dtype="f16"))

    @classmethod
    def open(cls, path: Path) -> "USearchIndex":
        """Open one to search."""
        index = _library("usearch", "usearch.index").Index.restore(str(path), view=True)
        if index is None:  # the result for a file without its header
            raise ValueError("no header")
        return cls(index)

    def add(self, first: int, vectors: np.ndarray) -> None:
        """Add vectors; see :class:`ApproximateIndex`."""
        keys = np.arange(first, first + len(vectors), dtype=np.uint64)
        # Several threads link some rows so badly that no query finds them, others at each build.
        self._index.add(keys, vectors, threads=1)

    def candidates(self, queries: np.ndarray, count: int) -> list[np.ndarray]:
        """Return each query's nearest rows; see :class:`ApproximateIndex`."""
        result = self._index.search(queries, min(count, len(self._index)))
        # For a single query it returns the matches themselves, for several a batch of them.
        per_query = [result] if len(queries) == 1 else [result[row] for row in range(len(queries))]
        return [matches.keys.astype(np.int64) for matches in per_query]

    def save(self, path: Path) -> None:
        """Write it to a file."""
        self._index.save(str(path))


class FaissIndex:
    """A faiss graph over vectors of length 1, whose inner products are cosines."""

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def new(cls, width: int) -> "FaissIndex":
        """Return an empty one."""
        faiss = _library("faiss", "faiss")
        return cls(faiss.index_factory(width, f"HNSW{LINKS}_SQfp16", faiss.METRIC_INNER_PRODUCT))

    @classmethod
    def open(cls, path: Path) -> "FaissIndex":
        """Open one to search."""
        return cls(_library("faiss", "faiss").read_index(str(path)))

    def add(self, _: int, vectors: np.ndarray) -> None:
        """Add vectors, in the order of their rows; see :class:`ApproximateIndex`."""
        vectors = unit(vectors).astype(np.float32)
        if not self._index.is_trained:
            self._index.train(vectors)
        self._index.add(vectors)

    def candidates(self, queries: np.ndarray, count: int) -> list[np.ndarray]:
        """Return each query's nearest rows; see :class:`ApproximateIndex`."""
        self._index.hnsw.efSearch = max(VISITED, count)
        _, nearest = self._index.search(unit(queries).astype(np.float32), count)
        return [rows[rows >= 0].astype(np.int64) for rows in nearest]

    def save(self, path: Path) -> None:
        """Write it to a file."""
        _library("faiss", "faiss").write_index(self._index, str(path))


KINDS: dict[str, Any] = {"usearch": USearchIndex, "faiss": FaissIndex}


def require_library(kind: str) -> None:
    """Check that a kind's library is installed."""
    _library(kind, kind)


def write_approximate(kind: str, path: Path, blocks: Iterable[tuple[int, np.ndarray]], width: int) -> None:
    """Write the index of vectors to ``path``, atomically.

    :param blocks: first row numbers and vectors, float32 (rows, width), in row order.
    """
    index: ApproximateIndex = KINDS[kind].new(width)
    for first, vectors in blocks:
        index.add(first, np.ascontiguousarray(vectors))
    with atomic_path(path) as temporary:
        try:
            index.save(temporary)
        except RuntimeError as error:  # raised by both libraries if the disk is full
            raise OSError(str(error)) from error


def open_approximate(kind: str, path: Path) -> ApproximateIndex:
    """Open an index to search."""
    try:
        return KINDS[kind].open(path)
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
