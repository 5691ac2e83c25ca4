"""Compares two sets: rows added and removed, and how far the answers to the others moved."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.inspection.distances import moved
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.matching import Matches, Side, match
from pipeline_lib.inspection.statistics import Numbers
from pipeline_lib.inspection.top_k import Top
from pipeline_lib.shards.columns import FIRST, SECOND
from pipeline_lib.shards.vectors import StoredVectors, unit


@dataclass
class Moves:
    """How far apart the answers or vectors of common rows are.

    :ivar apart: Jensen-Shannon divergence in bits, distance of scores, or 1 - cosine.
    :ivar changed: rows whose answer is not exactly equal.
    :ivar most: the rows that moved furthest: distance, row number in either set.
    """

    apart: Numbers
    changed: int = 0
    most: list[tuple[float, int, int]] = field(default_factory=list)


@dataclass
class Difference:
    """The difference between two sets.

    :ivar common: rows that both have; :ivar untouched: those in shards that are byte-identical,
        answers included, which are not in any :class:`Moves`.
    :ivar relabelled: common rows with a different label.
    :ivar answers: how far the teacher's answers moved; None if either set has none.
    :ivar other: common rows whose answer is another class; :ivar answers_lost: those no longer
        answered; :ivar answers_gained: those newly answered.
    :ivar vectors: how far vectors moved, by column suffix.
    """

    gone: Side
    added: Side
    common: int
    untouched: int
    relabelled: int
    answers: Moves | None = None
    other: int = 0
    answers_lost: int = 0
    answers_gained: int = 0
    vectors: dict[str, Moves] = field(default_factory=dict)


def difference(before: JoinedRows, after: JoinedRows, limit: int) -> Difference:
    """Compare two sets.

    :param limit: how many of the added, removed and moved rows to list.
    """
    with tempfile.TemporaryDirectory() as folder:
        matches = match(before, after, Path(folder), limit)
        result = Difference(
            matches.gone, matches.added, matches.rows + matches.untouched, matches.untouched, matches.relabelled
        )
        logits = _stored(before, after, "logits", FIRST)
        if logits:
            measure = "distance of the scores" if before.is_scored else "bits"
            for here, there in _both(logits, matches):
                _count(result, here, there, before.kind)
            apart = partial(moved, kind=before.kind)
            result.answers = _moves(logits, matches, measure, limit, apart)
        for side in (FIRST, SECOND):
            if vectors := _stored(before, after, "vector", side):
                result.vectors[side] = _moves(vectors, matches, "1 - cosine", limit, _apart)
    return result


def _stored(
    before: JoinedRows, after: JoinedRows, column: str, side: str
) -> tuple[StoredVectors, StoredVectors] | None:
    """Return a column of both sets, memory-mapped and by row number; None unless both have it."""
    stored = before.stored(column, side), after.stored(column, side)
    if None in stored:
        return None
    here, there = (vectors.shape[1] if len(vectors) else 0 for vectors in stored)
    if here and there and here != there:
        raise PotstillError(
            f"{before.name}, {after.name}: `{column}` of {here} and of {there} numbers cannot be "
            "compared. Name sets of the same task and teacher."
        )
    return stored


def _both(stored: tuple[StoredVectors, StoredVectors], matches: Matches) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the values of common rows in either set, float32 (rows, width) each."""
    for rows in matches.chunks():
        yield stored[0][rows[:, 0]], stored[1][rows[:, 1]]


def _count(result: Difference, here: np.ndarray, there: np.ndarray, kind: str) -> None:
    before, after = answered(here), answered(there)
    result.answers_lost += int((before & ~after).sum())
    result.answers_gained += int((after & ~before).sum())
    of_kind = KINDS[kind]
    if of_kind.has_probabilities:
        other, _ = of_kind.wrong(of_kind.decide(there), here)
        result.other += int((before & after)[other].sum())


def _moves(
    stored: tuple[StoredVectors, StoredVectors],
    matches: Matches,
    measure: str,
    limit: int,
    apart: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Moves:
    """Return how far rows moved, in two passes over the common rows."""
    moves, top, start = Moves(Numbers(measure, whole=False)), Top(limit), 0
    for here, there in _both(stored, matches):
        moves.apart.learn(apart(here, there))
    for here, there in _both(stored, matches):
        distances = apart(here, there)
        moves.apart.count_in(distances)
        same = (here == there).all(axis=1)
        moves.changed += int((~same & ~np.isnan(distances)).sum())
        top.add(np.where(same, np.nan, distances), 0, 0, start)
        start += len(here)
    for score, (_, _, position) in top.best():
        here, there = matches.read(position, 1)[0].tolist()
        moves.most.append((score, here, there))
    return moves


def _apart(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return 1 - the cosine of two vectors of each row, float64 (rows,)."""
    first, second = unit(one.astype(np.float64)), unit(other.astype(np.float64))
    return 1 - np.einsum("ij,ij->i", first, second)
