"""A pass with several shards in hand, as on an accelerator: the same bytes, and tokens counted."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lib.base.hashing import string_keys
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.outputs.teacher_pass import LogitPass
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import Output, run_pass
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from tests.kit.shard_files import write_set
from tests.pipeline.corpus import sentences, write_encoder

SHARDS, ROWS, IN_FLIGHT = 6, 20, 3
TEXTS = [text for _, text in sentences()["train"][: SHARDS * ROWS]]


@pytest.fixture
def logit_pass(tmp_path: Path) -> LogitPass:
    folder = tmp_path / "teacher"
    write_encoder(folder, labels=2)
    return LogitPass(folder, digest_model(folder), "cpu", "float32", 32, 64)


@pytest.fixture
def inputs(tmp_path: Path) -> ShardSet:
    tables = {}
    for number in range(SHARDS):
        texts = TEXTS[number * ROWS : (number + 1) * ROWS]
        tables[f"s{number}.arrow"] = pa.table({"key": string_keys(texts), "text": texts})
    return write_set(tmp_path / "in", "sentences", tables)


def run(logit_pass: LogitPass, inputs: ShardSet, home: Path, patch: pytest.MonkeyPatch) -> Manifest:
    patch.setenv("POTSTILL_HOME", str(home))
    manifest, stats = run_pass(logit_pass, inputs, home / "out", LocalEngine(1))
    assert (stats.computed, stats.reused) == (SHARDS, 0)
    return manifest


def test_bytes_are_those_of_one_shard_after_another(
    logit_pass: LogitPass, inputs: ShardSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_turn = run(logit_pass, inputs, tmp_path / "in_turn", monkeypatch)
    assert logit_pass.in_flight == 1
    outputs, together = LogitPass.outputs, threading.Barrier(IN_FLIGHT, timeout=60)

    def wait_for_others(shard_pass: LogitPass, rows: pa.Table) -> Iterator[Output]:
        # Passes only if so many shards have begun and none of them has ended.
        together.wait()
        yield from outputs(shard_pass, rows)

    monkeypatch.setattr(LogitPass, "in_flight", IN_FLIGHT)
    monkeypatch.setattr(LogitPass, "outputs", wait_for_others)
    at_once = run(logit_pass, inputs, tmp_path / "at_once", monkeypatch)
    assert [shard.sha256 for shard in at_once.shards] == [shard.sha256 for shard in in_turn.shards]
    assert len({shard.sha256 for shard in at_once.shards}) == SHARDS


def test_tokens_are_counted_whether_computed_or_found(
    logit_pass: LogitPass, inputs: ShardSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = run(logit_pass, inputs, tmp_path / "home", monkeypatch)
    read = logit_pass.teacher().encode(TEXTS, logit_pass.max_length)
    assert computed.counts == {"tokens": len(read.ids)}
    again, stats = run_pass(logit_pass, inputs, tmp_path / "again", LocalEngine(1))
    assert stats.reused == SHARDS and again.counts == computed.counts
    # Special tokens count: they are computed too.
    assert computed.counts["tokens"] > 2 * len(TEXTS) + sum(len(text.split()) for text in TEXTS)


@pytest.mark.parametrize(("device", "shards"), [("cpu", 1), ("cuda", 3), ("cuda:1", 3)])
def test_an_accelerator_has_several_in_hand(device: str, shards: int) -> None:
    assert LogitPass(Path(), "", device, "float32", 32, 64).in_flight == shards
