"""What shows and writes rows of a set holds no more memory for a large one than for a small one."""

import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.files import sha256_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.flat import FlatRows
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.sampling import leading
from pipeline_lib.inspection.work_lists import ListPart, lists_of
from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.shard_sets import Manifest, Shard, schema_of, write_manifest, write_shard
from pipeline_lib.tables import writer
from pipeline_lib.tables.writer import write_tables

from .made_up import TASK, TEACHER, sentence, transfer_table

SMALL, LARGE = 2, 12
"""Blocks, of two shards each."""
ROWS = 256
"""Of a shard: so many are read together."""
POOLS: list[pa.MemoryPool] = []


def made_up(layout: Layout, blocks: int) -> JoinedRows:
    """Write a set whose blocks are copies of one; the digests, which nothing here reads, differ."""
    keys = np.random.default_rng(1).integers(1 << 63, size=ROWS, dtype=np.uint64)
    one = transfer_table([{"key": 0, "example": 0, "label": 1, **sentence("a [MASK] joy", [0, 1, 0])}])
    rows = one.take(pa.array(np.zeros(ROWS, np.int64)))
    rows = rows.set_column(1, "example", pa.array(keys))
    logits = np.random.default_rng(2).normal(size=(ROWS, 2)).astype(np.float32)
    folder, outputs = layout.transfer(TASK, "full"), layout.outputs(TASK, TEACHER, "full")
    inputs: list[Shard] = []
    answers: list[Shard] = []
    for number in range(2 * blocks):
        block, iteration = divmod(number, 2)
        name = f"b{block:03d}-i{iteration:03d}.arrow"
        if block:
            for place in (folder, outputs):
                shutil.copy(place / f"b000-i{iteration:03d}.arrow", place / name)
            digest = sha256_json([blocks, number])
            inputs.append(Shard(name, ROWS, 0, digest))
            answers.append(Shard(name, ROWS, 0, digest, digest))
            continue
        own = rows.set_column(0, "key", pa.array(keys + np.uint64(iteration)))
        own = own.set_column(2, "iteration", pa.array(np.full(ROWS, iteration, np.int32)))
        inputs.append(write_shard(folder / name, own))
        answer = pa.table({"key": own["key"], "logits": list_column(logits + iteration)})
        answers.append(write_shard(outputs / name, answer, inputs[-1].sha256))
    write_manifest(folder, Manifest("transfer", schema_of(rows), inputs))
    write_manifest(outputs, Manifest("logits", schema_of(answer), answers))
    return JoinedRows.open(folder)


def peak(work: Callable[[], object]) -> int:
    """Return the most bytes that Python, NumPy and Arrow held while something ran."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    # What was taken from a pool must not outlive it.
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> list[JoinedRows]:
    folder = tmp_path_factory.mktemp("sets")
    return [made_up(Layout(folder / str(blocks)), blocks) for blocks in (SMALL, LARGE)]


@pytest.mark.parametrize("what", ["shown", "lists", "flat"])
def test_memory_does_not_grow_with_the_set(
    sets: list[JoinedRows], what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # What is gathered before it is written or compared: so little that both sets exceed it.
    monkeypatch.setattr(writer, "GROUP_ROWS", 2 * ROWS)

    def work(rows: JoinedRows) -> object:
        if what == "shown":
            return leading(rows, 5, Filter(), True)
        if what == "lists":
            return lists_of([ListPart(rows, student=lambda batch: -batch.logits)], None, 5, False)
        return write_tables(tmp_path / "flat.parquet", FlatRows(rows, None, Filter()).tables(), None)

    # Caches and compiled expressions belong to neither.
    work(sets[0])
    small, large = (peak(lambda own=own: work(own)) for own in sets)
    assert len(sets[1]) == 6 * len(sets[0])
    # What a shard may cost is its name and its mapped file, and a part an open one.
    assert large < 1.25 * small + 5_000 * 2 * 2 * (LARGE - SMALL)
