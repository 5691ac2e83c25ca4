"""Options shared by the ``distill shards`` commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.inspection.captions import RuleName

if TYPE_CHECKING:
    from pipeline_lib.inspection.filters import Filter
    from pipeline_lib.inspection.joined import JoinedRows
    from pipeline_lib.inspection.rows import Answering


SetFolder = Annotated[Path, typer.Argument(metavar="SET", help="Folder of a transfer set, task split or outputs.")]
OneRule = Annotated[RuleName | None, typer.Option("--rule", help="Only rows changed by this rule.")]
OneLabel = Annotated[str | None, typer.Option("--label", help="Only rows with this label; none: unlabelled rows.")]
StudentFolder = Annotated[
    Path | None, typer.Option("--student", help="Folder of a student, to answer the rows as well.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
ParamsFile = Annotated[Path, typer.Option("--params", help="Parameter file, for label names.")]
PARAMS = Path("params.yaml")


def open_set(folder: Path, params: Path) -> "tuple[JoinedRows, list[str] | None]":
    """Open a set with its counterpart, and return the names of its classes.

    The names are those of the task in the path; None for a regression, or if unknown.
    """
    from pipeline_lib.inspection.joined import JoinedRows

    rows = JoinedRows.open(folder)
    return rows, class_names(rows, folder, params)


def class_names(rows: "JoinedRows", folder: Path, params: Path) -> list[str] | None:
    """Return the names of a set's classes, or None.

    :param folder: its path contains the task's name; :param params: a file that need not exist.
    """
    from pipeline_lib.params import load_params

    tasks = load_params(params).tasks if params.exists() else {}
    task = next((part for part in reversed(folder.absolute().parts) if part in tasks), None)
    return None if task is None or rows.is_scored else tasks[task].label_names


def wanted_rows(rows: "JoinedRows", names: list[str] | None, rule: RuleName | None, label: str | None) -> "Filter":
    """Return the filter that the options describe."""
    from pipeline_lib.inspection.filters import Filter

    return Filter.of(rows, names, rule, label)


def answers_of(student: Path | None, rows: "JoinedRows", names: list[str] | None) -> "Answering | None":
    """Return what answers a set's rows, if a student's folder is named."""
    if student is None:
        return None
    # It imports torch, which takes seconds.
    from pipeline_lib.commands.shards.running import running_student

    return running_student(student, rows, names)
