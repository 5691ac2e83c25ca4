"""Whether answers or vectors from files belong to their texts, as far as words can tell."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from pipeline_lib.outputs.files.content_keys import content_keys, read_texts
from pipeline_lib.outputs.files.keyed_table import KeyedTable, Name
from pipeline_lib.outputs.word_prediction import (
    MAX_ROWS,
    MIN_CORRELATION,
    MIN_ROWS,
    check_not_shifted,
)


def check_words(
    table: KeyedTable,
    name: Name,
    rows: Iterable[pa.Table],
    where: str,
    enough: int | None = None,
) -> float | None:
    """Check, without labels, that the values of the files are not shifted as a whole.

    Ridge regressions on hashed words predict the output with the highest variance, of vectors the
    first principal component: their own, those one row up, and those one row down.

    :param rows: of texts, of which the first in the files are used.
    :param enough: how many rows with a value to look for; None: all.
    :return: how well the words predict the values; None: there are too few texts.
    :raises DistilleryError: if they predict the values one row up or down better.
    """
    texts: list[str] = []
    indices = np.zeros(0, np.int64)
    for part in rows:
        sides = read_texts(part, table.mask)
        places = table.find(content_keys(sides))
        joined = [" ".join(row) for row in zip(*sides, strict=True)]
        texts += [joined[row] for row in np.flatnonzero(places >= 0)]
        indices = np.concatenate([indices, places[places >= 0]])
        if enough is not None and len(texts) >= enough:
            break
    if len(texts) < MIN_ROWS:
        return None
    order = np.argsort(table.places[indices], kind="stable")[:MAX_ROWS]
    values = table[indices[order]]
    outputs = _first_component(values) if name == "vectors" else values
    return check_not_shifted([texts[row] for row in order], outputs, where, name)


def unrelated_warning(where: str, name: Name, correlation: float | None) -> str | None:
    """Return the warning for values that nothing in their texts predicts; None: they fit.

    :param correlation: see :func:`check_words`.
    """
    if correlation is None or correlation >= MIN_CORRELATION:
        return None
    return (
        f"warning: {where}: the words of its texts do not predict its {name} (correlation "
        f"{correlation:.2f}), as if the {name} were shifted or mixed up. Check some rows: "
        "`distill shards show`."
    )


def _first_component(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors' projections onto the first principal component, float64 (rows, 1)."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, -1:]
