"""Workspaces: what is written into a folder, and what is left as it is."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from pipeline_lib.base.errors import DISTRIBUTION, PotstillError, install_extra
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
