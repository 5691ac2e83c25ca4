"""``distill profile``: parameter files that hold only what differs from the default."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path, sha256_file
from pipeline_lib.base.layout import state_folder
from pipeline_lib.base.terminal import say
from pipeline_lib.base.workspace import shipped_profiles
from pipeline_lib.commands.options import PARAMS, WrittenParams

app = typer.Typer(no_args_is_help=True, help="Profiles: other settings of the whole pipeline.")
FOLDERS = ("profiles", "benchmarks")
EXAMPLE = "Example: distill profile use tang"
Name = Annotated[str, Argument(help="A profile's name, or its file.")]


@app.command("list", epilog="Example: distill profile list")
def list_profiles() -> None:
    """List the profiles, each with the first line of its comment."""
    for path in _known():
        first = path.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ")
        name = path.stem if path.is_absolute() else path.as_posix()
        say(f"{name:<34} {first}")


@app.command("show", epilog="Example: distill profile show tang")
def show(name: Name) -> None:
    """Print what a profile changes in its base, one line per key."""
    from pipeline_lib.params.profiles import differences

    for line in differences(find_profile(name)):
        say(line)


@app.command("use", epilog=EXAMPLE)
def use(
    name: Name,
    force: Annotated[bool, Option("--force", help="Discard changes made to params.yaml by hand.")] = False,
    target: WrittenParams = PARAMS,
) -> None:
    """Check a profile, and write params.yaml from it and its base.

    `default` restores the default. A params.yaml that was changed by hand is not overwritten.
    """
    path = find_profile(name)
    if not force:
        keep_own_changes(target)
    write_params(path, target)
    say(f"{target}: {path.stem}. Run `distill run`; back: distill profile use default")


def keep_own_changes(target: Path) -> None:
    """Check that a parameter file is as :func:`write_params` left it, or that of some profile.

    The profile that it was written from may have been edited since.
    """
    if not target.exists() or sha256_file(target) in _digests(target):
        return
    if profile_in_use(target) is None:
        raise PotstillError(
            f"{target}: it was changed by hand, and the changes would be lost. Move it away, or give --force."
        )


def profile_in_use(target: Path) -> Path | None:
    """Return the profile that a parameter file was written from, if nobody has changed it since."""
    from pipeline_lib.params.profiles import plain_text

    present = target.read_text(encoding="utf-8")
    return next((path for path in _known() if present == plain_text(path)), None)


def write_params(profile: Path, target: Path) -> None:
    """Write a parameter file from a profile and its base, once they are checked; another project's is not replaced.

    Its digest is noted, by which a later call sees that nobody has changed it.
    """
    from pipeline_lib.params import load_params
    from pipeline_lib.params.profiles import plain_text

    load_params(profile)
    if target.exists() and not any(line.startswith("tasks:") for line in target.read_text("utf-8").splitlines()):
        raise PotstillError(f"{target}: it has no `tasks`, so another project's. Use another folder, or move it away.")
    with atomic_path(target) as temporary:
        temporary.write_text(plain_text(profile), encoding="utf-8")
        digest = sha256_file(temporary)
        if digest not in _digests(target):
            file = _digests_file(target)
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(f"{digest}\n")


def _digests(target: Path) -> list[str]:
    file = _digests_file(target)
    return file.read_text(encoding="utf-8").split() if file.exists() else []


def _digests_file(target: Path) -> Path:
    # A state folder that workspaces share has an absolute path, which this keeps.
    return target.parent / state_folder() / "params.sha256"


def _known() -> list[Path]:
    here = [path for folder in FOLDERS for path in sorted(Path(folder).glob("*.yaml"))]
    names = {path.resolve() for path in here}
    return here + [path for path in shipped_profiles() if path.resolve() not in names]


def find_profile(name: str) -> Path:
    """Return the file of a profile: of this folder, or else the library's."""
    if Path(name).is_file():
        return Path(name)
    for path in _known():
        if path.stem == name:
            return path
    names = ", ".join(dict.fromkeys(path.stem for path in _known()))
    raise PotstillError(f"no profile {name!r}; there are {names}.")
