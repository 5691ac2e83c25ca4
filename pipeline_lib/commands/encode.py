"""``distill encode``: embeds the lines of a file with an encoder or a student."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np

EXAMPLE = "Example: distill encode data/encoders/sra sentences.txt vectors.arrow"
BATCH = 8192


def encode(
    model: Annotated[Path, typer.Argument(help="Folder of an encoder or a student.")],
    file: Annotated[Path, typer.Argument(help="Sentences, one per line; - for standard input.")],
    out: Annotated[Path, typer.Argument(help="The file to write: .arrow or .npy.")],
    normalise: Annotated[
        bool,
        typer.Option("--normalise", help="Scale vectors to length 1: dot products are cosines."),
    ] = False,
) -> None:
    """Write the sentence vector of each line of a file, in order.

    An .arrow file has the columns text and vector and is written batch by batch. An .npy file has
    only the vectors, in float32. An empty line gets the vector of an unknown word, so that row
    numbers match line numbers.
    """
    from pipeline_lib.base.errors import DistilleryError

    writers = {".arrow": write_arrow, ".npy": write_npy}
    if out.suffix not in writers:
        raise DistilleryError(f"{out}: give a name that ends in {' or '.join(writers)}.")
    from pipeline_lib.exports.opening import load_encoder
    from pipeline_lib.shards.vectors import unit

    encoder = load_encoder(model)

    def vectors(texts: list[str]) -> "np.ndarray":
        encoded = encoder.encode(texts)
        return unit(encoded) if normalise else encoded

    rows = writers[out.suffix](out, ((b, vectors(b)) for b in _batches(file)), encoder.width)
    typer.echo(f"{out}: {rows:,} vectors of {encoder.width} values", err=True)


Encoded = Iterable[tuple[list[str], "np.ndarray"]]


def write_arrow(path: Path, batches: Encoded, width: int) -> int:
    """Write texts and vectors as an Arrow IPC file, batch by batch; return the number of rows."""
    import pyarrow as pa

    from pipeline_lib.base.files import atomic_path
    from pipeline_lib.shards.columns import list_column

    schema = pa.schema({"text": pa.string(), "vector": pa.list_(pa.float32(), width)})
    rows = 0
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, schema) as writer,
    ):
        for texts, vectors in batches:
            columns = [pa.array(texts, pa.string()), list_column(vectors)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            rows += len(texts)
    return rows


def write_npy(path: Path, batches: Encoded, width: int) -> int:
    """Write vectors as one NumPy array, float32 (rows, width); return the number of rows."""
    import numpy as np

    from pipeline_lib.base.files import atomic_path

    parts = [np.empty((0, width), np.float32), *(vectors for _, vectors in batches)]
    with atomic_path(path) as temporary, open(temporary, "wb") as sink:
        np.save(sink, np.concatenate(parts))
    return sum(len(part) for part in parts)


def _batches(file: Path) -> Iterator[list[str]]:
    from pipeline_lib.tables.lines import read_lines

    lines = read_lines(None if str(file) == "-" else file)
    while batch := list(islice(lines, BATCH)):
        yield batch
