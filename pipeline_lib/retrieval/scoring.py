"""The scores of all pairs of two sets of sentence vectors in blocks, and the best candidates for each query.

A siamese student compares its two vectors by f(u, v) = W' ReLU(W [u, v, u ⊙ v, |u − v|] + b) + b' (Tang et al. 2019,
section 3.1; Barkan et al. 2019, section 3.4).  With W = [W₁, W₂, W₃, W₄] the first layer is

    W₁u + b  +  (W₂ + W₃ diag(u)) v  +  W₄ |u − v|.

W₁u + b and the matrix W₂ + W₃ diag(u) are computed once for each query.  What remains for a pair is one product of
[v, |u − v|] with a matrix of 2 · width rows: half of the multiplications.
"""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from pipeline_lib.base.devices import DTYPES, resolve_precision
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.models.students.student import Student

QUERY_ROWS, CANDIDATE_ROWS = 256, 1 << 15
"""Vectors of each side to score at a time, if there are many."""
CACHE_BYTES, MIN_TILE_ROWS, ACCELERATOR_BYTES = 2 << 20, 256, 64 << 20
"""Of the candidates that a core, or an accelerator, processes at a time: few enough for a cache, but worth a call."""
TILE_STEP, LAYERS_BYTES = 64, 16 << 20
"""A thread's share of them is a multiple of the first; the bytes of queries' own layers that are held at a time."""
Layer = tuple[torch.Tensor, torch.Tensor]
"""Weight and bias."""


class Scorer(Protocol):
    """Scores queries against candidates: the higher, the more similar."""

    def prepare(self, queries: np.ndarray) -> Any:
        """Return what all blocks of candidates share, for queries float32 (queries, width)."""

    def block(self, prepared: Any, candidates: np.ndarray) -> torch.Tensor:
        """Return all pairs' scores with candidates float32 (candidates, width), float32 (queries, candidates)."""


class CosineScorer:
    """The cosine of two sentence vectors; with a zero vector it is 0."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)

    def prepare(self, queries: np.ndarray) -> torch.Tensor:
        """Return the queries' vectors scaled to length 1, (queries, width)."""
        return torch.nn.functional.normalize(_tensor(queries).to(self.device))

    def block(self, prepared: torch.Tensor, candidates: np.ndarray) -> torch.Tensor:
        """Return the cosines, (queries, candidates)."""
        vectors = _tensor(candidates).to(self.device)
        lengths = torch.linalg.vector_norm(vectors, dim=1).clamp_min_(1e-12)
        return (prepared @ vectors.T).div_(lengths)


class PairQueries(NamedTuple):
    """Queries of a :class:`PairScorer`: their vectors u, (queries, width), and what depends on these alone.

    :ivar thresholds: −(W₁u + b), (queries, units).
    :ivar offsets: the layer above applied to W₁u + b, (queries, outputs).
    """

    vectors: torch.Tensor
    thresholds: torch.Tensor
    offsets: torch.Tensor


class PairScorer:
    """One output of a siamese student for all pairs of sentence vectors; see :meth:`of`.

    On a CPU it uses all of torch's threads.  In bfloat16 the vectors, |u − v|, the weights and the result of their
    product are rounded: the scores' error has a root mean square of 0.004 to 0.006 of their standard deviation (random
    vectors and layers, width 128 to 1,536), which is large among nearly identical candidates.
    """

    def __init__(self, first: Layer, last: Layer, output: int | None, device: torch.device, precision: str) -> None:
        """Build the scorer from the layers above a student's encoder.

        :param first: the layer applied to [u, v, u ⊙ v, |u − v|], weight (units, 4 · width), bias.
        :param last: the layer above its ReLU, weight (outputs, units), bias.
        :param output: of several outputs, the class whose log probability is the score; else None.
        :param precision: dtype of the products over all pairs; everything else is in float32.
        """
        weight, self._bias, self._last, self._last_bias = (x.to(device, torch.float32) for x in (*first, *last))
        self.width, self.output = weight.shape[1] // 4, output
        self.device, self.dtype = device, DTYPES[precision]
        self._query, candidate, product, difference = weight.split(self.width, dim=1)
        # As (width, units), so that each value of a query scales a row.
        self._candidate, self._product = candidate.T.contiguous(), product.T.contiguous()
        self._difference = difference.T.to(self.dtype)

    @classmethod
    def of(
        cls, student: Student, output: int | None = None, device: torch.device | str = "cpu", precision: str = "auto"
    ) -> "PairScorer":
        """Return the scorer of a trained pair student that encodes each sentence separately.

        The score of a regression is its one output.  For two classes it is the logit of ``output`` minus that of the
        other, which orders pairs like the probability but never saturates; for more it is the log probability.

        :param output: the class that counts; None: the last, for a regression or two classes.
        :param precision: of the products over all pairs: auto, float32 or bfloat16.
        """
        device, config, classes = torch.device(device), student.model.config, len(student.label_names)
        if not config.pair or config.settings.joint:
            why = "reads both sentences at once" if config.pair else "reads single sentences"
            raise PotstillError(
                f"a {config.settings.name()} student that {why} cannot score pairs of vectors. Use a student of a "
                "pair task that encodes each sentence separately, such as bilstm."
            )
        if KINDS[student.kind].has_several:
            raise PotstillError(
                "a student of several labels does not rank pairs by one. Use a student of classes or scores."
            )
        if output is None and classes > 2:
            raise PotstillError(f"output: which of {', '.join(student.label_names)} is the score? Name one.")
        output = classes - 1 if output is None else output
        first, last = _layers(student)
        if classes == 2:
            # For two classes the difference suffices, and it is linear too.
            last = tuple((values[output] - values[1 - output])[None] for values in last)
        return cls(first, last, output if classes > 2 else None, device, resolve_precision(precision, device))

    def prepare(self, queries: np.ndarray) -> PairQueries:
        """Return the query-only terms of the first layer."""
        vectors = _tensor(queries).to(self.device)
        constants = torch.nn.functional.linear(vectors, self._query, self._bias)
        return PairQueries(vectors, -constants, torch.nn.functional.linear(constants, self._last, self._last_bias))

    def block(self, prepared: PairQueries, candidates: np.ndarray) -> torch.Tensor:
        """Return the scores of all pairs, (queries, candidates)."""
        matrix = torch.empty(len(prepared.vectors), len(candidates), device=self.device)
        vectors, rounded = _tensor(candidates), prepared.vectors.to(self.dtype)
        tile = self._tile()
        for queries in _slices(len(matrix), max(1, LAYERS_BYTES // self._difference.nbytes // 2)):
            operands = (rounded[queries], prepared.thresholds[queries], prepared.offsets[queries])
            each = list(zip(self._folded(prepared.vectors[queries]), *operands, strict=True))
            for rows in _slices(len(candidates), len(tile[0])):
                of_rows = vectors[rows].to(self.device)
                used = [buffer[: _padded(len(of_rows))] for buffer in tile]
                tile[0][: len(of_rows), : self.width] = of_rows
                for query, scores in zip(each, matrix[queries, rows], strict=True):
                    scores.copy_(self._score(query, *used)[: len(of_rows)])
        return matrix

    def _tile(self) -> list[torch.Tensor]:
        """Return buffers for some candidates: [v, |u − v|], and the layer's output, rounded and in float32."""
        units, size = len(self._bias), self.dtype.itemsize
        rows = _tile_rows(self.device, (2 * self.width + units) * size + units * 4)
        features = torch.zeros(rows, 2 * self.width, dtype=self.dtype, device=self.device)
        hidden = torch.empty(rows, units, dtype=self.dtype, device=self.device)
        return [features, hidden, hidden if size == 4 else torch.empty(rows, units, device=self.device)]

    def _folded(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the layer over [v, |u − v|] for each of some queries, (queries, 2 · width, units)."""
        over_v = torch.addcmul(self._candidate, self._product, vectors[:, :, None]).to(self.dtype)
        return torch.cat([over_v, self._difference.expand_as(over_v)], dim=1)

    def _score(
        self, query: tuple[torch.Tensor, ...], features: torch.Tensor, hidden: torch.Tensor, exact: torch.Tensor
    ) -> torch.Tensor:
        """Return the scores of one query with a tile of candidates, (rows,)."""
        layer, rounded, threshold, offset = query
        # max(u, v) could replace |u − v| = 2 max(u, v) − u − v. It takes 6 % less time in bfloat16,
        # but the scores' error grows by up to a third.
        second, difference = features.split(self.width, dim=1)
        torch.sub(second, rounded, out=difference).abs_()
        torch.mm(features, layer, out=hidden)
        if exact.dtype != hidden.dtype:
            exact.copy_(hidden)
        # ReLU(x + c) = max(x, −c) + c, and what c adds to the outputs depends only on the query.
        torch.maximum(exact, threshold, out=exact)
        if self.output is None:
            return torch.addmv(offset, exact, self._last[0])
        return torch.addmm(offset, exact, self._last.T).log_softmax(1)[:, self.output]


def best(
    scorer: Scorer, queries: np.ndarray, blocks: Iterable[tuple[int, np.ndarray]], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``k`` best candidates of each query, best first; ties go to the lower row.

    :param queries: float32 (queries, width).
    :param blocks: of candidates, in any order: the first row's number and the vectors, (rows, width).
    :returns: scores, float32, and rows, int64, both (queries, k), or as many as there are.
    """
    if k < 1:
        raise PotstillError(f"k: {k}, but at least one candidate is required. Set it to 1.")
    if not len(queries):
        return np.empty((0, 0), np.float32), np.empty((0, 0), np.int64)
    prepared = scorer.prepare(queries)
    nearest = [(np.empty(0, np.float32), np.empty(0, np.int64)) for _ in queries]
    # The score a candidate must reach: after some blocks, few contain one that does.
    least = torch.full((len(queries),), -torch.inf)
    for start, candidates in blocks:
        if not len(candidates):
            continue
        scores = scorer.block(prepared, candidates)
        highest = scores.amax(1).cpu()
        if highest.isnan().any():
            raise PotstillError(
                f"rows {start:,} to {start + len(candidates) - 1:,}: a score is not a number. "
                "Their vectors or the student's weights are damaged: make them again."
            )
        for query in torch.nonzero(highest >= least)[:, 0].tolist():
            nearest[query] = _merge(*nearest[query], scores[query].cpu().numpy(), start, k)
            if len(nearest[query][0]) == k:
                least[query] = float(nearest[query][0][-1])
    scores, rows = zip(*nearest, strict=True)
    return np.array(scores), np.array(rows)


def _merge(
    scores: np.ndarray, rows: np.ndarray, block: np.ndarray, start: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    least = np.partition(block, -k)[-k] if len(block) > k else -np.inf
    if len(scores) == k:
        least = max(least, scores[-1])
    better = np.flatnonzero(block >= least)
    scores, rows = np.append(scores, block[better]), np.append(rows, better + start)
    order = np.lexsort((rows, -scores))[:k]
    return scores[order], rows[order]


def _layers(student: Student) -> tuple[Layer, Layer]:
    last = _parameters(student.model.logits)
    if student.model.config.settings.classifier_units:
        return _parameters(student.model.hidden[0]), last
    # A student of one layer: x = ReLU(x) − ReLU(−x).
    same = torch.eye(len(last[1]), device=last[1].device)
    first = tuple(torch.cat([values, -values]) for values in last)
    return first, (torch.cat([same, -same], dim=1), torch.zeros_like(last[1]))


def _parameters(layer: torch.nn.Linear) -> Layer:
    return layer.weight.detach(), layer.bias.detach()


def _tile_rows(device: torch.device, row_bytes: int) -> int:
    """Return how many candidates to process at a time."""
    if device.type != "cpu":
        return max(ACCELERATOR_BYTES // row_bytes // TILE_STEP, 1) * TILE_STEP
    return max(CACHE_BYTES // row_bytes // TILE_STEP * TILE_STEP, MIN_TILE_ROWS) * torch.get_num_threads()


def _padded(rows: int) -> int:
    """Return a number of rows, rounded up, so that none is computed as a remainder.

    Remainders are summed in a way that differs in the last bit, which would make scores, and the order of ties, depend
    on where a block ends.
    """
    step = TILE_STEP * torch.get_num_threads()
    return -(-rows // step) * step


def _slices(count: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def _tensor(vectors: np.ndarray) -> torch.Tensor:
    with warnings.catch_warnings():
        # Memory-mapped vectors are read-only, which torch cannot express; nothing writes to them.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(np.asarray(vectors)).float()
