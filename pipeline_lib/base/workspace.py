"""Workspaces: folders in which `dvc repro` runs, and the files of one that travel with the library.

A workspace holds the pipeline, parameters, and the user's files, but no code.
"""

import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import copy_file

SHIPPED = Path(__file__).parents[1] / "shipped"
"""What travels with the library; in the repository, most of it are links to files at its top."""
DVC = (sys.executable, "-m", "dvc")
PIPELINE = Path("dvc.yaml")
FILES = {
    PIPELINE: "pipeline.yaml",
    Path(".gitignore"): "gitignore",
    Path(".dvcignore"): "dvcignore",
    Path("data/README.md"): "data.md",
    Path("data/input/README.md"): "input.md",
}
IGNORING = (".gitignore", ".dvcignore")
SETTINGS = {"analytics": "false", "check_update": "false"}
"""DVC's own defaults send statistics and look for updates."""


def shipped(name: str) -> Path:
    """Return a file or folder that travels with the library, such as the pipeline."""
    return SHIPPED / name


def shipped_profiles() -> list[Path]:
    """Return the profiles that travel with the library."""
    return sorted(shipped("profiles").glob("*.yaml"))


def make_workspace(folder: Path, scm: bool = True, force: bool = False) -> list[Path]:
    """Write what is missing of a workspace into ``folder``, with `git init` and `dvc init`.

    An ignore file of the folder's own gets the rules that it lacks: else git would take the store and the texts.

    :param scm: whether to track it by git; it need not be where git is not installed.
    """
    check_pipeline(folder, force)
    written = []
    for name, source in FILES.items():
        replaced = force and name == PIPELINE
        if replaced or not (folder / name).exists():
            copy_file(shipped(source), folder / name)
            written.append(name)
        elif name.name in IGNORING and _add_rules(folder / name, shipped(source)):
            written.append(name)
    scm = scm and shutil.which("git") is not None
    _init_dvc(folder, scm)
    if scm and not _run(folder, "git", "check-ignore", "--quiet", str(PIPELINE)).returncode:
        raise PotstillError(
            f"{folder / PIPELINE}: a rule of .gitignore ignores it, and DVC reads none such. Remove it."
        )
    return written


def _add_rules(own: Path, ours: Path) -> bool:
    """Append the rules that a file lacks; return whether there were any."""
    has = own.read_text("utf-8", "surrogateescape")
    lacking = [rule for rule in ours.read_text("utf-8").splitlines() if rule not in has.splitlines()]
    if lacking:
        text = "\n".join([has.rstrip("\n"), "", *lacking, ""])
        own.write_text(text, "utf-8", "surrogateescape")
    return bool(lacking)


def check_pipeline(folder: Path, force: bool = False) -> None:
    """Check that a folder's dvc.yaml, if there is one, is this version's."""
    path, data = folder / PIPELINE, folder / "data"
    if data.is_symlink():
        raise PotstillError(f"{data}: a link, and DVC writes nothing outside its folder. Put the whole folder there.")
    if path.exists() and not force and not _is_ours(path):
        raise PotstillError(
            f"{path}: not the pipeline of this version. If an older version wrote it, replace it "
            "with `distill init --force`; if it is another project's, use another folder."
        )


def _is_ours(path: Path) -> bool:
    """Whether a dvc.yaml has all that this version's has; it may have further stages."""
    try:
        ours, theirs = (YAML(typ="safe").load(file.read_text("utf-8")) for file in (shipped("pipeline.yaml"), path))
        stages = theirs.get("stages") or {}
        further = {name: stage for name, stage in stages.items() if name not in ours["stages"]}
        return theirs | {"stages": stages} == ours | {"stages": ours["stages"] | further}
    except (YAMLError, AttributeError, UnicodeDecodeError):
        return False


def _init_dvc(folder: Path, scm: bool) -> None:
    if (folder / ".dvc").is_dir():
        return
    options = ["--no-scm"]
    if scm:
        top = _run(folder, "git", "rev-parse", "--show-toplevel")
        options = []
        if top.returncode:
            _checked(folder, "git", "init", "--quiet")
        elif Path(top.stdout.strip()) != folder.resolve():
            options = ["--subdir"]
    _checked(folder, *DVC, "init", "--quiet", *options)
    # `dvc config` takes a second for each key.
    config, path = ConfigParser(), folder / ".dvc" / "config"
    config.read(path, encoding="utf-8")
    config.read_dict({"core": SETTINGS})
    with path.open("w", encoding="utf-8") as file:
        config.write(file)


def _checked(folder: Path, *command: str) -> None:
    done = _run(folder, *command)
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().splitlines() or ["no reason was printed"]
        name = " ".join(command).replace(" ".join(DVC), "dvc")
        raise PotstillError(f"{folder}: `{name}` failed: {reason[0]} Run it by hand, or use --no-scm.")


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)
