"""``distill check`` of each paper's profile, against a workspace that has what it names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from pipeline_lib import cli
from pipeline_lib.base.workspace import shipped
from pipeline_lib.params.profiles import read_values
from tests.hub_folders import write_classifier

LAYERS = 12


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a random BERT with as many layers and positions as BERT-base."""
    folder = tmp_path_factory.mktemp("hub") / "bert"
    return write_classifier(
        folder, "bert", num_hidden_layers=LAYERS, max_position_embeddings=512, hidden_size=24,
        num_attention_heads=12,
    )  # fmt: skip


def write_vectors(path: Path, kind: str) -> None:
    """Write a file of two words in a format of word vectors."""
    vectors = np.arange(600, dtype=np.float32).reshape(2, 300)
    words = ("good", "Dull")
    if kind == "glove":
        rows = (f"{w} {' '.join(map(str, v))}\n" for w, v in zip(words, vectors, strict=True))
        path.write_text("".join(rows))
    else:
        rows = (f"{w} ".encode() + v.tobytes() for w, v in zip(words, vectors, strict=True))
        path.write_bytes(b"2 300\n" + b"".join(rows))


@pytest.mark.parametrize(
    ("name", "rows"), [("tang", 33), ("thesis", 80), ("thesis_mkd", 134), ("sra", 28), ("dse", 20)]
)
def test_check_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Path, name: str, rows: int
) -> None:
    monkeypatch.chdir(tmp_path)
    values: dict[str, Any] = read_values(shipped("profiles") / f"{name}.yaml")
    arguments = ["check", "--params", "params.yaml"]
    vectors = values["vocabulary"]["vectors"]
    values["models"] = {one: {"kind": "path", "path": str(model)} for one in values["models"]}
    YAML(typ="safe").dump(values, Path("params.yaml"))
    if vectors["kind"] == "file":
        missing = CliRunner().invoke(cli.app, arguments).exception
        assert f"vocabulary.vectors.path: data/input/{vectors['path']} not found" in str(missing)
        Path("data/input").mkdir(parents=True)
        write_vectors(Path("data/input") / vectors["path"], vectors["format"])
    result = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0 and result.output.startswith("params.yaml is valid.")
    seeds = len(values["seeds"])
    shown = f"{rows} rows of {len(values['tasks'])} tasks × {seeds} seeds = {rows * seeds}"
    assert shown in result.output
    # A gain is the method's: sizes and rates are those of the row's baseline.
    assert "warning" not in result.output
