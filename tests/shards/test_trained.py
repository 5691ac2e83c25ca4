"""Results of trainings are whole, whoever writes them at once, and found by content."""

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import ABANDONED_SECONDS
from pipeline_lib.base.seals import SEAL, check_sealed
from pipeline_lib.shards.trained import Trained

PARTS = ("config.json", "model.safetensors", "tokenizer.json", "training.json")


def write_result(trained: Trained, content: str = "weights") -> None:
    with trained.writing() as folder:
        for name in PARTS:
            (folder / name).write_text(f"{content} of {trained.key}")


def found(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def race(keys: list[str], start: Any) -> None:
    """Write all results, each at the moment when the other processes write it."""
    for key in keys:
        start.wait()
        write_result(Trained("students", key))
        assert Trained("students", key).is_whole()


@pytest.mark.parametrize("damaged", [False, True], ids=["new", "damaged"])
def test_racing_writers_leave_whole_results(store_home: Path, damaged: bool) -> None:
    keys = [f"key{number}" for number in range(60)]
    for key in keys if damaged else []:
        write_result(Trained("students", key))
        (Trained("students", key).folder / PARTS[1]).unlink()
    context = multiprocessing.get_context("fork")
    start = context.Barrier(3, timeout=60)
    writers = [context.Process(target=race, args=(keys, start)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    for key in keys:
        trained = Trained("students", key)
        assert trained.is_whole()
        assert {(trained.folder / name).read_text() for name in PARTS} == {f"weights of {key}"}
    assert found(store_home / "students") == set(keys)
    assert len(list((store_home / "quarantine").glob("[!.]*"))) == len(keys) * damaged


def test_the_first_whole_result_stays(store_home: Path) -> None:
    trained = Trained("students", "key")
    write_result(trained, "first")
    write_result(trained, "second")
    assert trained.is_whole()
    assert (trained.folder / PARTS[0]).read_text() == "first of key"
    # An interrupted writer leaves no result.
    trained = Trained("students", "another")
    with pytest.raises(KeyboardInterrupt), trained.writing() as folder:
        (folder / "model.safetensors").write_text("half")
        raise KeyboardInterrupt
    assert not trained.is_whole() and found(store_home / "students") == {"key"}


@pytest.mark.parametrize("name", [*PARTS, SEAL])
def test_a_damaged_result_is_set_aside_and_written_again(store_home: Path, name: str) -> None:
    trained = Trained("students", "key")
    write_result(trained)
    (trained.folder / name).write_text("{")
    assert not trained.is_whole()
    write_result(trained)
    assert trained.is_whole()
    assert (store_home / "quarantine/key" / name).read_text() == "{"


def test_what_is_placed_is_sealed(store_home: Path, tmp_path: Path) -> None:
    trained = Trained("students", "key")
    write_result(trained)
    trained.link_into(tmp_path / "out")
    assert found(tmp_path / "out") == {*PARTS, SEAL}
    check_sealed(tmp_path / "out")
    # Folders of a result are sealed and linked one by one.
    trained = Trained("joint", "key")
    with trained.writing() as folder:
        (folder / "0").mkdir()
        (folder / "0/config.json").write_text("first")
        (folder / "training.json").write_text("all")
    trained.link_into(tmp_path / "all")
    trained.link_into(tmp_path / "first", "0")
    assert found(tmp_path / "all") == {"training.json", SEAL}
    assert (tmp_path / "first/config.json").samefile(trained.folder / "0/config.json")
    assert trained.is_whole()
    (trained.folder / "0/config.json").unlink()
    assert not trained.is_whole()


@pytest.mark.parametrize("idle", [ABANDONED_SECONDS + 60, 60], ids=["abandoned", "live"])
def test_only_folders_left_long_ago_are_swept(store_home: Path, idle: float) -> None:
    left = store_home / "students/.other.4711.tmp"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_text("half")
    os.utime(left, (time.time() - idle,) * 2)
    write_result(Trained("students", "key"))
    assert left.exists() == (idle < ABANDONED_SECONDS)


def test_a_home_that_cannot_be_written_is_one_error(store_home: Path) -> None:
    store_home.write_text("a file")
    with pytest.raises(PotstillError, match="could not be written"):
        write_result(Trained("students", "key"))
