"""``distill check`` of each paper's profile, as it is, where all that it names is in folders."""

import shutil
from pathlib import Path

import pytest

from pipeline_lib.base.workspace import shipped
from pipeline_lib.params import load_params
from tests.kit.hub_folders import change_json
from tests.papers import write_inputs

from .running import Fails, distill


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return folder


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(inputs, tmp_path / "data/input")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "rows"), [("tang", 33), ("thesis", 80), ("thesis_mkd", 134), ("sra", 28), ("dse", 20)]
)
def test_check_passes(workspace: Path, name: str, rows: int) -> None:
    params = load_params(shipped("profiles") / f"{name}.yaml")
    assert f"params.yaml: {name}." in distill("profile", "use", name)
    output = distill("check")
    assert output.startswith("params.yaml is valid.")
    seeds = len(params.seeds)
    shown = f"{rows} rows of {len(params.tasks)} tasks × {seeds} seeds = {rows * seeds}"
    assert shown in output
    # Nothing is left for the hub.
    assert "\nfetched   nothing\n" in output
    # A gain is the method's: sizes and rates are those of the row's baseline.
    assert "warning" not in output


def test_files_that_are_missing_or_do_not_fit_are_named(workspace: Path, fails: Fails) -> None:
    path = Path("data/input") / load_params(shipped("profiles") / "tang.yaml").vocabulary.vectors.path
    content = path.read_bytes()
    path.unlink()
    distill("profile", "use", "tang")
    assert f"vocabulary.vectors.path: {path} not found" in fails("check")
    path.write_bytes(content)
    folder = Path("data/input/google-bert/bert-base-uncased")
    distill("profile", "use", "thesis_mkd")
    change_json(folder / "config.json", num_hidden_layers=9)
    error = fails("check")
    assert f"{folder}: teachers.last3.states.layers has 11, the model has 9 layers" in error
    (folder / "config.json").unlink()
    assert f"models.bert_base.model: {folder}/config.json not found" in fails("check")


def test_what_is_not_in_a_folder_is_fetched_from_the_hub(workspace: Path) -> None:
    shutil.rmtree("data/input/google-bert")
    shutil.rmtree("data/input/nyu-mll")
    distill("profile", "use", "dse")
    fetched = "fetched   nyu-mll/glue, google-bert/bert-large-uncased"
    assert fetched in distill("check").splitlines()
