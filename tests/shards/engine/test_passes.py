"""A pass of a few lines: computed once, by any engine to the same bytes, found by its content."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline_lib.base import stage_records
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import Output, PassStats, Piece, ShardPass, run_pass, stream_pieces
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from tests.kit.shard_files import write_set

TEXTS = [["a film", "a good film"], ["dull"], [], ["so", "so it is", "it is"]]


@dataclass(frozen=True)
class LengthPass(ShardPass):
    """Counts the characters of every text, ``times`` over."""

    kind: ClassVar[str] = "lengths"
    times: int = 1

    @property
    def settings(self) -> dict[str, Any]:
        return {"times": self.times}

    def compute(self, rows: pa.Table) -> pa.Table:
        lengths = pc.multiply(pc.utf8_length(rows["text"]), self.times)
        return pa.table({"length": lengths})


@pytest.fixture
def texts(tmp_path: Path, store_home: Path) -> ShardSet:
    tables = [pa.table({"text": pa.array(part, pa.string())}) for part in TEXTS]
    return write_set(tmp_path / "in", "texts", {f"s{n}.arrow": table for n, table in enumerate(tables)})


@pytest.mark.parametrize("workers", [1, 2])
def test_it_answers_row_for_row(texts: ShardSet, tmp_path: Path, workers: int) -> None:
    manifest, report = run_pass(LengthPass(), texts, tmp_path / "out", LocalEngine(workers))
    outputs = ShardSet.open(tmp_path / "out")
    assert [table["length"].to_pylist() for table in outputs.tables()] == [
        [len(text) for text in part] for part in TEXTS
    ]
    assert manifest == outputs.manifest and outputs.verify() == []
    assert [s.source for s in manifest.shards] == [s.sha256 for s in texts.manifest.shards]
    assert manifest.made_from["times"] == 1 and manifest.made_from["code"]
    assert report == PassStats(computed=4, rows_computed=6)


def test_finished_once(texts: ShardSet, tmp_path: Path) -> None:
    run_pass(LengthPass(), texts, tmp_path / "a", LocalEngine(1))
    manifest, report = run_pass(LengthPass(), texts, tmp_path / "b", LocalEngine(2))
    assert report == PassStats(reused=4, rows_reused=6)
    assert manifest == ShardSet.open(tmp_path / "a").manifest
    _, report = run_pass(LengthPass(times=2), texts, tmp_path / "b", LocalEngine(1))
    assert report.computed == 4
    # A stream has its answers in order with their notes.
    pieces = [Piece(shard.sha256, texts.path(shard), number) for number, shard in enumerate(texts.manifest.shards)]
    answers = list(stream_pieces(LengthPass(times=3), iter(pieces), LocalEngine(2)))
    assert [answer.piece.note for answer in answers] == [0, 1, 2, 3]
    assert all(answer.piece.content is None and not answer.reused for answer in answers)
    assert [answer.rows for answer in answers] == [2, 1, 0, 3]
    again = list(stream_pieces(LengthPass(times=3), iter(pieces), LocalEngine(1)))
    assert all(answer.reused for answer in again)


@dataclass(frozen=True)
class WordPass(LengthPass):
    """Says how many words it read, as a teacher says how many tokens it computed."""

    kind: ClassVar[str] = "words"

    def outputs(self, rows: pa.Table) -> Iterator[Output]:
        words = sum(len(text.split()) for text in rows["text"].to_pylist())
        yield self.compute(rows), {"tokens": words}


@pytest.mark.parametrize("workers", [1, 2])
def test_tokens_are_in_the_manifest_and_the_stages_record(
    texts: ShardSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    def run(name: str) -> tuple[Manifest, dict[str, dict[str, int]]]:
        counts: dict[str, dict[str, int]] = {}
        monkeypatch.setattr(stage_records, "_counts", counts)
        return run_pass(WordPass(), texts, tmp_path / name, LocalEngine(workers))[0], counts

    manifest, counts = run("a")
    assert manifest.counts == {"tokens": 12}
    assert [shard.counts for shard in manifest.shards] == [{"tokens": n} for n in (5, 1, 0, 6)]
    assert counts["tokens"] == {"computed": 12, "reused": 0}
    again, counts = run("b")
    assert again == manifest
    assert counts["tokens"] == {"computed": 0, "reused": 12}
    # Passes that count none leave no count of 0.
    run_pass(LengthPass(), texts, tmp_path / "c", LocalEngine(1))
    assert counts["tokens"] == {"computed": 0, "reused": 12}


@dataclass(frozen=True)
class FailingPass(LengthPass):
    """Cannot count the third text."""

    def compute(self, rows: pa.Table) -> pa.Table:
        if "dull" in rows["text"].to_pylist():
            raise PotstillError("dull: cannot be counted")
        return super().compute(rows)


def test_failures_and_damage(texts: ShardSet, tmp_path: Path) -> None:
    with pytest.raises(PotstillError, match="dull: cannot be counted"):
        run_pass(FailingPass(), texts, tmp_path / "out", LocalEngine(1))
    assert not (tmp_path / "out/manifest.json").exists()
    kept = [FailingPass().key(shard.sha256) for shard in texts.manifest.shards]
    entries = {path.stem for path in (tmp_path / "home/store/lengths").glob("*/*.json")}
    assert entries == {kept[0]}
    # A damaged input does not reach the store.
    path, shard = texts.folder / "s1.arrow", texts.manifest.shards[1]
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"dull", b"full"))
    with pytest.raises(PotstillError, match=r"s1\.arrow: altered since it was written"):
        run_pass(LengthPass(), texts, tmp_path / "out", LocalEngine(1))
    path.write_bytes(whole)
    manifest, report = run_pass(LengthPass(), texts, tmp_path / "out", LocalEngine(1))
    assert (report.computed, report.reused) == (3, 1)
    assert shard.sha256 in {output.source for output in manifest.shards}
