"""Whether sentence vectors out of files belong to their sentences, as far as words can tell."""

import math
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.storage.columns import FIRST
from pipeline_lib.teachers.foretelling import LEAST_FORETOLD, MAX_ROWS, foretold
from pipeline_lib.teachers.given_vectors import GivenVectors
from pipeline_lib.text.masking import signed_sentences

LEAD = 2.0
"""Standard errors by which words must foretell a neighbour's vector better than their own.  Of
2,000 sentences of Wikipedia they foretold all-MiniLM-L6-v2's own by 0.82, and a neighbour's, of the
same article as a rule, by 0.72: five standard errors."""


def check_related(
    given: GivenVectors, tables: Iterable[pa.Table], mask: str, where: str
) -> str | None:
    """Check that vectors stand beside their sentences; return a warning where words say nothing.

    Ridge regressions on hashed words foretell the first principal component of the first 2,000
    sentences' vectors: their own, those one row further up, those one row further down.

    :param tables: shards of the corpus, in their order; :param mask: what stands for a masked word.
    :raises DistilleryError: if the words foretell the neighbours' vectors better.
    """
    texts, vectors = _first(given, tables, mask)
    if not texts:
        return None
    component = _first_component(vectors)
    own, above, below = (foretold(texts, np.roll(component, n, axis=0)) for n in (0, 1, -1))
    if own is None:
        return None
    lead = LEAD / math.sqrt(len(texts))
    for place, found in (("up", above), ("down", below)):
        if found > max(own, LEAST_FORETOLD) + lead:
            raise DistilleryError(
                f"{where}: the words of {len(texts):,} sentences foretell the vectors one row "
                f"further {place} (correlation {found:.2f}) better than their own ({own:.2f}): the "
                "file is shifted. Put every vector beside its own text."
            )
    if own >= LEAST_FORETOLD:
        return None
    return (
        f"warning: {where}: the words of {len(texts):,} sentences do not foretell their vectors "
        f"(correlation {own:.2f}), and shifted or mixed up vectors would look so too. Look at some "
        "rows: `distill shards show`."
    )


def _first(
    given: GivenVectors, tables: Iterable[pa.Table], mask: str
) -> tuple[list[str], np.ndarray]:
    """Return the first sentences that have a vector, and these, float32 (sentences, width)."""
    texts: list[str] = []
    parts = [np.zeros((0, given.width), np.float32)]
    for table in tables:
        own = signed_sentences(table.slice(0, 2 * MAX_ROWS), FIRST, lambda: mask)
        found = given.of_texts(own)
        known = np.flatnonzero(~np.isnan(found).any(axis=1))
        texts += [own[row] for row in known]
        parts.append(found[known])
        if len(texts) >= MAX_ROWS:
            break
    return texts[:MAX_ROWS], np.concatenate(parts)[:MAX_ROWS]


def _first_component(vectors: np.ndarray) -> np.ndarray:
    """Return where vectors lie along the direction in which they vary most, float64 (rows, 1)."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, -1:]
