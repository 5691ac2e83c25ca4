"""``distill account``: what the stages took: time, work, memory, money."""

from pathlib import Path
from typing import Annotated

from typer import Option

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say, say_json
from pipeline_lib.base.workspace import PIPELINE

EXAMPLE = "Example: distill account --price 2.5"


def account(
    price: Annotated[float | None, Option(help="Of an hour of this machine, in any money.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print all figures as JSON instead.")] = False,
    data: Annotated[Path, Option(help="The folder of all artifacts.")] = Path("data"),
) -> None:
    """Show what each stage took when it last ran here.

    Time, rows and tokens computed, trainings, the share of the work that was stored, the most memory that one of its
    processes had, and the accelerator. A stage that DVC skips keeps its figures.
    """
    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.base.flow import read_flow
    from pipeline_lib.results.account import account_table, stage_runs, totals
    from pipeline_lib.results.terminal import print_table

    flow = read_flow(PIPELINE, Layout(data))
    runs = stage_runs(flow)
    cost = None if price is None else round(price * flow["seconds"] / 3600, 4)
    if as_json:
        say_json({"runs": runs, "seconds": flow["seconds"], "cost": cost}, indent=2)
        return
    if not runs:
        say(f"{data}: no stage ran here yet. Run `distill run`.")
        return
    print_table(SafeConsole(), account_table(runs))
    say(totals(runs, cost))
