"""``distill shards worklist``: lists the rows to review first."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.base.terminal import say_json
from pipeline_lib.commands.shards.options import PARAMS, AsJson, StudentFolder, open_set

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline_lib.inspection.work_lists import WorkList

EXAMPLE = "Example: distill shards worklist movies --kind labels --rows 20"


class Kind(StrEnum):
    """What a list is sorted by."""

    uncertain = "uncertain"
    labels = "labels"
    student = "student"
    augmentation = "augmentation"


def worklist(
    what: Annotated[
        str, typer.Argument(metavar="TASK|SET", help="A task of params.yaml, or a set's folder.")
    ],
    kinds: Annotated[
        list[Kind] | None, typer.Option("--kind", help="Show only this list; repeatable.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows per list.")] = 10,
    method: Annotated[
        str | None,
        typer.Option("--method", help="For a task, the student's method; by default best on dev."),
    ] = None,
    student: StudentFolder = None,
    as_json: AsJson = False,
    params: Annotated[Path, typer.Option("--params", help="The parameter file.")] = PARAMS,
    data: Annotated[Path, typer.Option("--data", help="The folder of all artifacts.")] = Path(
        "data"
    ),
) -> None:
    """List the rows to review first, the most informative on top.

    uncertain: where the teacher is least sure. labels: likely label errors, to whose label the
    teacher gives the lowest probability. student: where student and teacher differ most.
    augmentation: where augmentation changed the teacher's answer most. For a task, the transfer
    set and held-out splits are read with the students' stored answers; for a set, only that set,
    and --student answers it.
    """
    from dataclasses import asdict

    from pipeline_lib.base.console import SafeConsole

    wanted = [kind.value for kind in kinds or Kind]
    # No task's name has a slash.
    if "/" in what or (Path(what) / "manifest.json").exists():
        lists = _of_set(Path(what), wanted, rows, method, student, params)
    else:
        lists = _of_task(what, wanted, rows, method, student, params, data)
    if as_json:
        say_json([asdict(work_list) for work_list in lists], indent=2)
        return
    console = SafeConsole()
    for work_list in lists:
        _print(console, work_list)


def _of_task(
    task: str,
    wanted: list[str],
    rows: int,
    method: str | None,
    student: Path | None,
    params: Path,
    data: Path,
) -> "list[WorkList]":
    from pipeline_lib.base.errors import DistilleryError
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.inspection.work_lists import work_lists
    from pipeline_lib.params import load_params

    if student is not None:
        raise DistilleryError(
            "--student answers the rows of a set. For a task, choose stored answers with --method; "
            "or name a set's folder."
        )
    return work_lists(Layout(data), load_params(params), task, rows, method, wanted, cleanlab=True)


def _of_set(
    folder: Path,
    wanted: list[str],
    rows: int,
    method: str | None,
    student: Path | None,
    params: Path,
) -> "list[WorkList]":
    from pipeline_lib.base.errors import DistilleryError
    from pipeline_lib.inspection.work_lists import ListPart, lists_of

    if method is not None:
        raise DistilleryError(
            "--method is for a task. For a set, name a student's folder with --student."
        )
    joined, names = open_set(folder, params)
    answers = None
    if student is not None:
        from pipeline_lib.inspection.models import running_student

        answers = running_student(student, joined, names)
    part, who = ListPart(joined, student=answers), None if student is None else str(student)
    return lists_of([part], names, rows, joined.is_regression, who, wanted, cleanlab=True)


def _print(console: "Console", work_list: "WorkList") -> None:
    from rich.text import Text

    from pipeline_lib.commands.shards.row_text import print_row

    def tell(text: str, style: str) -> None:
        console.print(Text(text, style), highlight=False)

    tell(work_list.title, "bold underline")
    tell(work_list.explanation, "")
    if work_list.missing:
        tell(work_list.missing, "dim")
    console.print()
    for row in work_list.rows:
        print_row(console, row, work_list.measure)
    if work_list.rows:
        whose = f"; student: {work_list.student}" if work_list.student else ""
        tell(f"{len(work_list.rows):,} of {work_list.considered:,} rows{whose}", "bold")
        console.print()
