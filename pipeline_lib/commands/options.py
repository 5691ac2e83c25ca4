"""Options that several commands share, and how a command's input is read."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pipeline_lib.base.file_formats import Format
from pipeline_lib.tables.reader import ReadOptions

PARAMS = Path("params.yaml")
ParamsFile = Annotated[Path, Option("--params", help="The parameter file.")]
WrittenParams = Annotated[Path, Option("--params", help="The file to write.")]
Index = Annotated[Path, Argument(help="Folder of the index.")]
Device = Annotated[str, Option(help="auto, cpu, cuda, cuda:<number> or mps.")]
FormatOption = Annotated[Format | None, Option("--format", help="The file's format; by default from its name.")]
Encoding = Annotated[str | None, Option(help="The file's encoding; by default, it is detected.")]
Quoted = Annotated[
    bool | None, Option("--quoted/--unquoted", help="Whether CSV or TSV has quotes; by default, it is detected.")
]
NoScm = Annotated[bool, Option("--no-scm", help="Do without git: DVC alone tracks it.")]
RawCells = Annotated[bool, Option("--raw-cells", help="In CSV, leave texts alone that a spreadsheet would compute.")]


def read_options(format: Format | None = None, encoding: str | None = None, quoted: bool | None = None) -> ReadOptions:
    """Return the options for the reader."""
    return ReadOptions(format, quoted, encoding)


def input_path(file: Path | None) -> Path | None:
    """Return the file to read; None, for which users may write -, is standard input."""
    return None if file == Path("-") else file
