"""The same file through every door: `init`, the stages, `predict`, `index`, `search`, `teacher`.

There were five readers that disagreed: on separators, quotes, encodings, compression, long texts,
nested values, blank lines, the numbers of rows, and on how a fault is worded.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import format_of
from pipeline_lib.commands.sentences import read_rows
from pipeline_lib.corpora.tasks.labelled import read_examples
from pipeline_lib.outputs.files.answer_rows import read_answers
from pipeline_lib.tables.contents import read_content
from pipeline_lib.tables.input_texts import Columns, read_texts
from pipeline_lib.tables.reader import ReadOptions

TEXTS = ["So it was, well.", 'She said "so".', "naïve 🎉"]
LABELS = ["neg", "pos", "neg"]
Read = Callable[[Path], list[tuple[str, int | None]]]
"""Returns a file's texts with the numbers of their rows, where the door knows them."""


def by_init(path: Path) -> list[tuple[str, int | None]]:
    content = read_content([path])
    return [(text, content.place(row)[1]) for row, text in enumerate(content.values("text"))]


def by_stages(path: Path, make_task: Callable) -> list[tuple[str, int | None]]:
    format = format_of(path)
    path.with_name(f"train.{format}").write_bytes(path.read_bytes())
    path.with_name(f"dev.{format}").write_bytes(path.read_bytes())
    files = {split: f"{split}.{format}" for split in ("train", "dev")}
    source = {"kind": "files", "files": files, "format": format, "columns": None}
    task = make_task(source=source, text=["text"], labels={"neg": ["neg"], "pos": ["pos"]})
    examples, _ = read_examples(path.parent, task)
    return [(example.texts[0], None) for example in examples["train"]]


def by_predict(path: Path) -> list[tuple[str, int | None]]:
    batches = [*read_texts(path, Columns("text", None, ("label",)), ReadOptions())]
    # It answers the other rows, and says this of the faulty ones.
    for fault in (fault for batch in batches for fault in batch.faults.values()):
        raise PotstillError(fault)
    return [pair for batch in batches for pair in zip(batch.texts, batch.numbers, strict=True)]


def by_index_and_search(path: Path) -> list[tuple[str, int | None]]:
    batches = read_rows(path, ids="label")
    return [(text, None) for batch in batches for text in batch.texts]


def by_teacher(path: Path) -> list[tuple[str, int | None]]:
    _, rows = read_answers(path, ["neg", "pos"])
    return [(row.texts[0], number) for number, row in rows]


@pytest.fixture(params=["init", "stages", "predict", "index", "teacher"])
def read(request: pytest.FixtureRequest, make_task: Callable) -> Read:
    doors: dict[str, Read] = {
        "init": by_init,
        "stages": lambda path: by_stages(path, make_task),
        "predict": by_predict,
        "index": by_index_and_search,
        "teacher": by_teacher,
    }
    return doors[request.param]


def delimited(separator: str, end: str = "\n", quote: bool = True) -> str:
    rows = [("text", "label"), *zip(TEXTS, LABELS, strict=True)]
    if quote:
        cells = [['"{}"'.format(cell.replace('"', '""')) for cell in row] for row in rows]
    else:
        cells = [[*row] for row in rows]
    return "".join(separator.join(row) + end for row in cells)


OBJECTS = [{"text": t, "label": label} for t, label in zip(TEXTS, LABELS, strict=True)]
LINES = "".join(json.dumps(row) + "\n" for row in OBJECTS)
FILES: dict[str, tuple[str, bytes]] = {
    "semicolon": ("a.csv", delimited(";").encode()),
    "excel": ("a.csv", ("sep=;\n" + delimited(";")).encode()),
    "cr": ("a.csv", delimited(",", "\r").encode()),
    "utf16": ("a.csv", delimited(",").encode("utf-16")),
    "gzip_without_suffix": ("a.csv", gzip.compress(delimited(",").encode())),
    "tsv": ("a.tsv", delimited("\t", quote=False).encode()),
    "quoted_tsv": ("a.tsv", delimited("\t").encode()),
    "ndjson": ("a.ndjson", LINES.encode()),
    "json_lines_in_json": ("a.json", LINES.encode()),
    "array_in_jsonl": ("a.jsonl", json.dumps(OBJECTS, indent=1).encode()),
}


@pytest.mark.parametrize("case", FILES)
def test_every_file_is_read_alike(tmp_path: Path, read: Read, case: str) -> None:
    name, content = FILES[case]
    (tmp_path / name).write_bytes(content)
    rows = read(tmp_path / name)
    assert [text for text, _ in rows] == TEXTS
    header = 0 if ".json" in name or ".ndjson" in name else 2 if case == "excel" else 1
    assert {number for _, number in rows} <= {None, *range(header + 1, header + 4)}


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_every_type_of_string(tmp_path: Path, read: Read, suffix: str) -> None:
    columns = {"text": pa.array(TEXTS, pa.binary()), "label": pa.array(LABELS, pa.large_string())}
    table, path = (
        pa.table({name: column.dictionary_encode() for name, column in columns.items()}),
        tmp_path / f"a{suffix}",
    )
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    assert [text for text, _ in read(path)] == TEXTS


def test_blank_lines_and_encodings(tmp_path: Path, read: Read, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.csv").write_text('\ntext,label\n\n"one\ntwo",neg\n\nthree,pos\n,\n\n')
    rows = read(tmp_path / "a.csv")
    assert [text for text, _ in rows] == ["one\ntwo", "three"]
    assert [number for _, number in rows] in ([4, 7], [None, None])
    texts = ["Die Gebühr für Gäste ist fällig.", "Das Frühstück war köstlich."] * 9
    rows = "".join(f"{text},{'neg' if n % 2 else 'pos'}\n" for n, text in enumerate(texts))
    (tmp_path / "a.csv").write_bytes(("text,label\n" + rows).encode("cp1252"))
    assert [text for text, _ in read(tmp_path / "a.csv")] == texts
    assert "read as cp1252, which was guessed" in caplog.messages[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"text,label\nx,neg\ny,z,pos\n", r"row 3 has 3 columns, not 2. Columns are sep"),
        ("a.csv", b"text,text,label\nx,y,neg\n", r"column 'text' occurs 2 times. Give each col"),
        ("a.csv", b"txt,label\nso,neg\nwell,pos\n", r"no column 'text'( or 'key')?; there are 'txt', 'label'"),
        ("a.jsonl", b'{"text": "x", "label": "neg"}\n{"te\n', r"row 2 is not valid JSON \("),
        ("a.parquet", b"PAR1", r"not a readable Parquet file \("),
    ],
)
def test_faults_are_worded_alike(tmp_path: Path, read: Read, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    # `init` does not look for a column of a certain name, but for any.
    if "no column" in message and read is by_init:
        assert read_content([tmp_path / name]).names == ["txt", "label"]
        return
    with pytest.raises(PotstillError, match=message) as caught:
        read(tmp_path / name)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.jsonl", "rows.parquet", "rows.arrow", "rows.txt"])
def test_what_git_lfs_leaves_in_a_files_place_is_no_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    doors = [lambda: [*read_rows(path)]]
    doors += [] if name.endswith(".txt") else [lambda: read_content([path])]
    for read in doors:
        with pytest.raises(PotstillError, match=rf"{name}: a Git LFS pointer, not the file itself"):
            read()
