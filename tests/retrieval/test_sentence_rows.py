"""Sentences read in batches from every kind of file, and what is new among them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.commands import sentences
from pipeline_lib.commands.sentences import read_rows
from pipeline_lib.retrieval.sentence_rows import DistinctRows, Rows
from pipeline_lib.tables import arrow_files, reader
from tests.kit.shard_files import write_set

TEXTS = ["one, two", 'say "it"', "naïve\u2028line", "", "last"]
IDS = ["a", "b", "c", "d", "5"]


def write(folder: Path, name: str) -> Path:
    path, table = folder / name, pa.table({"n": range(5), "sentence": TEXTS, "key": IDS})
    if name == "a.txt":
        path.write_text("\ufeff" + "\r\n".join(TEXTS) + "\r\n", encoding="utf-8")
    elif name == "a.jsonl":
        lines = [
            '{"key": "a", "sentence": "one, two"}',
            '{"sentence": "say \\"it\\"", "key": "b"}',
            '{"key": "c", "sentence": "naïve\\u2028line", "more": [1]}',
            "",
            '{"key": "d", "sentence": ""}',
            '{"key": 5, "sentence": "last"}',
        ]
        path.write_text("\n".join(lines), encoding="utf-8")
    elif name == "a.csv":
        quoted = ['"one, two"', '"say ""it"""', "naïve\u2028line", '""', "last"]
        lines = [f"{i},{t},x" for i, t in zip(IDS, quoted, strict=True)]
        path.write_text("\n".join(["key,sentence,rest", *lines, ""]), encoding="utf-8")
    elif name == "a.tsv":
        lines = [f"{i}\t{t}" for i, t in zip(IDS, TEXTS, strict=True)]
        path.write_text("\n".join(["key\tsentence", *lines, ""]), encoding="utf-8")
    elif name == "a.parquet":
        pq.write_table(table, path)
    else:
        write_set(path, "sentences", {"0.arrow": table.slice(0, 2), "1.arrow": table.slice(2)})
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.parquet", "shards"])
@pytest.mark.parametrize("with_ids", [True, False])
def test_every_format_gives_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, with_ids: bool
) -> None:
    monkeypatch.setattr(reader, "BATCH_ROWS", 2)
    monkeypatch.setattr(sentences, "BATCH_ROWS", 2)
    monkeypatch.setattr(arrow_files, "BATCH_ROWS", 2)
    path = write(tmp_path, name)
    found = list(read_rows(path, text="sentence", ids="key" if with_ids else None))
    assert max(len(batch) for batch in found) == 2
    assert [text for batch in found for text in batch.texts] == TEXTS
    if with_ids:
        assert [own for batch in found for own in batch.ids] == IDS
    else:
        assert {batch.ids for batch in found} == {None}


def test_lines_have_no_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt")
    assert [text for batch in read_rows(path) for text in batch.texts] == TEXTS
    with pytest.raises(PotstillError, match=r"lines have no ids. Leave `--id` out"):
        list(read_rows(path, ids="key"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"txt": "b"}\n', "row 1: no column 'text'; there are 'txt'"),
        ("a.jsonl", b'{"text": "a"}\n[1]\n', "row 2 is not a JSON object"),
        ("a.jsonl", b'{"text": {"a": 1}}\n', "row 1, column 'text' holds a dict"),
        ("a.jsonl", b"{text}\n", "row 1 is not valid JSON"),
        ("a.csv", b"id,t\n1,2\n", "no column 'text'; there are 'id', 't'"),
        ("a.csv", b"id,text\n1,2\n3\n", "row 3 has 1 columns, not 2"),
        ("a.csv", b'id,text\n1,"2\n', "row 2 is not valid CSV"),
        ("a.tsv", b"text\ttext\na\tb\n", "column 'text' occurs 2 times"),
        ("a.parquet", b"PAR1", "not a readable Parquet file"),
    ],
)
def test_faulty_files_name_row_and_remedy(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PotstillError, match=message) as caught:
        list(read_rows(tmp_path / name))
    assert str(caught.value).startswith(f"{tmp_path}/{name}: ")


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
