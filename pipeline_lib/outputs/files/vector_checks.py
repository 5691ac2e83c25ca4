"""Whether sentence vectors from files belong to their sentences, as far as words can tell."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from pipeline_lib.outputs.files.vector_table import GivenVectors
from pipeline_lib.outputs.word_prediction import MAX_ROWS, MIN_CORRELATION, check_not_shifted
from pipeline_lib.shards.columns import FIRST
from pipeline_lib.shards.masking import signed_sentences


def check_related(
    given_vectors: GivenVectors, tables: Iterable[pa.Table], mask: str, where: str
) -> str | None:
    """Check that vectors belong to their sentences; return a warning if words predict nothing.

    Ridge regressions on hashed words predict the first principal component of the first 2,000
    sentences' vectors: their own, those one row up, and those one row down.

    :param tables: the corpus's shards, in order; :param mask: what a masked word is replaced by.
    :raises DistilleryError: if the words predict the neighbours' vectors better.
    """
    texts, vectors = _first(given_vectors, tables, mask)
    if not texts:
        return None
    correlation = check_not_shifted(texts, _first_component(vectors), where, "vectors")
    if correlation is None or correlation >= MIN_CORRELATION:
        return None
    return (
        f"warning: {where}: the words of {len(texts):,} sentences do not predict their vectors "
        f"(correlation {correlation:.2f}), as if the vectors were shifted or mixed up. Check some "
        "rows: `distill shards show`."
    )


def _first(
    given_vectors: GivenVectors, tables: Iterable[pa.Table], mask: str
) -> tuple[list[str], np.ndarray]:
    """Return the first sentences with a vector, and the vectors, float32 (sentences, width)."""
    texts: list[str] = []
    parts = [np.zeros((0, given_vectors.width), np.float32)]
    for table in tables:
        sentences = signed_sentences(table.slice(0, 2 * MAX_ROWS), FIRST, lambda: mask)
        vectors = given_vectors.of_texts(sentences)
        known = np.flatnonzero(~np.isnan(vectors).any(axis=1))
        texts += [sentences[row] for row in known]
        parts.append(vectors[known])
        if len(texts) >= MAX_ROWS:
            break
    return texts[:MAX_ROWS], np.concatenate(parts)[:MAX_ROWS]


def _first_component(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors' projections onto the first principal component, float64 (rows, 1)."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, -1:]
