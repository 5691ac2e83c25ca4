"""The ``distill`` command: make a workspace, run its pipeline, look inside, use a student."""

from typing import Annotated

import typer

from pipeline_lib import __version__
from pipeline_lib.base.entry import guard
from pipeline_lib.base.interrupts import end_quietly
from pipeline_lib.commands import (
    check,
    explain,
    export,
    index,
    init,
    plan,
    predict,
    profile,
    results,
    run,
    search,
    shards,
    store,
    teacher,
    verify,
)

app = typer.Typer(
    name="distill",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Run the pipeline with: distill run, or dvc repro",
)
PANELS = {
    "Start": (init, plan, run, check),
    "Look": (results, explain, shards),
    "Use a student": (predict, export, index, search),
    "Advanced": (teacher, profile, store, verify),
}
for panel, modules in PANELS.items():
    for module in modules:
        name = module.__name__.rpartition(".")[2]
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name, rich_help_panel=panel)
        else:
            app.command(name, epilog=module.EXAMPLE, rich_help_panel=panel)(getattr(module, name))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"potstill {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Compress BERT-class models into students about 8 times smaller and 30 to 100 times faster."""


def main() -> None:
    """Run the command; an error the user can fix prints one line and exits with status 1."""
    end_quietly()
    guard(app)


if __name__ == "__main__":
    main()
