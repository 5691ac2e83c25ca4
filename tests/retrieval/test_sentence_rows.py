"""Sentences read in batches from every kind of file, and what is new among them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.commands import sentences
from pipeline_lib.commands.sentences import read_rows
from pipeline_lib.retrieval.sentence_rows import DistinctRows, Rows
from pipeline_lib.tables import arrow_files, reader
from tests.kit.shard_files import write_set

TEXTS = ["one, two", 'say "it"', "naïve\u2028line", "", "last"]
IDS = ["a", "b", "c", "d", "5"]


@pytest.mark.parametrize("ids", ["key", None])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "shards"])
def test_rows_come_in_batches_with_their_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, ids: str | None
) -> None:
    for module in (reader, sentences, arrow_files):
        monkeypatch.setattr(module, "BATCH_ROWS", 2)
    path, table = tmp_path / name, pa.table({"sentence": TEXTS, "key": IDS})
    if name == "shards":
        write_set(path, "sentences", {"0.arrow": table.slice(0, 2), "1.arrow": table.slice(2)})
    else:
        (csv.write_csv if name == "a.csv" else pq.write_table)(table, path)
    batches = list(read_rows(path, text="sentence", ids=ids))
    assert max(len(batch) for batch in batches) == 2
    assert [text for batch in batches for text in batch.texts] == TEXTS
    assert [own for batch in batches for own in batch.ids or []] == (IDS if ids else [])


def test_lines_have_no_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\ufeff" + "\r\n".join(TEXTS) + "\r\n", encoding="utf-8")
    assert [text for batch in read_rows(path) for text in batch.texts] == TEXTS
    with pytest.raises(PotstillError, match=r"lines have no ids. Leave `--id` out"):
        list(read_rows(path, ids="key"))


def test_every_row_has_an_id_or_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,a\n,b\n")
    with pytest.raises(PotstillError, match=r"a\.csv: row 3: no 'id'. Give every row an id"):
        list(read_rows(tmp_path / "a.csv", ids="id"))


def test_rows_are_distinct() -> None:
    distinct = DistinctRows()
    assert list(distinct.blocks([Rows(["a", " ", "b", "a"]), Rows(["b", "c"])])) == [Rows(["a", "b", "c"])]
    assert distinct.left_out == {"empty": 1, "repeated": 2}
    named = [Rows(["a", "a"], ["1", "2"]), Rows([], []), Rows(["a", "b"], ["1", "3"])]
    assert list(DistinctRows().blocks(named)) == [Rows(["a", "a", "b"], ["1", "2", "3"])]
    with pytest.raises(PotstillError, match="id '1': has two texts"):
        list(DistinctRows().blocks([Rows(["a"], ["1"]), Rows(["b"], ["1"])]))


@pytest.mark.parametrize("with_ids", [True, False])
def test_a_changed_row_changes_its_own_block_alone(with_ids: bool) -> None:
    def blocks(texts: list[str], batch: int = 100) -> list[Rows]:
        ids = [f"id of {text}" for text in texts] if with_ids else None
        batches = [Rows(texts, ids)[start : start + batch] for start in range(0, len(texts), batch)]
        return list(DistinctRows().blocks(batches, 16))

    texts = [f"text {number}" for number in range(1000)]
    before = blocks(texts)
    assert [text for rows in before for text in rows.texts] == texts
    assert 40 < len(before) < 90 and max(map(len, before)) <= 64
    assert blocks(texts, batch=7) == before
    for changed in ([*texts[:500], "new", *texts[500:]], texts[1:], [*texts, "new"]):
        digests = {rows.digest for rows in before}
        assert sum(rows.digest not in digests for rows in blocks(changed)) <= 2
