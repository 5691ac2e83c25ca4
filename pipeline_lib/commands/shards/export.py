"""``distill shards export``: writes a set as one flat file for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.base.terminal import say
from pipeline_lib.commands.options import RawCells
from pipeline_lib.commands.shards.options import (
    PARAMS,
    OneLabel,
    OneRule,
    ParamsFile,
    SetFolder,
    StudentFolder,
    open_set,
    wanted_rows,
)

EXAMPLE = "Example: distill shards export data/transfer/movies/full --to movies.parquet"


def export(
    folder: SetFolder,
    to: Annotated[Path, typer.Option("--to", help="The file: .parquet, .arrow, .jsonl or .csv.")],
    student: StudentFolder = None,
    encoder: Annotated[
        Path | None, typer.Option("--encoder", help="Encoder to add vectors with, if the set has none.")
    ] = None,
    rule: OneRule = None,
    label: OneLabel = None,
    raw_cells: RawCells = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Write a set and the models' answers to it as one flat file, row by row.

    Columns: id, key, text (and text_pair), label, how the row was made, the teacher's answer with confidence,
    entropy, probabilities and logits, with --student also the student's, vectors. DuckDB, datasets, pandas,
    embedding-atlas and sentence-transformers can read the file (docs/inspection.md).
    """
    from pipeline_lib.inspection.flat import FlatRows
    from pipeline_lib.tables.writer import write_tables

    rows, names = open_set(folder, params)
    wanted = wanted_rows(rows, names, rule, label)
    answers = vectors = None
    if student is not None:
        from pipeline_lib.inspection.models import running_student

        answers = running_student(student, rows, names)
    if encoder is not None:
        from pipeline_lib.inspection.models import running_encoder

        vectors = running_encoder(encoder)
    flat = FlatRows(rows, names, wanted, answers, vectors)
    written = write_tables(to, flat.tables(), names, raw_cells)
    say(f"{to}: {written:,} of {len(rows):,} rows")
