"""The scores of all pairs of two sets of sentence vectors, in blocks.

A siamese student compares its two vectors by f(u, v) = W' ReLU(W [u, v, u ⊙ v, |u − v|] + b) + b'
(Tang et al. 2019, section 3.1; Barkan et al. 2019, section 3.4).  What of it depends on one vector
alone is computed once for all pairs of that vector.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from pipeline_lib.base.devices import resolve_precision
from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.students.student import Student

QUERY_ROWS, CANDIDATE_ROWS = 256, 8192
"""How many vectors of each side :func:`score_blocks` takes at a time."""


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


@dataclass(frozen=True)
class PairScorer:
    """One output of a siamese student for all pairs of sentence vectors; see :meth:`of`.

    :ivar weight: of the first layer, float32 (units, 4 · width); :ivar bias: (units,).
    :ivar last: weight and bias of the layer above its ReLU, (outputs, units) and (outputs,); None
        of a student that has one layer only.
    :ivar output: of several outputs, the class whose log probability is the score; else None.
    """

    weight: torch.Tensor
    bias: torch.Tensor
    last: tuple[torch.Tensor, torch.Tensor] | None
    output: int | None
    device: torch.device
    precision: str

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
        minus that of the other, which orders pairs as the probability does; of more it is the log
        probability of ``output``.

        :param output: the class that counts; None: of a regression or of two classes the last.
        :param precision: of the matrix products: auto, float32 or bfloat16.
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
        layers = [student.model.logits]
        if config.settings.classifier_units:
            layers.insert(0, student.model.hidden[0])
        parts = [(layer.weight.detach(), layer.bias.detach()) for layer in layers]
        if len(student.label_names) == 2:
            # Of two classes one difference says all, and it is linear too.
            parts[-1] = tuple((part[output] - part[1 - output])[None] for part in parts[-1])
        parts = [tuple(part.to(device, torch.float32) for part in pair) for pair in parts]
        several = len(student.label_names) > 2
        return cls(
            *parts[0],
            parts[1] if len(parts) > 1 else None,
            output if several else None,
            device,
            resolve_precision(precision, device),
        )

    def prepare(self, queries: np.ndarray) -> torch.Tensor:
        """Return the queries' vectors, (queries, width)."""
        return _tensor(queries, self.device)

    def block(self, prepared: torch.Tensor, candidates: np.ndarray) -> torch.Tensor:
        """Return the scores of all pairs, (queries, candidates)."""
        second = _tensor(candidates, self.device)
        found = torch.empty(len(prepared), len(second), device=self.device)
        for row, query in enumerate(prepared):
            first = query.expand_as(second)
            features = torch.cat([first, second, first * second, (first - second).abs()], dim=1)
            outputs = torch.nn.functional.linear(features, self.weight, self.bias)
            if self.last is not None:
                outputs = torch.nn.functional.linear(outputs.relu_(), *self.last)
            if self.output is not None:
                outputs = outputs.log_softmax(1)[:, self.output, None]
            found[row] = outputs[:, 0]
        return found


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


def _tensor(vectors: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.require(vectors, np.float32, "W")).to(device)
