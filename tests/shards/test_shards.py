"""Shard sets: same bytes for same rows, and every kind of damage found."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.shards.shard_sets import (
    Manifest,
    Shard,
    ShardSet,
    check_answers,
    describe_shard,
    read_manifest,
    read_shard,
    schema_of,
    write_manifest,
    write_shard,
)


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "key": pa.array(numbers, pa.uint64()),
            "text": pa.array([f"text {n}" for n in numbers], pa.string()),
            "words": pa.array([["a"] * (n % 3) for n in numbers], pa.list_(pa.string())),
            "label": pa.array([n if n % 2 else None for n in numbers], pa.int32()),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a set of three shards, the middle one empty."""
    shards = [write_shard(tmp_path / f"set/b{i}.arrow", rows(*ends)) for i, ends in enumerate([(0, 5), (5, 5), (5, 9)])]
    manifest = Manifest("test", schema_of(rows(0, 1)), shards, {"seed": 1}, {"dropped": 2})
    write_manifest(tmp_path / "set", manifest)
    return tmp_path / "set"


def test_a_set_is_read_and_looked_at(folder: Path, tmp_path: Path) -> None:
    opened = ShardSet.open(folder)
    assert opened.to_table().equals(rows(0, 9))
    assert [table.num_rows for table in opened.tables()] == [5, 0, 4]
    assert opened.manifest.rows == 9
    assert opened.manifest.made_from == {"seed": 1}
    assert opened.manifest.counts == {"dropped": 2}
    assert opened.manifest.schema["label"] == "int32"
    assert opened.verify() == []
    # A set is looked at as a table.
    opened = ShardSet.open(folder)
    first, columns = repr(opened).split("\n")
    assert first.startswith(f"{folder}: test, 9 rows in 3 shards, 0.0 MB")
    assert {"text: string", "words: list<item: string>", "label: int32"} <= {*columns.strip().split(", ")}
    assert len(opened) == 9 and opened
    assert [*opened] == opened.to_table().to_pylist()
    assert opened.to_pandas()["text"].tolist() == rows(0, 9)["text"].to_pylist()
    # An empty set has an empty table.
    write_manifest(tmp_path, Manifest("sentences", {}, []))
    assert ShardSet.open(tmp_path).to_table().num_rows == 0


def test_equal_tables_give_equal_bytes_and_records(tmp_path: Path) -> None:
    # Chunked differently, the rows are the same table.
    chunked = pa.concat_tables([rows(0, 2), rows(2, 6), rows(6, 9)])
    whole, parts = write_shard(tmp_path / "a", rows(0, 9)), write_shard(tmp_path / "b", chunked)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert whole.sha256 == parts.sha256
    assert write_shard(tmp_path / "c", rows(0, 8)).sha256 != whole.sha256
    assert pa.ipc.open_file(tmp_path / "b").num_record_batches == 1
    # Describe equals what writing returned.
    written = write_shard(tmp_path / "a.arrow", rows(0, 3), "source digest")
    assert describe_shard(tmp_path / "a.arrow", 3, "source digest") == written
    assert written.name == "a.arrow" and written.rows == 3 and written.source == "source digest"


def test_crash_while_writing_leaves_no_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        schema = rows(0, 1).schema

        def combine_chunks(self) -> None:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        write_shard(tmp_path / "a.arrow", Broken())
    assert list(tmp_path.iterdir()) == []


def test_torn_altered_and_missing_shards_are_found(folder: Path) -> None:
    first, _, last = (folder / f"b{i}.arrow" for i in range(3))
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    assert ["altered" in fault for fault in ShardSet.open(folder).verify()] == [True]
    last.write_bytes(last.read_bytes()[:-9])
    faults = ShardSet.open(folder).verify()
    assert len(faults) == 2 and "truncated" in faults[1] and "b2.arrow" in faults[1]
    with pytest.raises(PotstillError, match=r"b2\.arrow: truncated or not an Arrow file"):
        read_shard(last)
    first.unlink()
    assert ShardSet.open(folder).verify()[0].endswith("b0.arrow: missing")
    with pytest.raises(PotstillError, match=r"b0\.arrow: shard not found"):
        ShardSet.open(folder).to_table()


def test_faulty_sets_are_refused(folder: Path) -> None:
    write_shard(folder / "b0.arrow", rows(0, 4))
    with pytest.raises(PotstillError, match=r"b0\.arrow: 4 rows, the manifest says 5"):
        ShardSet.open(folder).to_table()
    # A manifest that is no object is refused.
    (folder / "manifest.json").write_text("[]")
    with pytest.raises(PotstillError, match=r"manifest\.json: not a manifest"):
        read_manifest(folder)
    # Folder without manifest is unfinished.
    (folder / "manifest.json").unlink()
    with pytest.raises(PotstillError, match=r"no manifest\.json.*distill run"):
        ShardSet.open(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 2, this version reads 1"),
        ({"format": None}, "format None"),
        ({"surplus": 1}, "not a manifest"),
        ({"shards": [{"name": "a"}]}, r"not a manifest \(shards.0.rows: "),
        ({"shards": 3}, r"not a manifest \(shards: "),
        ({"schema": ["key"]}, r"not a manifest \(schema: "),
    ],
)
def test_other_manifests_are_refused(folder: Path, change: dict[str, object], message: str) -> None:
    path = folder / "manifest.json"
    write_json(path, read_json(path) | change)
    with pytest.raises(PotstillError, match=message):
        read_manifest(folder)


def test_digest_names_the_content(folder: Path) -> None:
    manifest = read_manifest(folder)
    other = [
        replace(manifest, kind="another"),
        replace(manifest, schema={}),
        replace(manifest, shards=manifest.shards[:2]),
        replace(manifest, shards=[replace(manifest.shards[0], sha256="0")]),
    ]
    assert len({manifest.digest, *(m.digest for m in other)}) == 5
    # What comes out the same under other settings is the same set: nothing after it runs again.
    assert manifest.digest == replace(manifest, made_from={"n_iter": 20}).digest
    elsewhere = [replace(shard, computed_on="a processor") for shard in manifest.shards]
    assert manifest.digest == replace(manifest, shards=elsewhere).digest


def answers(**changes: object) -> Manifest:
    shards = [Shard("a", 2, 9, "o1", "i1"), Shard("b", 3, 9, "o2", "i2")]
    shards[1] = replace(shards[1], **changes)
    return Manifest("logits", {}, shards)


def test_check_answers() -> None:
    inputs = Manifest("transfer", {}, [Shard("a", 2, 9, "i1"), Shard("b", 3, 9, "i2")])
    check_answers(inputs, answers())
    for changes in ({"source": "i3"}, {"rows": 4}, {"source": None}):
        with pytest.raises(PotstillError, match="b: does not belong to input shard b"):
            check_answers(inputs, answers(**changes))
    with pytest.raises(PotstillError, match="2 output shards for 1 input shards"):
        check_answers(replace(inputs, shards=inputs.shards[:1]), answers())
    swapped = replace(inputs, shards=inputs.shards[::-1])
    with pytest.raises(PotstillError, match="a: does not belong"):
        check_answers(swapped, answers())


def test_libraries_open_it(folder: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    file, cache = str(folder / "b2.arrow"), str(tmp_path / "cache")
    loaded = datasets.load_dataset("arrow", data_files=file, split="train", cache_dir=cache)
    assert loaded["text"][:] == rows(5, 9)["text"].to_pylist()
    assert loaded[1]["label"] is None and loaded[0]["label"] == 5
    duckdb = pytest.importorskip("duckdb")
    shards = ShardSet.open(folder).to_table()
    assert shards.num_rows == 9
    query = "select count(*), count(label), max(len(words)) from shards"
    assert duckdb.sql(query).fetchall() == [(9, 4, 2)]
