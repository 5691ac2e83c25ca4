"""A repository with one transfer set in two shards, and the teacher's outputs for it."""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.shard_sets import Manifest, Shard, schema_of, write_manifest, write_shard

from .running import PARAMS, Fails, failing

TRANSFER, OUTPUTS = Path("data/transfer/movies/full"), Path("data/outputs/movies/minilm/full")

# One row per rule.
WORDS = [["good", "film"], ["[MASK]", "film"], ["bad", "plot"], ["a", "joy"]]
RULES = [[0, 0], [1, 0], [0, 2], [0, 0]]
LOGITS = np.array([[-3, 3], [0, 0], [2, -2], [-1, 1]], np.float32)


def transfer_table(start: int, stop: int) -> pa.Table:
    rows = slice(start, stop)
    return pa.table(
        {
            "key": pa.array(range(start, stop), pa.uint64()),
            "example": pa.array([0] * (stop - start), pa.uint64()),
            "iteration": pa.array([0, 1, 1, 2][rows], pa.int32()),
            "label": pa.array([1, None, None, None][rows], pa.int32()),
            "text": [" ".join(words) for words in WORDS[rows]],
            "words": WORDS[rows],
            "rules": pa.array(RULES[rows], pa.list_(pa.int8())),
            "ngram_start": pa.array([0, 0, 0, 2][rows], pa.int32()),
            "ngram_length": pa.array([0, 0, 0, 2][rows], pa.int32()),
        }
    )


def answer_table(start: int, stop: int) -> pa.Table:
    keys = pa.array(range(start, stop), pa.uint64())
    return pa.table({"key": keys, "logits": list_column(LOGITS[start:stop])})


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fails:
    """Return what runs the command as a user does, which must fail, and returns its error."""
    return partial(failing, monkeypatch, capsys)


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(PARAMS.read_text())
    # `distill init` then runs neither git nor DVC; tests/base/test_workspace.py has both.
    (tmp_path / ".dvc").mkdir()
    names, parts = ["b000-i000.arrow", "b000-i001.arrow"], [(0, 1), (1, 4)]
    inputs: list[Shard] = []
    outputs: list[Shard] = []
    for name, part in zip(names, parts, strict=True):
        inputs.append(write_shard(TRANSFER / name, transfer_table(*part)))
        outputs.append(write_shard(OUTPUTS / name, answer_table(*part), inputs[-1].sha256))
    write_manifest(TRANSFER, Manifest("transfer", schema_of(transfer_table(0, 1)), inputs))
    write_manifest(OUTPUTS, Manifest("outputs", schema_of(answer_table(0, 1)), outputs))
    return tmp_path
