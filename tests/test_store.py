"""The content-addressed store: nothing lost, nothing damaged given out, one writer at a time."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from filelock import FileLock

from pipeline_lib import store as module
from pipeline_lib.errors import DistilleryError
from pipeline_lib.store import Store, state_folder

KEY, TABLE = "ab" + "0" * 62, pa.table({"x": [1, 2, 3]})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Make an empty store."""
    return Store("logits", tmp_path / "store")


def test_find_add_read_place(store: Store, tmp_path: Path) -> None:
    assert store.find(KEY) is None
    added = store.add(KEY, TABLE, "source")
    assert store.find(KEY) == added
    assert (added.rows, added.source, added.computed_on) == (3, "source", None)
    assert store.add(KEY, TABLE, computed_on="a processor").computed_on == "a processor"
    assert store.find(KEY).computed_on == "a processor"
    assert store.read(KEY).equals(TABLE)
    store.place(KEY, tmp_path / "out" / "b000.arrow")
    assert pa.ipc.open_file(tmp_path / "out" / "b000.arrow").read_all().equals(TABLE)
    assert store.find("cd" + KEY[2:]) is None


def test_kinds_are_apart(store: Store) -> None:
    store.add(KEY, TABLE)
    assert Store("tags", store.root).find(KEY) is None
    assert Store("logits", store.root).find(KEY) is not None


def entry(store: Store, suffix: str) -> Path:
    return store.folder / KEY[:2] / f"{KEY}{suffix}"


def test_altered_entry_is_set_aside_and_made_again(store: Store) -> None:
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


def test_torn_entry_is_set_aside(store: Store) -> None:
    store.add(KEY, TABLE)
    path = entry(store, ".arrow")
    path.write_bytes(path.read_bytes()[:-1])
    assert store.find(KEY) is None and not path.exists()


@pytest.mark.parametrize("record", ["{", "{}", "[]", '{"surplus": 1}'])
def test_unreadable_record_sets_the_entry_aside(store: Store, record: str) -> None:
    store.add(KEY, TABLE)
    entry(store, ".json").write_text(record)
    assert store.find(KEY) is None
    assert not entry(store, ".arrow").exists()


@pytest.mark.parametrize("suffix", [".json", ".arrow"])
def test_entry_without_its_other_half_is_interrupted(store: Store, suffix: str) -> None:
    store.add(KEY, TABLE)
    entry(store, suffix).unlink()
    assert store.find(KEY) is None
    store.add(KEY, TABLE)
    assert store.find(KEY) is not None


def test_what_a_killed_writer_left_is_swept_and_nothing_else(store: Store) -> None:
    store.add(KEY, TABLE)
    left = store.folder / "ab" / f".{KEY}.arrow.4711.tmp"
    left.write_bytes(b"half")
    with store.lock():
        assert not left.exists()
        assert store.read(KEY).equals(TABLE) and store.find(KEY)


def test_placed_files_outlive_quarantine(store: Store, tmp_path: Path) -> None:
    store.add(KEY, TABLE)
    store.place(KEY, tmp_path / "placed.arrow")
    entry(store, ".json").write_text("{")
    assert store.find(KEY) is None
    assert pa.ipc.open_file(tmp_path / "placed.arrow").read_all().equals(TABLE)


def test_lock_is_refused_while_another_process_holds_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FileLock", lambda path, timeout: FileLock(path, timeout=0.2))
    with store.lock():
        pass
    code = (
        "import sys, filelock\n"
        "with filelock.FileLock(sys.argv[1]):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(store.folder / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(DistilleryError, match="another process is writing"), store.lock():
        pass
    holder.communicate("")
    with store.lock():
        store.add(KEY, TABLE)
    assert store.find(KEY) is not None


def test_state_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISTILLERY_HOME", raising=False)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    assert state_folder() == Path(".distillery")
    monkeypatch.setenv("DVC_ROOT", "/repo")
    assert state_folder() == Path("/repo/.distillery")
    monkeypatch.setenv("DISTILLERY_HOME", "/shared")
    assert state_folder() == Path("/shared")
    assert Store("tags").folder == Path("/shared/store/tags")
