"""``distill store``: what was computed once: listed, checked, cleared, taken from data."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.base.terminal import say

if TYPE_CHECKING:
    from pipeline_lib.shards.entries import Entry

app = typer.Typer(no_args_is_help=True, help="The store: outputs of passes and trainings, each computed once.")
_DAY = 24 * 60 * 60


@app.command("ls", epilog="Example: distill store ls")
def list_entries() -> None:
    """List what the store holds, by kind: entries, rows, size, use here, last use."""
    from rich import box
    from rich.table import Table

    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.base.layout import state_folder
    from pipeline_lib.commands.shards import size_text
    from pipeline_lib.commands.store.in_use import digests_in_data
    from pipeline_lib.shards.entries import entries

    used = digests_in_data(Path("data"))
    by_kind = _by_kind([*entries()])
    if not by_kind:
        say(f"{state_folder()}: nothing is stored yet.")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=str(state_folder()))
    table.add_column("Kind")
    for head in ("Entries", "Rows", "Size", "In data/", "Last used"):
        table.add_column(head, justify="right", no_wrap=True)
    for kind, of_kind in by_kind.items():
        rows = sum(entry.rows or 0 for entry in of_kind)
        size = size_text(sum(entry.bytes for entry in of_kind))
        here = sum(entry.is_in(used) for entry in of_kind)
        last = time.strftime("%Y-%m-%d", time.localtime(max(entry.used for entry in of_kind)))
        table.add_row(kind, f"{len(of_kind):,}", f"{rows:,}" if rows else "", size, f"{here:,}", last)
    SafeConsole().print(table)


@app.command("verify", epilog="Example: distill store verify")
def verify() -> None:
    """Check the bytes of every entry; exit with 1 if one is damaged.

    A damaged entry is computed again when it is needed, and does no harm before.
    """
    from pipeline_lib.shards.entries import entries

    checked = [(entry, entry.is_whole()) for entry in entries()]
    for entry, is_whole in checked:
        if not is_whole:
            say(f"{entry.paths[0]}: damaged; it will be computed again")
    damaged = sum(not is_whole for _, is_whole in checked)
    say(f"{len(checked):,} entries, {damaged:,} damaged")
    if damaged:
        raise typer.Exit(1)


@app.command("gc", epilog="Example: distill store gc --days 7 --yes")
def collect_garbage(
    days: Annotated[int, typer.Option(help="Keep what was used in so many days.", min=0)] = 30,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; else it is only shown.")] = False,
) -> None:
    """Show or delete entries that nothing refers to.

    Kept are those in this workspace's data, in data that git's tags and branches name and DVC has
    cached, and those used lately. What is deleted costs computing it again, and nothing else.
    """
    from pipeline_lib.base.layout import state_folder
    from pipeline_lib.commands.shards import size_text
    from pipeline_lib.commands.store.in_use import digests_in_data, digests_in_revisions
    from pipeline_lib.shards.entries import entries

    of_revisions, names = digests_in_revisions(Path("."))
    used = digests_in_data(Path("data")) | of_revisions
    since = time.time() - days * _DAY
    everything = [*entries()]
    unused = [entry for entry in everything if entry.used < since and not entry.is_in(used)]
    reasons = f"data/, the last {days} days" + (f", {', '.join(names)}" if names else "")
    say(f"kept       {len(everything) - len(unused):,} of {len(everything):,} entries: {reasons}")
    if not state_folder().resolve().is_relative_to(Path.cwd()):
        say(f"shared     {state_folder()}: of other workspaces' entries only --days protects some")
    for kind, of_kind in _by_kind(unused).items():
        size = size_text(sum(entry.bytes for entry in of_kind))
        say(f"{'deleted' if yes else 'unused':<10} {kind}: {len(of_kind):,} entries, {size}")
        for entry in of_kind if yes else ():
            entry.delete()
    if unused and not yes:
        say("\nNothing was deleted. To delete these: distill store gc --yes")


@app.command("import", epilog="Example: dvc pull && distill store import")
def import_data(
    data: Annotated[Path, typer.Argument(help="A folder of data, of the same params.yaml.")] = Path("data"),
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take outputs of other code or libraries, once checked.")
    ] = False,
    tolerance: Annotated[
        float, typer.Option(help="With --adopt: how much rows may differ, as a share of their distance.")
    ] = 1e-3,
) -> None:
    """Take transfer sets, teachers' outputs and sentence vectors from a folder of data.

    After `dvc pull` into a new clone, the data are there and the store is empty: without this, one
    more iteration computes all of them again. So does an upgrade of this library: --adopt computes
    some rows of every shard again, and takes the shards if these come out alike.
    """
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.commands.store.refill import refill
    from pipeline_lib.params import load_params

    done = [*refill(load_params(), Layout(data), tolerance if adopt else None)]
    for taken in done:
        outcome = taken.fault or f"{taken.new:,} shards taken, {taken.known:,} known"
        again = "" if taken.fault or taken.difference is None else f"; differ by {taken.difference:.1g}"
        say(f"{taken.folder}: {outcome}{again}")
    if not done:
        say(f"{data}: no transfer set, outputs or vectors of what params.yaml has.")


def _by_kind(entries: Sequence["Entry"]) -> dict[str, list["Entry"]]:
    kinds: dict[str, list[Entry]] = {}
    for entry in entries:
        kinds.setdefault(entry.kind, []).append(entry)
    return kinds
