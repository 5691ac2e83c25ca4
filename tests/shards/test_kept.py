"""What is kept by content is computed once, and again when anything in its key has changed."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.hashing import SeenKeys
from pipeline_lib.shards.columns import list_column, matrix, whole
from pipeline_lib.shards.store import kept_json, kept_table


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path))
    return tmp_path


def test_kept_once_or_computed_again(home: Path) -> None:
    calls: list[str] = []

    def compute() -> dict[str, float]:
        calls.append("computed")
        return {"share": 0.1, "rows": 3}

    for _ in range(2):
        assert kept_json("proofs", ["digest", 1], compute) == {"share": 0.1, "rows": 3}
    assert len(calls) == 1
    kept_json("proofs", ["digest", 2], compute)
    kept_json("others", ["digest", 1], compute)
    assert len(calls) == 3
    # A damaged entry is computed again.
    table = pa.table({"logits": [1.0, 2.0]})
    assert kept_table("answers", ["a"], lambda: table).equals(table)
    [path] = home.glob("store/answers/*/*.arrow")
    path.write_bytes(path.read_bytes()[:-9])
    other = pa.table({"logits": [3.0]})
    assert kept_table("answers", ["a"], lambda: other).equals(other)
    assert list((home / "store/quarantine").iterdir())

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        kept_json("proofs", ["x"], fail)
    assert kept_json("proofs", ["x"], lambda: 5) == 5


@pytest.mark.parametrize("batch", [1, 7, 100, 5000])
def test_new_keys_are_first_occurrences(batch: int) -> None:
    keys = np.random.default_rng(1).integers(0, 900, 2000).astype(np.uint64)
    keys[5:8] = np.iinfo(np.uint64).max
    seen = SeenKeys()
    new = np.concatenate([seen.add(keys[i : i + batch]) for i in range(0, len(keys), batch)])
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    np.testing.assert_array_equal(new, first)
    assert len(seen) == first.sum()


def test_few_runs_hold_many_keys() -> None:
    seen = SeenKeys()
    for start in range(0, 100_000, 100):
        seen.add(np.arange(start, start + 100, dtype=np.uint64))
    assert len(seen) == 100_000
    assert len(seen._runs) <= 10
    assert sum(run.nbytes for run in seen._runs) == 8 * len(seen)
    seen = SeenKeys()
    assert seen.add(np.array([], np.uint64)).tolist() == []
    assert seen.add(np.array([3], np.uint64)).tolist() == [True]
    assert seen.add(np.array([], np.uint64)).tolist() == []


@pytest.mark.parametrize("shape", [(6, 4), (6, 2, 3)])
def test_a_single_chunk_is_not_copied(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.float16).reshape(shape)
    column = pa.chunked_array([list_column(values)])
    before = pa.total_allocated_bytes()
    found = matrix(column)
    assert pa.total_allocated_bytes() == before
    assert np.array_equal(found, values)
    assert np.array_equal(matrix(column.slice(2, 3)), values[2:5])


def test_several_chunks_are_one_array() -> None:
    values = np.arange(12.0).reshape(6, 2)
    column = pa.chunked_array([list_column(values[:2]), list_column(values[2:])])
    assert np.array_equal(matrix(column), values)
    assert whole(pa.chunked_array([], pa.int32())).to_pylist() == []
