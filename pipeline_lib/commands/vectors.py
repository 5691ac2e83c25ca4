"""What ``distill predict`` writes with an encoder: a vector per row, in order."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.terminal import say

if TYPE_CHECKING:
    import numpy as np

    from pipeline_lib.retrieval.sentence_rows import Rows

    Encoded = Iterable[tuple[list[str], "np.ndarray"]]

ENDINGS = (".arrow", ".parquet", ".jsonl", ".npy")


def write_vectors(model: Path, batches: "Iterable[Rows]", out: Path, normalise: bool) -> None:
    """Write the sentence vector of each row; a row that cannot be read has none (NaN in .npy).

    :param model: the folder of an encoder, or of a student with one.
    """
    from pipeline_lib.exports.opening import load_encoder
    from pipeline_lib.shards.vectors import unit

    encoder = load_encoder(model)
    faults: list[str] = []

    def encoded() -> "Iterator[tuple[list[str], np.ndarray]]":
        total = 0
        for rows in batches:
            vectors = encoder.encode(rows.texts)
            vectors = unit(vectors) if normalise else vectors
            vectors[[*rows.faults]] = float("nan")
            faults.extend(rows.faults.values())
            yield rows.texts, vectors
            total += len(rows)
        if faults and len(faults) == total:
            raise PotstillError(faults[0])

    write = _write_npy if out.suffix == ".npy" else _write_table
    rows = write(out, encoded(), encoder.width)
    if faults:
        say(f"rows that cannot be read, which get no vector: {len(faults):,}. {faults[0]}", err=True)
    say(f"{out}: {rows:,} vectors of {encoder.width} values", err=True)


def _write_table(path: Path, batches: "Encoded", width: int) -> int:
    """Write texts and vectors, batch by batch; return the number of rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from pipeline_lib.shards.columns import list_column
    from pipeline_lib.tables.writer import open_writer

    rows = 0
    nothing = ([], np.empty((0, width), np.float32))
    with open_writer(path) as write:
        for texts, vectors in chain([nothing], batches):
            column, missing = list_column(vectors), pa.array(np.isnan(vectors).any(axis=1))
            column = pc.if_else(missing, pa.scalar(None, column.type), column)
            write(pa.table({"text": pa.array(texts, pa.string()), "vector": column}), None)
            rows += len(texts)
    return rows


def _write_npy(path: Path, batches: "Encoded", width: int) -> int:
    """Write vectors as one NumPy array, float32 (rows, width); return the number of rows."""
    import numpy as np

    parts = [np.empty((0, width), np.float32), *(vectors for _, vectors in batches)]
    with atomic_path(path) as temporary, open(temporary, "wb") as sink:
        np.save(sink, np.concatenate(parts))
    return sum(len(part) for part in parts)
