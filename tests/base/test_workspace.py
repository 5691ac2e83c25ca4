"""Workspaces: what is written into a folder, and what is left as it is."""

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pipeline_lib.base.errors import DISTRIBUTION, PotstillError, install_extra
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.layout import check_state_folder, state_folder
from pipeline_lib.base.workspace import FILES, make_workspace, shipped, shipped_profiles

ROOT = Path(__file__).parents[2]


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    assert {*make_workspace(folder)} == {*FILES}
    return folder


def test_a_workspace_has_the_pipeline_git_and_dvc(workspace: Path) -> None:
    assert (workspace / "dvc.yaml").read_bytes() == (ROOT / "dvc.yaml").read_bytes()
    assert (workspace / ".dvc").is_dir() and (workspace / ".git").is_dir()
    assert "analytics = false" in (workspace / ".dvc/config").read_text()
    # Again it changes nothing.
    changed = (workspace / ".gitignore").read_text() + "mine\n"
    (workspace / ".gitignore").write_text(changed)
    assert make_workspace(workspace) == []
    assert (workspace / ".gitignore").read_text() == changed


def test_workspaces_and_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    make_workspace(tmp_path / "none")
    assert "no_scm = True" in (tmp_path / "none/.dvc/config").read_text()
    assert not (tmp_path / "none/.git").exists()
    _git(tmp_path, "init", "--quiet")
    folder = tmp_path / "data" / "reviews"
    folder.mkdir(parents=True)
    make_workspace(folder)
    assert _git(folder, "rev-parse", "--show-toplevel") == str(tmp_path.resolve())
    assert (folder / ".dvc").is_dir()


def test_another_pipeline_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    with pytest.raises(PotstillError, match=r"not the pipeline of this version.*--force"):
        make_workspace(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["dvc.yaml"]
    assert make_workspace(tmp_path, scm=False, force=True)[0] == Path("dvc.yaml")
    assert "no_scm = True" in (tmp_path / ".dvc/config").read_text() and not (tmp_path / ".git").exists()
    # What travels is what the repository has.
    assert shipped("pipeline.yaml").read_bytes() == (ROOT / "dvc.yaml").read_bytes()
    names = {path.name for path in (ROOT / "profiles").glob("*.yaml")}
    assert {path.name for path in shipped_profiles()} == names
    lines = shipped("gitignore").read_text().splitlines()
    rules = {line for line in lines if not line.startswith("#")}
    assert rules <= set((ROOT / ".gitignore").read_text().splitlines())


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("data/input/reviews.csv", True),
        ("data/input/reviews/all.csv", True),
        ("data/raw", True),
        (".potstill/store", True),
        ("data/input/reviews.csv.dvc", False),
        ("data/input/reviews/all.csv.dvc", False),
        ("data/input/reviews/.gitignore", False),
        ("data/README.md", False),
        ("params.yaml", False),
    ],
)
def test_git_tracks_what_dvc_add_writes_and_no_data(workspace: Path, path: str, ignored: bool) -> None:
    target = workspace / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch()
    assert bool(_git(workspace, "check-ignore", path)) is ignored


PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_the_name_is_that_of_the_project() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    [own] = [name for name in PROJECT["optional-dependencies"]["dev"] if DISTRIBUTION in name]
    assert own == f"{DISTRIBUTION}[onnx,usearch]"
    # zsh takes bare brackets for a pattern.
    assert install_extra("ray") == "pip install 'potstill[ray]'"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("POTSTILL_HOME", "DVC_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_follows_the_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_folder() == Path(".potstill")
    monkeypatch.setenv("DVC_ROOT", "/repo")
    assert state_folder() == Path("/repo/.potstill")
    monkeypatch.setenv("POTSTILL_HOME", str(project / "shared"))
    check_state_folder()
    assert state_folder() == project / "shared" and state_folder().is_dir()
    (project / "file").write_text("")
    monkeypatch.setenv("POTSTILL_HOME", "file")
    with pytest.raises(PotstillError, match="POTSTILL_HOME: file cannot be used as a folder"):
        check_state_folder()


def test_what_a_groups_store_gets_the_group_may_write(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "shared").mkdir()
    monkeypatch.setenv("POTSTILL_HOME", str(project / "shared"))
    before = os.umask(0o022)
    try:
        for mode, group in ((0o755, 0), (0o2775, stat.S_IWGRP)):
            (project / "shared").chmod(mode)
            check_state_folder()
            with atomic_path(project / f"shared/{mode}/file") as path:
                path.touch()
            written = [project / f"shared/{mode}", project / f"shared/{mode}/file"]
            assert {path.stat().st_mode & stat.S_IWGRP for path in written} == {group}
    finally:
        os.umask(before)


def test_a_folders_own_rules_are_kept_and_ours_added(tmp_path: Path) -> None:
    own = "*.log\n/data/*\n"
    (tmp_path / ".gitignore").write_text(own)
    for name in (".potstill/store/a", "data/input/mine.csv", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("private\n")
    assert Path(".gitignore") in make_workspace(tmp_path)
    assert (tmp_path / ".gitignore").read_text().startswith(own)
    _git(tmp_path, "add", ".")
    taken = {*_git(tmp_path, "ls-files").splitlines()}
    assert {"notes.txt", "dvc.yaml", ".gitignore", "data/README.md"} <= taken
    assert not {".potstill/store/a", "data/input/mine.csv"} & taken


@pytest.mark.parametrize("rule", ["*.yaml", "/dvc.yaml"])
def test_a_pipeline_that_git_ignores_is_refused(tmp_path: Path, rule: str) -> None:
    (tmp_path / ".gitignore").write_text(f"{rule}\n")
    with pytest.raises(PotstillError, match=r"dvc.yaml: a rule of .gitignore ignores it"):
        make_workspace(tmp_path)


def test_a_linked_data_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PotstillError, match="mine/data: a link, and DVC writes nothing outside"):
        make_workspace(folder)
    assert [*folder.iterdir()] == [folder / "data"]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_what_a_terminal_cannot_print_ends_in_no_traceback(tmp_path: Path, encoding: str) -> None:
    command = [sys.executable, "-m", "pipeline_lib.cli", "init", "– ≤ 🎉.csv"]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environment)
    assert done.returncode == 1 and b"Traceback" not in done.stderr and b"? \xe2" not in done.stderr
    assert done.stderr.startswith(b"error: ") and b"not found" in done.stderr


def test_onnxruntime_writes_no_statistics(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    unset = {name: value for name, value in os.environ.items() if name not in ("ORT_DISABLE_TELEMETRY", "CI")}
    code = "import pipeline_lib, onnxruntime"
    subprocess.run([sys.executable, "-c", code], env=unset | {"HOME": str(tmp_path)}, check=True)
    assert not [*tmp_path.rglob("*")]
