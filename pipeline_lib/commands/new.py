"""``distill new``: a folder in which `dvc repro` runs."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pipeline_lib.base.terminal import say
from pipeline_lib.base.workspace import make_workspace
from pipeline_lib.commands.options import PARAMS, NoScm

EXAMPLE = "Example: distill new reviews && cd reviews && dvc repro"


def new(
    folder: Annotated[Path, Argument(help="The folder; by default this one.")] = Path("."),
    profile: Annotated[str, Option(help="The profile that params.yaml is written from.")] = "default",
    no_scm: NoScm = False,
    force: Annotated[bool, Option("--force", help="Replace a dvc.yaml of another version.")] = False,
) -> None:
    """Make a workspace: dvc.yaml, params.yaml, data/, ignore rules, with `git init` and `dvc init`.

    It holds no code. What is there already is left as it is. For data of your own, `distill init
    FILE` does the same and describes the data.
    """
    from pipeline_lib.commands.profile import find_profile, write_params

    source = find_profile(profile)
    folder.mkdir(parents=True, exist_ok=True)
    for path in make_workspace(folder, not no_scm, force):
        say(f"written   {folder / path}")
    params = folder / PARAMS
    if not params.exists():
        write_params(source, params)
        say(f"written   {params}, from the profile {source.stem}")
    say("\nNext:  " + (f"cd {folder} && " if folder != Path(".") else "") + "distill run")
