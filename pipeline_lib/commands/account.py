"""``distill account``: what the stages took: time, rows, trainings, memory, money."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

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

    Time, rows computed and found in the store, rows per second, trainings computed and found, and
    the most memory that one of its processes had. A stage that DVC skips keeps its figures.
    """
    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.base.flow import read_flow

    flow = read_flow(PIPELINE, Layout(data))
    runs = [
        {"stage": stage["name"] + (f"@{run['item']}" if run["item"] else ""), **run}
        for stage in flow["stages"]
        for run in stage["runs"]
    ]
    cost = None if price is None else round(price * flow["seconds"] / 3600, 4)
    if as_json:
        say_json({"runs": runs, "seconds": flow["seconds"], "cost": cost}, indent=2)
        return
    if not runs:
        say(f"{data}: no stage ran here yet. Run `distill run`.")
        return
    SafeConsole().print(_table(runs))
    for line in _totals(runs, flow["seconds"], cost):
        say(line)


def _table(runs: list[dict[str, Any]]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("Stage", no_wrap=True)
    for head in ("Seconds", "Rows", "Found", "Rows/s", "Trained", "Found", "MiB"):
        table.add_column(head, justify="right", no_wrap=True)
    for run in runs:
        rows, trainings = (run["counts"].get(kind, {}) for kind in ("rows", "trainings"))
        new = rows.get("computed", 0)
        rate = f"{new / run['seconds']:,.0f}" if new and run["seconds"] else ""
        peak = f"{run['peak_bytes'] / 2**20:.0f}" if run["peak_bytes"] else ""
        counts = [*_counts(rows), rate, *_counts(trainings), peak]
        table.add_row(run["stage"], f"{run['seconds']:,.0f}", *counts)
    return table


def _counts(counts: dict[str, int]) -> list[str]:
    return [f"{counts[key]:,}" if counts.get(key) else "" for key in ("computed", "reused")]


def _totals(runs: list[dict[str, Any]], seconds: float, cost: float | None) -> Iterator[str]:
    from pipeline_lib.commands.run import duration

    on = sorted({run["processor"] for run in runs if run["processor"]})
    money = "" if cost is None else f", at a price of {cost:,.2f}"
    where = f", on {', '.join(on)}" if on else ""
    yield f"{duration(seconds)} in all{money}{where}"
