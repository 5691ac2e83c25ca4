"""``distill shards sample``: shows rows drawn at random."""

from typing import Annotated

import typer

from pipeline_lib.base.terminal import say_json
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

EXAMPLE = "Example: distill shards sample data/transfer/movies/full --rule replace --rows 5"


def sample(
    folder: SetFolder,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows to draw.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 1,
    rule: OneRule = None,
    label: OneLabel = None,
    student: StudentFolder = None,
    as_lines: Annotated[bool, typer.Option("--json", help="Print each row as a line of JSON.")] = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Show rows drawn at random, the same ones for the same seed, in the set's order.

    Rows are drawn by content: if the set grows, the same rows are drawn again, except those that new rows displace.
    """
    from dataclasses import asdict

    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.commands.shards.row_text import print_row
    from pipeline_lib.inspection.rows import read_row
    from pipeline_lib.inspection.sampling import sample as draw

    joined, names = open_set(folder, params)
    wanted = wanted_rows(joined, names, rule, label)
    answers = None
    if student is not None:
        from pipeline_lib.inspection.models import running_student

        answers = running_student(student, joined, names)
    drawn, of = draw(joined, rows, seed, wanted)
    console = SafeConsole()
    for shard, number in drawn:
        row = read_row(joined, shard, number, names, answers)
        if as_lines:
            say_json(asdict(row))
        else:
            print_row(console, row)
    if not as_lines:
        console.print(f"{len(drawn):,} of {of:,} rows drawn", style="bold", highlight=False)
