"""Pools: texts of packages, files and Wikipedia that join a task's unlabelled ones."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.tasks import pool as pools
from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import read_examples
from pipeline_lib.corpora.tasks.pool import write_pool
from pipeline_lib.params import OwnFiles
from pipeline_lib.params.texts import Pool
from pipeline_lib.shards.shard_sets import Manifest, schema_of, write_manifest, write_shard
from tests.made_up import made_up_task

OWN = {"kind": "files", "files": ["a.csv", "b.csv"], "format": "csv", "columns": None}
OWN |= {"text": "said"}
PACKAGE = {
    "kind": "package", "requirement": "texts==1.0", "artifact": "sdist", "sha256": "0" * 64,
    "files": ["inner/c.tsv"], "format": "tsv", "columns": ["id", "said"], "text": "said",
}  # fmt: skip
SOURCE = {"kind": "files", "files": {"train": "train.tsv", "dev": "dev.tsv"}, "format": "tsv"}
SOURCE |= {"columns": None}


def pool(rows: int, *sources: dict[str, Any]) -> Pool:
    return Pool.model_validate({"rows": rows, "sources": [*sources]})


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Return a folder with two files: labels and blanks in them are no texts."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    rows = "".join(f'"Number {n}, said.",{n % 2}\n' for n in range(20))
    (folder / "a.csv").write_text(f"said,label\n{rows}")
    (folder / "b.csv").write_text("label,said\n1,Number 3\n0, \n0,Number 3 \n")
    return folder


@pytest.fixture
def wikipedia(tmp_path: Path) -> Path:
    """Return a set of three sentences."""
    folder = tmp_path / "wikipedia"
    table = pa.table({"text": [f"Sentence {n}." for n in range(3)]})
    shard = write_shard(folder / "s.arrow", table)
    write_manifest(folder, Manifest("sentences", schema_of(table), [shard], {}, {}))
    return folder


def drawn(target: Path) -> list[str]:
    return pq.read_table(target / "pool.parquet")["text"].to_pylist()


def test_texts_of_all_sources_are_drawn_once_each(
    inputs: Path, wikipedia: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "download", lambda *_: tmp_path / "texts.tar.gz")
    monkeypatch.setattr(pools, "read_member", lambda _, name: f"1\tFrom {name}\n".encode())
    everything = [*(f"Number {n}, said." for n in range(20)), "Number 3", "From inner/c.tsv"]
    everything += [f"Sentence {n}." for n in range(3)]
    sources = OWN, PACKAGE, {"kind": "wikipedia"}
    places = inputs, wikipedia, tmp_path
    write_pool(pool(25, *sources), *places, "key")
    assert drawn(tmp_path) == everything
    smaller: set[str] = set()
    for rows in (1, 6, 20):
        write_pool(pool(rows, *sources), *places, "key")
        texts = drawn(tmp_path)
        assert len(texts) == rows and smaller < {*texts} < {*everything}
        assert texts == [text for text in everything if text in texts]
        smaller = {*texts}


def test_too_few_texts_and_missing_files_name_their_keys(inputs: Path, wikipedia: Path, tmp_path: Path) -> None:
    places = inputs, wikipedia, tmp_path
    with pytest.raises(PotstillError, match=r"key\.rows: 22, but its sources have 21 texts"):
        write_pool(pool(22, OWN), *places, "key")
    (inputs / "b.csv").unlink()
    with pytest.raises(PotstillError, match=r"key\.sources\.0\.files\.1: .*b\.csv not found"):
        write_pool(pool(2, OWN), *places, "key")
    (inputs / "b.csv").write_text("text\nNumber\n")
    with pytest.raises(PotstillError, match="no column 'said'"):
        write_pool(pool(2, OWN), *places, "key")


def test_they_join_the_unlabelled_texts(inputs: Path, wikipedia: Path, tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (inputs / f"{name}.tsv").write_text(f"sentence\tlabel\n{name} good\t1\n{name} bad\t0\n")
    (inputs / "more.tsv").write_text("sentence\nOne more\n")
    for files, own in (({}, []), ({"unlabelled": "more.tsv"}, ["One more"])):
        source = SOURCE | {"files": SOURCE["files"] | files}
        task = made_up_task(source=source, pool=pool(21, OWN).model_dump())
        target = tmp_path / "raw"
        fetch_data("films", OwnFiles(**source), inputs, target, pool=task.pool)
        splits, _ = read_examples(target, task)
        assert task.has_unlabelled and all(row.label is None for row in splits["pool"])
        texts = [row.texts[0] for row in splits["pool"]]
        assert texts == [*(f"Number {n}, said." for n in range(20)), "Number 3"]
        assert [row.texts[0] for row in splits.get("unlabelled", [])] == own
        assert [row.texts for row in splits["train"]] == [("train good",), ("train bad",)]


def test_pairs_have_none() -> None:
    with pytest.raises(ValidationError, match="`pool` has single texts, and this task compares"):
        made_up_task(text=["a", "b"], pool={"rows": 1, "sources": [OWN]})
