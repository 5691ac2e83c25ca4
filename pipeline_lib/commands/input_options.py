"""How a command's input is read and tables are written: options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.tables.reader import ReadOptions


class InputFormat(StrEnum):
    """Input formats: a text per line, or rows with columns."""

    lines = "lines"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"
    arrow = "arrow"


Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="The file's encoding; by default, it is detected."),
]
Quoted = Annotated[
    bool | None,
    typer.Option(
        "--quoted/--unquoted", help="Whether CSV or TSV has quotes; by default, it is detected."
    ),
]


RawCells = Annotated[
    bool,
    typer.Option(
        "--raw-cells", help="In CSV, leave texts as they are that a spreadsheet would compute."
    ),
]


def read_options(
    format: InputFormat | None = None, encoding: str | None = None, quoted: bool | None = None
) -> ReadOptions:
    """Return the options for the reader."""
    return ReadOptions(format and format.value, quoted, encoding)


def input_path(file: Path | None) -> Path | None:
    """Return the file to read; None, for which users may write -, is standard input."""
    return None if file == Path("-") else file
