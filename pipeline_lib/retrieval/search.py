"""Answering queries from an index: exactly, or from an approximate index's candidates.

The cosine, or the comparison f of a siamese student (Barkan et al. 2019, section 3.4), scores the vectors.  A
cross-encoder can then rescore the best (section 1 there: a pass per pair is affordable for a few).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.models.serving import open_teacher
from pipeline_lib.models.students.student import load_student
from pipeline_lib.retrieval.approximate import Candidates, open_approximate
from pipeline_lib.retrieval.embedders import LoadedEmbedder
from pipeline_lib.retrieval.index import AGAIN, Index
from pipeline_lib.retrieval.scoring import PairScorer, Scorer, best


class Hit(NamedTuple):
    """One answer to a query: its row in the index, and its score."""

    row: int
    score: float


Rescore = Callable[[str, Sequence[str]], np.ndarray]
"""A query and sentences to the scores of each pair, (sentences,)."""


def cross_encoder(folder: Path, label: str | None = None, device: str = "cpu") -> Rescore:
    """Load a teacher of pairs, which reads a query and a sentence together: probabilities of one class, or scores."""
    teacher, predict = open_teacher(folder, None, None, device)
    output, kind = label_number(folder, teacher.label_names, label), KINDS[teacher.kind]

    def scores(query: str, texts: Sequence[str]) -> np.ndarray:
        outputs = predict([(query, text) for text in texts])
        return (kind.probabilities(outputs) if kind.has_probabilities else outputs)[:, output]

    return scores


def label_number(folder: Path, names: Sequence[str], label: str | None) -> int:
    """Return the index of the class that counts: the named one, else the last of at most two."""
    if label is None and len(names) <= 2:
        return len(names) - 1
    if label not in names:
        raise PotstillError(
            f"{folder}: {'no class ' + repr(label) if label else 'several classes'}; there are "
            f"{', '.join(names)}. Name the one that counts by `--label`."
        )
    return list(names).index(label)


def pair_scorer(
    index: Index, folder: Path | None, label: str | None, device: str = "cpu", precision: str = "float32"
) -> PairScorer:
    """Return the comparison f of the student that computed the index's vectors, now in ``folder``."""
    folder = Path(index.encoder.located(folder).folder)
    student = load_student(folder, device)
    return PairScorer.of(student, label_number(folder, student.label_names, label), device, precision)


@dataclass(frozen=True)
class Search:
    """A way to answer queries from an index: ``scorer`` orders the answers.

    :ivar candidates: how many from the approximate index are scored; None: all rows.
    :ivar cross_encoder: rescores the best ``rescored``; None: no rescoring.
    """

    index: Index
    encoder: LoadedEmbedder
    scorer: Scorer
    candidates: int | None = None
    cross_encoder: Rescore | None = None
    rescored: int = 0

    def find(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the ``k`` best answers to each query, best first; ties go to the lower row."""
        self._check(k)
        vectors = self.encoder.encode(queries)
        hits = [
            [Hit(int(row), float(score)) for row, score in zip(rows, scores, strict=True)]
            for scores, rows in self._scored(vectors, max(k, self.rescored))
        ]
        if self.cross_encoder is None:
            return hits
        return [self._rescored(query, best_hits)[:k] for query, best_hits in zip(queries, hits, strict=True)]

    def _scored(self, queries: np.ndarray, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the scores and rows of each query's best answers."""
        if self.candidates is None:
            yield from zip(*best(self.scorer, queries, self.index.blocks(), k), strict=True)
            return
        for query, rows in zip(queries, self._approximate(queries, self.candidates), strict=True):
            rows = np.sort(rows)
            scores, ranked = best(self.scorer, query[None], [(0, self.index.vectors[rows])], k)
            yield scores[0], rows[ranked[0]]

    @cached_property
    def _approximate(self) -> Candidates:
        folder, file = self.index.folder, self.index.approximate
        if file is None:
            raise PotstillError(
                f"{folder}: has no approximate index. Build it with `--approximate usearch`, or search exactly."
            )
        path = self.index.approximate_file
        if path is None:
            raise PotstillError(f"{folder / file.name}: missing, truncated or of other rows. {AGAIN}")
        return open_approximate(path)

    def _rescored(self, query: str, hits: list[Hit]) -> list[Hit]:
        hits = hits[: self.rescored]
        texts = [self.index.text(hit.row) for hit in hits]
        scores = self.cross_encoder(query, texts).tolist()
        rescored = [hit._replace(score=score) for hit, score in zip(hits, scores, strict=True)]
        return sorted(rescored, key=lambda hit: (-hit.score, hit.row))

    def _check(self, k: int) -> None:
        if self.cross_encoder is not None and self.rescored < k:
            raise PotstillError(
                f"rescore: {self.rescored}, but {k} answers are asked for, and all must be on one "
                "scale. Raise `--rescore`, or lower `--k`."
            )
        if self.candidates is not None and self.candidates < max(k, self.rescored):
            raise PotstillError(
                f"first: {self.candidates} candidates, fewer than the {max(k, self.rescored)} that "
                "are asked for. Raise their number."
            )
