"""The scores of all pairs of two sets of sentence vectors, in blocks.

A siamese student compares its two vectors by f(u, v) = W' ReLU(W [u, v, u ⊙ v, |u − v|] + b) + b'
(Tang et al. 2019, section 3.1; Barkan et al. 2019, section 3.4).  With W = [W₁, W₂, W₃, W₄] the
first layer is

    W₁u + b  +  (W₂ + W₃ diag(u)) v  +  W₄ |u − v|.

W₁u + b is computed once for each query, and so is the matrix W₂ + W₃ diag(u), at the cost of a few
pairs.  That saves u ⊙ v and half of the multiplications: what is left of a pair is one product of
[v, |u − v|] with a matrix of 2 · width rows.  (W₂v once for each candidate would save nothing more:
W₃ diag(u) v takes the same product.)
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch

from pipeline_lib.base.devices import DTYPES, resolve_precision
from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.students.student import Student

QUERY_ROWS, CANDIDATE_ROWS = 256, 8192
"""How many vectors of each side :func:`score_blocks` takes at a time."""
CACHE_BYTES, MIN_TILE_ROWS = 5 << 18, 256
"""Of the candidates that a core computes at once: they stay in its cache, but are not so few that
calls count."""
ACCELERATOR_BYTES = 256 << 20
"""The same on an accelerator, which wants many at once."""
LAYERS_BYTES = 64 << 20
"""Of the queries' own layers that are kept at a time."""
Layer = tuple[torch.Tensor, torch.Tensor]
"""Weight and bias."""


class Scorer(Protocol):
    """What scores queries against candidates: the higher, the more alike."""

    def prepare(self, queries: np.ndarray) -> Any:
        """Return what all blocks of candidates share, for :meth:`block`.

        :param queries: float32 (queries, width).
        """

    def block(self, prepared: Any, candidates: np.ndarray) -> torch.Tensor:
        """Return the scores of all pairs, float32 (queries, candidates), on the scorer's device.

        :param prepared: of the queries, by :meth:`prepare`.
        :param candidates: float32 (candidates, width).
        """


class CosineScorer:
    """The cosine of two sentence vectors; that of a vector of zeros is 0."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)

    def prepare(self, queries: np.ndarray) -> torch.Tensor:
        """Return the queries' vectors scaled to length 1, (queries, width)."""
        return torch.nn.functional.normalize(_tensor(queries, self.device))

    def block(self, prepared: torch.Tensor, candidates: np.ndarray) -> torch.Tensor:
        """Return the cosines, (queries, candidates)."""
        vectors = _tensor(candidates, self.device)
        lengths = torch.linalg.vector_norm(vectors, dim=1).clamp_min_(1e-12)
        return (prepared @ vectors.T).div_(lengths)


class PairScorer:
    """One output of a siamese student for all pairs of sentence vectors; see :meth:`of`."""

    def __init__(
        self,
        first: Layer,
        last: Layer | None,
        output: int | None,
        device: torch.device,
        precision: str,
    ) -> None:
        """Take the layers that stand above a student's encoder.

        :param first: the layer that sees [u, v, u ⊙ v, |u − v|]: its weight, float (units,
            4 · width), and bias.
        :param last: the layer above its ReLU, (outputs, units); None: the first answers itself.
        :param output: of several outputs, the class whose log probability is the score; else None.
        :param precision: number format of the products over all pairs; all else is in float32.
        """
        weight, bias = (part.to(device, torch.float32) for part in first)
        self.width, self.output = weight.shape[1] // 4, output
        self.device, self.dtype = device, DTYPES[precision]
        own, other, product, difference = weight.split(self.width, dim=1)
        self._own, self._bias = own.T, bias
        # As (width, units): what is scaled by a query is then a row.
        self._other, self._product = other.T.contiguous(), product.T.contiguous()
        self._difference = difference.T.to(self.dtype)
        self._last = None
        if last is not None:
            above, its_bias = (part.to(device, torch.float32) for part in last)
            self._last = its_bias, above.T

    @classmethod
    def of(
        cls,
        student: Student,
        output: int | None = None,
        device: torch.device | str = "cpu",
        precision: str = "auto",
    ) -> "PairScorer":
        """Return the scorer of a trained student of pairs that encodes each sentence by itself.

        The score of a regression is its one output.  Of two classes it is the logit of ``output``
        minus that of the other, which orders pairs as the probability does but does not run into
        1; of more it is the log probability of ``output``.

        :param output: the class that counts; None: of a regression or of two classes the last.
        :param precision: of the products over all pairs: auto, float32 or bfloat16.
        :raises DistilleryError: if the student has no vector for each sentence, or no such output.
        """
        device = torch.device(device)
        config = student.model.config
        if not config.pair or config.settings.joint:
            name = config.settings.name()
            why = "reads both sentences at once" if config.pair else "reads single sentences"
            raise DistilleryError(
                f"a {name} student that {why} cannot score pairs of vectors. Take a student of a "
                "task of pairs that encodes each sentence by itself, such as bilstm."
            )
        output = _output(output, student.label_names)
        layers = [_layer(student.model.logits)]
        if config.settings.classifier_units:
            layers.insert(0, _layer(student.model.hidden[0]))
        several = len(student.label_names) > 2
        if len(student.label_names) == 2:
            # Of two classes one difference says all, and it is linear too.
            weight, bias = ((part[output] - part[1 - output])[None] for part in layers[-1])
            layers[-1] = weight, bias
        return cls(
            layers[0],
            layers[1] if len(layers) > 1 else None,
            output if several else None,
            device,
            resolve_precision(precision, device),
        )

    def prepare(self, queries: np.ndarray) -> "PairQueries":
        """Return what of the first layer depends on the queries alone, and room to work in."""
        vectors = _tensor(queries, self.device)
        constants = torch.addmm(self._bias, vectors, self._own)
        offsets = (
            constants
            if self._last is None
            else torch.addmm(self._last[0], constants, self._last[1])
        )
        units, size = len(self._bias), self.dtype.itemsize
        layers = LAYERS_BYTES // (2 * self.width * units * size)
        rows = _tile_rows(self.device, (2 * self.width + units) * size + units * 4)
        empty = partial(torch.empty, dtype=self.dtype, device=self.device)
        folded = empty(max(1, min(len(vectors), layers)), 2 * self.width, units)
        folded[:, self.width :] = self._difference
        features, hidden = empty(rows, 2 * self.width), empty(rows, units)
        # float32 is left where it is.
        exact = hidden if size == 4 else empty(rows, units, dtype=torch.float32)
        return PairQueries(vectors, constants, offsets, folded, features, hidden, exact)

    def block(self, prepared: "PairQueries", candidates: np.ndarray) -> torch.Tensor:
        """Return the scores of all pairs, (queries, candidates)."""
        found = torch.empty(len(prepared.vectors), len(candidates), device=self.device)
        rows = len(prepared.features)
        for queries in _parts(len(found), len(prepared.folded)):
            self._fold(prepared, queries)
            for tile in _parts(len(candidates), rows):
                part = _tensor(candidates[tile], self.device)
                features = prepared.features[: len(part)]
                features[:, : self.width] = part
                for query in range(queries.start, queries.stop):
                    layer = prepared.folded[query - queries.start]
                    found[query, tile] = self._score(prepared, query, features, layer)
        return found

    def _fold(self, prepared: "PairQueries", queries: slice) -> None:
        """Write each query's layer over [v, |u − v|] down."""
        for layer, vector in zip(prepared.folded, prepared.vectors[queries], strict=False):
            own = torch.addcmul(self._other, self._product, vector[:, None])
            layer[: self.width] = own

    def _score(
        self, prepared: "PairQueries", query: int, features: torch.Tensor, layer: torch.Tensor
    ) -> torch.Tensor:
        """Return one query's scores with a tile of candidates, whose vectors stand in features."""
        second, difference = features.split(self.width, dim=1)
        torch.sub(second, prepared.vectors[query].to(self.dtype), out=difference).abs_()
        hidden = torch.mm(features, layer, out=prepared.hidden[: len(features)])
        exact = prepared.exact[: len(features)]
        if prepared.exact is not prepared.hidden:
            exact.copy_(hidden)
        constant = prepared.constants[query]
        if self._last is None:
            outputs = exact.add_(constant)
        else:
            # ReLU(x + c) = max(x, −c) + c: what comes after the maximum is the query's alone.
            torch.maximum(exact, -constant, out=exact)
            outputs = torch.addmm(prepared.offsets[query], exact, self._last[1])
        if self.output is None:
            return outputs[:, 0]
        return outputs.log_softmax(1)[:, self.output]


@dataclass(frozen=True)
class PairQueries:
    """Queries of a :class:`PairScorer`, and the buffers that every block is computed in.

    :ivar vectors: (queries, width); :ivar constants: W₁u + b, (queries, units).
    :ivar offsets: what the layer above makes of the constants, (queries, outputs).
    :ivar folded: of some queries at a time the layer over [v, |u − v|], (some, 2 · width, units).
    :ivar features: [v, |u − v|] of a tile of candidates; :ivar hidden: what the layer gives, in
        the number format of the products; :ivar exact: the same in float32.
    """

    vectors: torch.Tensor
    constants: torch.Tensor
    offsets: torch.Tensor
    folded: torch.Tensor
    features: torch.Tensor
    hidden: torch.Tensor
    exact: torch.Tensor


def score_blocks(
    scorer: Scorer, first: np.ndarray, second: np.ndarray
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield the scores of all pairs in blocks, for matrices that do not fit into memory.

    :param first: float32 (first, width); :param second: float32 (second, width).
    :returns: of each block the row of ``first`` and of ``second`` where it starts, and its scores,
        float32.
    """
    for top in range(0, len(first), QUERY_ROWS):
        prepared = scorer.prepare(first[top : top + QUERY_ROWS])
        for left in range(0, len(second), CANDIDATE_ROWS):
            found = scorer.block(prepared, second[left : left + CANDIDATE_ROWS])
            yield top, left, found.cpu().numpy()


def scores(scorer: Scorer, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the scores of all pairs, float32 (first, second); see :func:`score_blocks`."""
    found = np.empty((len(first), len(second)), np.float32)
    for top, left, part in score_blocks(scorer, first, second):
        found[top : top + part.shape[0], left : left + part.shape[1]] = part
    return found


def _output(output: int | None, names: list[str]) -> int:
    """Return the class that counts.

    :raises DistilleryError: if there is no such class, or one must be named.
    """
    listed = ", ".join(f"{number} ({name})" for number, name in enumerate(names))
    if output is None and len(names) > 2:
        raise DistilleryError(f"output: which of the classes {listed} is the score? Name one.")
    if output is not None and not 0 <= output < len(names):
        raise DistilleryError(f"output: there is no {output}. The student has {listed}.")
    return len(names) - 1 if output is None else output


def _layer(linear: torch.nn.Linear) -> Layer:
    return linear.weight.detach(), linear.bias.detach()


def _tile_rows(device: torch.device, row_bytes: int) -> int:
    """Return how many candidates are computed at once."""
    if device.type == "cpu":
        rows = CACHE_BYTES // row_bytes
        return max(rows, MIN_TILE_ROWS) * torch.get_num_threads()
    return max(1, ACCELERATOR_BYTES // row_bytes)


def _parts(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _tensor(vectors: np.ndarray, device: torch.device) -> torch.Tensor:
    with warnings.catch_warnings():
        # Vectors mapped from a file are read-only, which torch cannot tell; none are written to.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(np.asarray(vectors, np.float32)).to(device)
