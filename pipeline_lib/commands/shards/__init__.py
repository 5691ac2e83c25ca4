"""``distill shards``: list, inspect and export the cached shard sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.commands.shards import rows, worklist

if TYPE_CHECKING:
    from pipeline_lib.shards.shard_sets import Manifest

app = typer.Typer(no_args_is_help=True, help="List, inspect and export shard sets (data and teacher outputs).")
Folder = Annotated[Path, typer.Argument(help="A shard set, or a folder that contains some.")]


@app.command("ls", epilog="Example: distill shards ls data/outputs")
def list_sets(folder: Folder = Path("data")) -> None:
    """List shard sets with kind, rows, shards, bytes and digest."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.base.errors import PotstillError
    from pipeline_lib.shards.shard_sets import read_manifest, shard_sets

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("Folder", overflow="fold")
    table.add_column("Kind")
    for head in ("Rows", "Shards", "Size", "Digest"):
        table.add_column(head, justify="right", no_wrap=True)
    for path in shard_sets(folder):
        try:
            table.add_row(*map(Text, [str(path), *_cells(read_manifest(path))]))
        except PotstillError:
            table.add_row(Text(str(path)), "[red]unreadable[/red]: `distill verify`")
    SafeConsole().print(table)


app.command("show", epilog=rows.SHOW_EXAMPLE)(rows.show)


def _cells(manifest: "Manifest") -> list[str]:
    size = sum(shard.bytes for shard in manifest.shards)
    shards = len(manifest.shards)
    return [manifest.kind, f"{manifest.rows:,}", f"{shards:,}", size_text(size), manifest.digest[:12]]


def size_text(size: float) -> str:
    """Return a number of bytes in a readable unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


app.command("worklist", epilog=worklist.EXAMPLE)(worklist.worklist)
app.command("export", epilog=rows.EXPORT_EXAMPLE)(rows.export)
