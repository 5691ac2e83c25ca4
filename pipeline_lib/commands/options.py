"""Options that several commands share, and how a command's input is read."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pipeline_lib.tables.reader import ReadOptions


class InputFormat(StrEnum):
    """Input formats: a text per line, or rows with columns."""

    lines = "lines"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"
    arrow = "arrow"


PARAMS = Path("params.yaml")
ParamsFile = Annotated[Path, Option("--params", help="The parameter file.")]
WrittenParams = Annotated[Path, Option("--params", help="The file to write.")]
Index = Annotated[Path, Argument(help="Folder of the index.")]
Device = Annotated[str, Option(help="auto, cpu, cuda, cuda:<number> or mps.")]
FormatOption = Annotated[InputFormat | None, Option("--format", help="The file's format; by default from its name.")]
Encoding = Annotated[str | None, Option(help="The file's encoding; by default, it is detected.")]
Quoted = Annotated[
    bool | None, Option("--quoted/--unquoted", help="Whether CSV or TSV has quotes; by default, it is detected.")
]
NoScm = Annotated[bool, Option("--no-scm", help="Do without git: DVC alone tracks it.")]


RawCells = Annotated[
    bool, Option("--raw-cells", help="In CSV, leave texts as they are that a spreadsheet would compute.")
]


def read_options(
    format: InputFormat | None = None, encoding: str | None = None, quoted: bool | None = None
) -> ReadOptions:
    """Return the options for the reader."""
    return ReadOptions(format and format.value, quoted, encoding)


def input_path(file: Path | None) -> Path | None:
    """Return the file to read; None, for which users may write -, is standard input."""
    return None if file == Path("-") else file
