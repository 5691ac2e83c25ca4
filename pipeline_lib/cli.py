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
    help="Compress BERT-class models into students about 8 times smaller and 50 times faster.",
    epilog="Run the pipeline with: distill run, or dvc repro",
)
COMMANDS = (init, plan, run, check, verify, results, predict, explain, export, index, search)
for module in COMMANDS:
    name = module.__name__.rpartition(".")[2]
    app.command(name, epilog=module.EXAMPLE)(getattr(module, name))
app.add_typer(shards.app, name="shards")
app.add_typer(store.app, name="store")
app.add_typer(teacher.app, name="teacher")
app.add_typer(profile.app, name="profile")


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
    """Compress BERT-class models into students about 8 times smaller and 50 times faster."""


def main() -> None:
    """Run the command; an error the user can fix prints one line and exits with status 1."""
    end_quietly()
    guard(app)


if __name__ == "__main__":
    main()
