"""The stages that fetch or read texts, run as commands on the user's own files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline_lib.base.layout import Layout
from pipeline_lib.params import check_params
from pipeline_lib.stages.fingerprint import remove_other_rows
from tests.corpora.wikipedia.wikis import wikipedia, write_dump
from tests.kit.archives import write_files
from tests.kit.pretrained import write_model
from tests.tour import TOUR

from .workspace import small_params

ROOT = Path(__file__).parents[2]


def run(stage: str, folder: Path, *options: str) -> subprocess.CompletedProcess:
    """Run a stage in ``folder``."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", f"pipeline_lib.stages.{stage}", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a working folder whose params.yaml names only files in it."""
    yaml = YAML(typ="safe", pure=True)
    params = yaml.load(TOUR.read_text(encoding="utf-8"))
    task = next(iter(params["tasks"].values()))
    files = {"train": "a.tsv", "dev": "a.tsv"}
    task["source"] = {"kind": "files", "files": files, "format": "tsv", "columns": None}
    task["split"] = None
    params["inputs"] = "inputs"
    params["wikipedia"] = None
    params["tasks"] = {"mine": task}
    for recipe in params["transfer"].values():
        recipe["tasks"] = None
    row = params["methods"]["bilstm"] | {"tasks": None}
    params |= {"encoders": {}, "catalogues": {}, "joint": {}, "methods": {"bilstm": row}}
    params["models"]["minilm"] = {"kind": "path", "path": "model"}
    for row in (*params["teachers"].values(), params["sentence_vectors"]):
        row["max_length"] = 32
    with open(tmp_path / "params.yaml", "w", encoding="utf-8") as handle:
        yaml.dump(params, handle)
    write_model(tmp_path / "inputs" / "model", "bert")
    write_files(tmp_path / "inputs", {"a.tsv": b"text\tmean\ngood\t1\n"})
    return tmp_path


def test_stages_write_their_outputs(folder: Path) -> None:
    for stage, options, output in (
        ("fetch_data", ["--task", "mine"], "tasks/mine/train.tsv"),
        ("fetch_models", [], "models/minilm/model.safetensors"),
    ):
        result = run(stage, folder, *options)
        assert result.returncode == 0, result.stderr
        assert (folder / "data" / "raw" / output).is_file()
    assert (folder / "data/raw/vectors/source.json").is_file()


def test_wikipedia_is_split_or_said_to_be_null(folder: Path) -> None:
    result = run("split_wikipedia", folder)
    assert result.returncode == 0, result.stderr
    assert "null" in result.stdout
    yaml = YAML(typ="safe", pure=True)
    params = yaml.load((folder / "params.yaml").read_text(encoding="utf-8"))
    params |= {"workers": 1, "wikipedia": wikipedia().model_dump()}
    with open(folder / "params.yaml", "w", encoding="utf-8") as handle:
        yaml.dump(params, handle)
    write_dump(folder / "inputs" / "wiki.xml.bz2", 20)
    result = run("split_wikipedia", folder)
    assert result.returncode == 0, result.stderr
    assert "wikipedia train: 100 sentences" in result.stdout
    assert "computed 1 chunks, reused 0" in result.stdout
    names = {path.name for path in (folder / "data/wikipedia/train").iterdir()}
    assert names == {"s00000.arrow", "s00001.arrow", "s00002.arrow", "manifest.json"}


def test_the_outputs_of_rows_that_are_gone_are_deleted(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    values = small_params() | {"refined": ["minilm"]}
    values["teachers"]["minilm"]["tuning"] |= {"kind": "refined", "ranking": {}}
    folders = (layout.refined, layout.encoders, layout.all_joint)
    for name in ("minilm", "gone"):
        for folder in folders:
            (folder / name).mkdir(parents=True)
            (folder / name / "model.safetensors").touch()
    remove_other_rows(check_params(values), layout)
    left = [{path.name for path in folder.glob("*/")} for folder in folders]
    assert left == [{"minilm"}, set(), set()]


def test_error_is_one_line(folder: Path) -> None:
    result = run("fetch_data", folder, "--task", "other")
    assert result.returncode == 1
    assert result.stderr.strip().count("\n") == 0
    assert "no 'other' in params.yaml" in result.stderr
