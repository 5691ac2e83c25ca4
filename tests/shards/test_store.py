"""The content-addressed store: nothing lost, nothing damaged given out, any number of writers."""

import multiprocessing
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_lib.base import stage_records
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import ABANDONED_SECONDS, sha256_file, write_json
from pipeline_lib.shards.store import Store

KEY, TABLE = "ab" + "0" * 62, pa.table({"x": [1, 2, 3]})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store("logits", tmp_path / "store")


def test_find_add_read_place(store: Store, tmp_path: Path) -> None:
    assert store.find(KEY) is None
    added = store.add(KEY, TABLE, "source")
    assert store.find(KEY) == added
    assert (added.rows, added.source, added.computed_on) == (3, "source", None)
    assert store.add(KEY, TABLE, computed_on="a processor").computed_on == "a processor"
    assert store.find(KEY).computed_on == "a processor"
    assert store.read(KEY).equals(TABLE)
    store.link_into(KEY, tmp_path / "out" / "b000.arrow")
    assert pa.ipc.open_file(tmp_path / "out" / "b000.arrow").read_all().equals(TABLE)
    assert store.find("cd" + KEY[2:]) is None
    store.add(KEY, TABLE)
    assert Store("tags", store.root).find(KEY) is None
    assert Store("logits", store.root).find(KEY) is not None
    # A record of an older version is read.
    shard = store.add(KEY, TABLE, "source")
    write_json(entry(store, ".json"), asdict(shard))
    assert store.find(KEY) == shard


def entry(store: Store, suffix: str) -> Path:
    return store.folder / KEY[:2] / f"{KEY}{suffix}"


def test_damaged_entries_are_set_aside(store: Store, tmp_path: Path) -> None:
    store.add(KEY, TABLE)
    path = entry(store, ".arrow")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert store.find(KEY) is None
    assert not path.exists() and not entry(store, ".json").exists()
    kept = store.root / "quarantine" / path.name
    assert kept.read_bytes() == content
    store.add(KEY, TABLE)
    assert store.find(KEY) is not None
    # Torn entry is set aside.
    store.add(KEY, TABLE)
    path = entry(store, ".arrow")
    path.write_bytes(path.read_bytes()[:-1])
    assert store.find(KEY) is None and not path.exists()
    store.add(KEY, TABLE)
    store.link_into(KEY, tmp_path / "placed.arrow")
    entry(store, ".json").write_text("{")
    assert store.find(KEY) is None
    assert pa.ipc.open_file(tmp_path / "placed.arrow").read_all().equals(TABLE)


@pytest.mark.parametrize("record", ["{", "{}", "[]", '{"surplus": 1}'])
def test_unreadable_record_sets_the_entry_aside(store: Store, record: str) -> None:
    store.add(KEY, TABLE)
    entry(store, ".json").write_text(record)
    assert store.find(KEY) is None
    assert not entry(store, ".arrow").exists()


def test_a_record_with_a_flipped_bit_says_nothing_false(store: Store) -> None:
    shard = store.add(KEY, TABLE, "source", "a processor", {"lengths": {9: (5, 6), 10: 1}})
    contents = [entry(store, suffix).read_bytes() for suffix in (".arrow", ".json")]
    kept = store.find(KEY)
    assert replace(kept, counts=shard.counts) == shard
    for place in range(len(contents[1])):
        for bit in (1, 4, 64):
            flipped = bytearray(contents[1])
            flipped[place] ^= bit
            entry(store, ".arrow").write_bytes(contents[0])
            entry(store, ".json").write_bytes(flipped)
            assert store.find(KEY) in (kept, None)


@pytest.mark.parametrize("suffix", [".json", ".arrow"])
def test_entry_without_its_other_half_is_interrupted(store: Store, suffix: str) -> None:
    store.add(KEY, TABLE)
    entry(store, suffix).unlink()
    assert store.find(KEY) is None
    store.add(KEY, TABLE)
    assert store.find(KEY) is not None


@pytest.mark.parametrize("idle", [ABANDONED_SECONDS + 60, 60], ids=["abandoned", "live"])
def test_only_what_was_left_long_ago_is_swept(store: Store, idle: float) -> None:
    store.add(KEY, TABLE)
    left = store.folder / "ab" / f".{KEY}.arrow.4711.tmp"
    left.write_bytes(b"half")
    os.utime(left, (time.time() - idle,) * 2)
    store.sweep()
    assert left.exists() == (idle < ABANDONED_SECONDS)
    assert store.read(KEY).equals(TABLE) and store.find(KEY)


def race(root: Path, keys: list[str], start: Any, value: int) -> None:
    """Write all keys, each at the moment when the other processes write it."""
    for number, key in enumerate(keys):
        start.wait()
        shard = Store("logits", root).add(key, pa.table({"x": [number, value]}))
        assert Store("logits", root).find(key) == shard


@pytest.mark.parametrize("values", [(7, 7, 7), (7, 8, 9)], ids=["equal", "last_digits_differ"])
def test_racing_writers_leave_whole_entries(store: Store, values: tuple[int, ...]) -> None:
    keys = [f"{number:064x}" for number in range(60)]
    context = multiprocessing.get_context("fork")
    start = context.Barrier(len(values), timeout=60)
    writers = [context.Process(target=race, args=(store.root, keys, start, value)) for value in values]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * len(values)
    for number, key in enumerate(keys):
        assert store.find(key).sha256 == sha256_file(store.folder / key[:2] / f"{key}.arrow")
        first, value = store.read(key)["x"].to_pylist()
        assert first == number and value in values
    names = {path.name for path in store.root.rglob("*") if path.is_file()}
    assert names == {key + suffix for key in keys for suffix in (".arrow", ".json")}


def test_writers_that_come_second(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.add(KEY, TABLE)
    assert store.add(KEY, pa.table({"x": [1, 2, 4]})) == first == store.find(KEY)
    assert store.read(KEY).equals(TABLE)
    # A damaged file without a record is not kept.
    store.add(KEY, TABLE)
    entry(store, ".json").unlink()
    entry(store, ".arrow").write_bytes(b"ARROW1 truncated")
    shard = store.add(KEY, TABLE)
    assert store.find(KEY) == shard and store.read(KEY).equals(TABLE)
    assert [path.name for path in (store.root / "quarantine").glob("[!.]*")] == [f"{KEY}.arrow"]
    # A home that is not there yet is made.
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path / "new/home"))
    Store("logits").add(KEY, TABLE)
    assert Store("logits").find(KEY)


@pytest.mark.parametrize("left", [1.0, -1.0], ids=["by a writer that runs", "long ago"])
def test_a_file_without_a_record_is_kept_if_its_writer_runs(store: Store, left: float) -> None:
    store.add(KEY, TABLE)
    entry(store, ".json").unlink()
    other = pa.table({"x": [1, 2, 4]})
    written = stage_records.STARTED + left
    os.utime(entry(store, ".arrow"), (written, written))
    shard = store.add(KEY, other)
    assert store.find(KEY) == shard
    assert store.read(KEY).equals(TABLE if left > 0 else other)


@pytest.mark.parametrize("place", ["file", "file/below", "locked"])
def test_an_unusable_home_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "locked").mkdir()
    # A privileged user may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked")
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path / place))
    with pytest.raises(PotstillError, match=rf"POTSTILL_HOME: .*{place} cannot be used.*unset"):
        Store("logits")
