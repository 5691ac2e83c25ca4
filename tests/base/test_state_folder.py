from pathlib import Path

import pytest

from pipeline_lib.base import layout
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import check_state_folder, state_folder


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty current folder, with no variable set and no notice printed yet."""
    for variable in ("POTSTILL_HOME", "DISTILLERY_HOME", "DVC_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    layout._notice.cache_clear()
    return tmp_path


def test_it_follows_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert state_folder() == Path(".potstill")
    monkeypatch.setenv("DVC_ROOT", "/repo")
    assert state_folder() == Path("/repo/.potstill")
    monkeypatch.setenv("POTSTILL_HOME", "/shared")
    monkeypatch.setenv("DISTILLERY_HOME", "/former")
    assert state_folder() == Path("/shared")
    assert capsys.readouterr().err == ""


def test_the_former_variable_is_used_with_one_notice(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISTILLERY_HOME", str(project / "former"))
    check_state_folder()
    assert state_folder() == project / "former" and state_folder().is_dir()
    expected = "DISTILLERY_HOME is set. It is now called POTSTILL_HOME: set that instead.\n"
    assert capsys.readouterr().err == expected


def test_an_error_names_the_variable_that_is_set(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "file").write_text("")
    monkeypatch.setenv("DISTILLERY_HOME", "file")
    with pytest.raises(PotstillError, match="DISTILLERY_HOME: file cannot be used as a folder"):
        check_state_folder()


def test_the_former_folder_is_used_with_one_notice(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".distillery").mkdir()
    check_state_folder()
    assert state_folder() == Path(".distillery")
    assert [path.name for path in project.iterdir()] == [".distillery"]
    notice = capsys.readouterr().err
    assert notice.count("\n") == 1 and notice.endswith(": mv .distillery .potstill\n")


def test_the_former_folder_is_not_used_beside_a_new_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".distillery").mkdir()
    (project / ".potstill").mkdir()
    assert state_folder() == Path(".potstill")
    assert capsys.readouterr().err == ""
