"""``distill encode``: embeds the lines of a file with an encoder or a student."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.terminal import say
from pipeline_lib.commands.options import Encoding, FormatOption, Quoted, input_path, read_options

if TYPE_CHECKING:
    import numpy as np

    from pipeline_lib.retrieval.sentence_rows import Rows

EXAMPLE = "Example: distill encode data/encoders/sra sentences.txt vectors.arrow"


def encode(
    model: Annotated[Path, Argument(help="Folder of an encoder or a student.")],
    file: Annotated[Path, Argument(help="Sentences: lines or a table; - for standard input.")],
    out: Annotated[Path, Argument(help="The file to write: .arrow, .parquet, .jsonl or .npy.")],
    normalise: Annotated[
        bool, Option("--normalise", help="Scale vectors to length 1: dot products are cosines.")
    ] = False,
    text: Annotated[str, Option(help="A table's column of sentences.")] = "text",
    form: FormatOption = None,
    encoding: Encoding = None,
    quoted: Quoted = None,
) -> None:
    """Write the sentence vector of each row of a file, in order.

    A table has the columns text and vector and is written batch by batch. An .npy file has only
    the vectors, in float32. An empty line gets the vector of an unknown word, and a row that
    cannot be read has none (NaN in .npy), so that rows keep their order and number.
    """
    from pipeline_lib.tables.writer import require_ending, require_other

    require_other(out, input_path(file))
    if out.suffix != ".npy":
        require_ending(out, (".arrow", ".parquet", ".jsonl", ".npy"))
    from pipeline_lib.exports.opening import load_encoder
    from pipeline_lib.shards.vectors import unit

    encoder = load_encoder(model)

    faults: list[str] = []

    def vectors(rows: "Rows") -> "np.ndarray":
        encoded = encoder.encode(rows.texts)
        encoded = unit(encoded) if normalise else encoded
        encoded[[*rows.faults]] = float("nan")
        faults.extend(rows.faults.values())
        return encoded

    from pipeline_lib.retrieval.sentence_rows import read_rows

    options = replace(read_options(form, encoding, quoted), keep_faulty=True)

    def encoded() -> "Encoded":
        total = 0
        for batch in read_rows(input_path(file), text, options=options):
            yield batch.texts, vectors(batch)
            total += len(batch)
        if faults and len(faults) == total:
            raise PotstillError(faults[0])

    write = write_npy if out.suffix == ".npy" else write_table
    rows = write(out, encoded(), encoder.width)
    if faults:
        say(f"rows that cannot be read, which get no vector: {len(faults):,}. {faults[0]}", err=True)
    say(f"{out}: {rows:,} vectors of {encoder.width} values", err=True)


Encoded = Iterable[tuple[list[str], "np.ndarray"]]


def write_table(path: Path, batches: Encoded, width: int) -> int:
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


def write_npy(path: Path, batches: Encoded, width: int) -> int:
    """Write vectors as one NumPy array, float32 (rows, width); return the number of rows."""
    import numpy as np

    parts = [np.empty((0, width), np.float32), *(vectors for _, vectors in batches)]
    with atomic_path(path) as temporary, open(temporary, "wb") as sink:
        np.save(sink, np.concatenate(parts))
    return sum(len(part) for part in parts)
