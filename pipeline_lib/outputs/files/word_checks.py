"""Whether answers or vectors from files belong to their texts, as far as words can tell.

A text's words hardly predict its teacher's answer if rows were shifted.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.kinds import score
from pipeline_lib.outputs.files.content_keys import content_keys, read_texts
from pipeline_lib.outputs.files.keyed_table import KeyedTable, Name
from pipeline_lib.text.words import split_words

MIN_ROWS, MAX_ROWS = 200, 2000
"""Answered training rows needed for a prediction from words, and the maximum used."""
WIDTH, RIDGE = 1024, 10.0
"""The number of buckets that words are hashed to, and the ridge penalty."""
MIN_CORRELATION = 0.1
"""Shuffled answers give 0 ± 0.07 with 200 rows; tasks that depend on words, 0.3 and more."""
LEAD = 2.0
"""Standard errors by which words must predict a neighbour's output better than their own.  For
2,000 sentences of Wikipedia and all-MiniLM-L6-v2 the correlation was 0.82 with their own vectors
and 0.72 with a neighbour's, usually from the same article: five standard errors apart."""


def check_words(table: KeyedTable, name: Name, rows: Iterable[pa.Table], where: str) -> float | None:
    """Check, without labels, that words do not predict the values one row up or down better.

    :param rows: of texts, of which the first in the files are used; for vectors, among those in
        the first tables that have enough.
    :return: how well words predict the values, see :func:`_predicted_from_words`; None: there are too few texts.
    """
    texts: list[str] = []
    indices = np.zeros(0, np.int64)
    for part in rows:
        sides = read_texts(part, table.mask)
        places = table.find(content_keys(sides))
        joined = [" ".join(row) for row in zip(*sides, strict=True)]
        texts += [joined[row] for row in np.flatnonzero(places >= 0)]
        indices = np.concatenate([indices, places[places >= 0]])
        if name == "vectors" and len(texts) >= MAX_ROWS:
            break
    order = np.argsort(table.places[indices], kind="stable")[:MAX_ROWS]
    if len(order) < MIN_ROWS:
        return None
    texts, outputs = [texts[row] for row in order], table[indices[order]].astype(np.float64)
    if name == "vectors":
        outputs = _first_component(outputs)
    correlation = _predicted_from_words(texts, outputs)
    for direction, step in (("up", 1), ("down", -1)):
        shifted = _predicted_from_words(texts, np.roll(outputs, step, axis=0))
        lead = LEAD / math.sqrt(len(texts))
        if correlation is not None and shifted > max(correlation, MIN_CORRELATION) + lead:
            raise PotstillError(
                f"{where}: the words of {len(texts):,} texts predict the {name} one row "
                f"{direction} (correlation {shifted:.2f}) better than their own "
                f"({correlation:.2f}): the {name} are shifted. Put each in the row of its own text."
            )
    return correlation


def unrelated_warning(where: str, name: Name, correlation: float | None) -> str | None:
    """Return the warning for values that nothing in their texts predicts; None: they fit.

    :param correlation: see :func:`check_words`.
    """
    if correlation is None or correlation >= MIN_CORRELATION:
        return None
    return (
        f"warning: {where}: the words of its texts do not predict its {name} (correlation {correlation:.2f}), as if "
        f"the {name} were shifted or mixed up. Check some rows: `distill shards show`."
    )


def _first_component(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors' projections onto the first principal component, float64 (rows, 1)."""
    centred = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, -1:]


def _predicted_from_words(texts: Sequence[str], outputs: np.ndarray) -> float | None:
    """Return how well a text's words predict its answer: Pearson's r on held-out rows.

    A ridge regression on hashed words, fitted to each half and tested on the other, predicts the
    output with the highest variance; None if this never varies.

    :param outputs: float64 (rows, width).
    """
    target = outputs[:, outputs.var(axis=0).argmax()]
    if np.ptp(target) == 0:
        return None
    features = _hashed_words(texts)
    predictions = np.empty(len(texts))
    for half in (0, 1):
        other = np.arange(len(texts)) % 2 != half
        mean, inputs = target[other].mean(), features[other]
        squares = inputs.T @ inputs + RIDGE * np.eye(WIDTH)
        weights = np.linalg.solve(squares, inputs.T @ (target[other] - mean))
        predictions[~other] = mean + features[~other] @ weights
    return round(score("pearson", target, predictions[:, None]), 6)


def _hashed_words(texts: Sequence[str]) -> np.ndarray:
    """Return each text's hashed bag of words, 0 or 1, float64 (rows, WIDTH)."""
    features = np.zeros((len(texts), WIDTH))
    for row, text in enumerate(texts):
        words = sorted(set(split_words(text.lower())[0]))
        features[row, string_keys(words) % np.uint64(WIDTH)] = 1.0
    return features
