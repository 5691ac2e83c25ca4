"""``distill shards worklist``: lists the rows to review first."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.base.terminal import say_json
from pipeline_lib.commands.options import PARAMS, ParamsFile, RawCells
from pipeline_lib.commands.shards.options import AsJson
from pipeline_lib.inspection.captions import LISTS, NEXT

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline_lib.inspection.work_lists import WorkList
    from pipeline_lib.params import Params

EXAMPLE = "Example: distill shards worklist movies --kind labels --rows 20"
Kind = StrEnum("Kind", [(name, name) for name in (*LISTS, NEXT)])
To = Annotated[
    Path | None, typer.Option("--to", help="With --kind label-next: write a .csv, .jsonl or .parquet to fill in.")
]


def worklist(
    task: Annotated[str, typer.Argument(help="A task of params.yaml.")],
    kinds: Annotated[list[Kind] | None, typer.Option("--kind", help="Show only this list; repeatable.")] = None,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows per list.")] = 10,
    method: Annotated[
        str | None, typer.Option("--method", help="The student's method; by default best on dev.")
    ] = None,
    to: To = None,
    raw_cells: RawCells = False,
    as_json: AsJson = False,
    params: ParamsFile = PARAMS,
    data: Annotated[Path, typer.Option("--data", help="The folder of all artifacts.")] = Path("data"),
) -> None:
    """List the rows of a task to review first, the most informative on top.

    uncertain: where the teacher is least sure. labels: likely label errors, to whose label the teacher gives the lowest
    probability. student: where student and teacher differ most. augmentation: where augmentation changed the teacher's
    answer most. All are rows of the transfer set and the held-out splits, with the students' stored answers.
    label-next, if it is asked for: the unlabelled texts to label next, which the student is unsure of and which differ;
    once you have filled in the labels of what --to writes, it is one more file of the task's source.files.train.
    """
    from dataclasses import asdict

    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.commands.shards.running import running_features
    from pipeline_lib.inspection.label_next import label_next
    from pipeline_lib.inspection.work_lists import work_lists
    from pipeline_lib.params import load_params

    names = [kind.value for kind in kinds or Kind if kinds or kind != NEXT]
    if to is not None:
        _check_to(to, names)
    loaded, layout = load_params(params), Layout(data)
    review = [name for name in names if name != NEXT]
    lists = work_lists(layout, loaded, task, rows, method, review) if review else []
    if NEXT in names:
        lists.append(label_next(layout, loaded, task, rows, running_features, method))
    if to is not None:
        _write(to, lists[0], loaded, task, raw_cells)
        return
    if as_json:
        say_json([asdict(work_list) for work_list in lists], indent=2)
        return
    console = SafeConsole()
    for work_list in lists:
        _print(console, work_list)


def _check_to(to: Path, listed: list[str]) -> None:
    from pipeline_lib.base.errors import PotstillError
    from pipeline_lib.tables.writer import require_ending

    if listed != [NEXT]:
        raise PotstillError(
            f"--to {to}: it writes the texts of a task to label. Give --kind {NEXT} alone; "
            "`distill shards export` writes sets."
        )
    require_ending(to)


def _write(to: Path, work_list: "WorkList", params: "Params", task: str, raw_cells: bool) -> None:
    from pipeline_lib.base.errors import PotstillError
    from pipeline_lib.base.terminal import say
    from pipeline_lib.inspection.label_next import to_label
    from pipeline_lib.tables.writer import write_tables

    if work_list.missing or not work_list.rows:
        raise PotstillError(f"{to}: not written. {work_list.missing or 'Raise --rows.'}")
    column = params.task(task).label_of("train")
    rows = write_tables(to, [to_label(work_list, params.task(task))], None, raw_cells)
    say(f"{to}: {rows:,} of {work_list.considered:,} unlabelled texts; {work_list.student} answers")
    say(f"Next:  fill in the column {column}, and list the file in tasks.{task}.source.files.train: [..., {to.name}]")


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
