"""A saved encoder: read back, run by `distill predict`, and opened by transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from transformers import AutoModel, AutoTokenizer
from typer.testing import CliRunner

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.cli import app
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.shards.columns import matrix

from .rows import HELD_BACK, LAYER, MakeRow, ignore, train_one

pytestmark = pytest.mark.usefixtures("store_home")


def test_an_encoder_is_saved_whole(run: MakeRow, tmp_path: Path) -> None:
    train_one(run({"epochs": 1}), tmp_path / "sra", ignore)
    config = json.loads((tmp_path / "sra/config.json").read_text())
    assert config["model_type"] == "distillery_encoder"
    encoder = load_encoder(tmp_path / "sra")
    vectors = encoder.encode([*HELD_BACK[:5], "", "unknownword"])
    assert vectors.shape == (7, 32) and np.abs(vectors).max() <= 1.0
    np.testing.assert_allclose(vectors[5], vectors[6], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(HELD_BACK[2:3])[0], vectors[2], atol=1e-5)
    with pytest.raises(PotstillError, match="no sentence encoder"):
        load_encoder(tmp_path)


def test_encode_writes_what_the_encoder_gives(run: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_lib.tables.reader.BATCH_ROWS", 7)
    train_one(run({"epochs": 1}), tmp_path / "sra", ignore)
    # U+2028, a carriage return and a form feed end no line.
    lines = [*HELD_BACK[:20], "", "naïve café", "one\u2028line", "one\rline", "one\x0cline"]
    (tmp_path / "in.txt").write_bytes(("\r\n".join(lines) + "\n").encode())

    def call(out: str, *options: str, file: str = "in.txt") -> Any:
        arguments = [str(tmp_path / "sra"), "--file", str(tmp_path / file), "--out", str(tmp_path / out), *options]
        return CliRunner().invoke(app, ["predict", *arguments])

    wanted = load_encoder(tmp_path / "sra").encode(lines)
    assert call("out.npy").exit_code == 0
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), wanted, atol=1e-5)
    assert call("out.arrow", "--normalise").exit_code == 0
    table = pa.ipc.open_file(tmp_path / "out.arrow").read_all()
    assert table["text"].to_pylist() == lines
    np.testing.assert_allclose(np.linalg.norm(matrix(table["vector"]), axis=1), 1.0, atol=1e-5)
    assert "ends in .arrow, .parquet, .jsonl, .npy" in str(call("out.csv").exception)
    assert "not found" in str(call("out.npy", file="none.txt").exception)
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe caf\xe9")
    assert "row 1 is not UTF-16" in str(call("bad.npy", file="bad.txt").exception)
    assert not (tmp_path / "bad.npy").exists()


@pytest.mark.parametrize("student", [None, LAYER])
def test_to_transformers_an_encoder_is_a_model(run: MakeRow, tmp_path: Path, student: dict[str, Any] | None) -> None:
    import pipeline_lib.models.students.huggingface  # noqa: F401  registers it

    train_one(run({"epochs": 1}, student), tmp_path / "sra", ignore)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "sra")
    model = AutoModel.from_pretrained(tmp_path / "sra").eval()
    with torch.inference_mode():
        inputs = tokenizer(HELD_BACK[:9], padding=True, return_tensors="pt")
        found = model(**inputs).pooler_output.numpy()
    wanted = load_encoder(tmp_path / "sra").encode(HELD_BACK[:9])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
