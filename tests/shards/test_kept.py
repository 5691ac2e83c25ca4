"""What is kept by content is computed once, and again when anything in its key has changed."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lib.shards.store import kept_json, kept_table


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a store of its own."""
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path))
    return tmp_path


def test_a_value_is_computed_once_per_key() -> None:
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


def test_a_damaged_entry_is_computed_again(home: Path) -> None:
    table = pa.table({"logits": [1.0, 2.0]})
    assert kept_table("answers", ["a"], lambda: table).equals(table)
    [path] = home.glob("store/answers/*/*.arrow")
    path.write_bytes(path.read_bytes()[:-9])
    other = pa.table({"logits": [3.0]})
    assert kept_table("answers", ["a"], lambda: other).equals(other)
    assert list((home / "store/quarantine").iterdir())


def test_an_error_keeps_nothing(home: Path) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        kept_json("proofs", ["x"], fail)
    assert kept_json("proofs", ["x"], lambda: 5) == 5
