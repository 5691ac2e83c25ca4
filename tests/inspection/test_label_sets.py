"""Sets whose rows may have several labels: shown, counted, filtered, listed, written, compared."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import Layout
from pipeline_lib.commands.shards.row_text import print_stored_row
from pipeline_lib.corpora.augmentation.rules import transfer_schema
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.flat import FlatRows
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.rows import read_row
from pipeline_lib.inspection.work_lists import ListPart, lists_of

from .made_up import TASK, TEACHER, sentence, write_set

NAMES = ["toxic", "threat", "spam"]
LOGITS = [[3.0, 1.0, -4.0], [-3.0, -2.0, -5.0], [0.1, -4.0, 2.0], [-1.0, 2.0, -1.0]]


def lay(folder: Path, logits: list[list[float]] = LOGITS) -> JoinedRows:
    """Write three originals and a synthetic row, and a teacher's answers to them."""
    texts = ["you will pay", "a fine day", "buy now you fool", "you [MASK] pay"]
    labels = [[1, 1, 0], [0, 0, 0], [1, 0, 1], None]
    rows = [
        {"key": n, "example": n % 3, "iteration": n // 3, "label": label, **sentence(text)}
        for n, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    schema = transfer_schema(False, KINDS["multilabel"].label_type(3))
    tables = {f"b000-i00{n}": pa.Table.from_pylist(p, schema) for n, p in enumerate((rows[:3], rows[3:]))}
    layout = Layout(folder)
    inputs, outputs = layout.transfer(TASK, "full"), layout.outputs(TASK, TEACHER, "full")
    write_set(inputs, tables, outputs, logits)
    return JoinedRows.open(inputs)


@pytest.fixture
def rows(tmp_path: Path) -> JoinedRows:
    return lay(tmp_path / "data")


def test_a_row_shows_its_labels_and_the_teachers(rows: JoinedRows) -> None:
    assert rows.kind == "multilabel" and not rows.is_scored
    first, second = (read_row(rows, 0, number, NAMES) for number in (0, 1))
    assert (first.label, first.teacher.answer) == ("toxic, threat", "toxic, threat")
    assert first.teacher.probabilities == pytest.approx({"toxic": 0.952574, "threat": 0.731059, "spam": 0.017986})
    assert (second.label, second.teacher.answer) == ("(none)", "(none)")
    assert read_row(rows, 1, 0, NAMES).label is None
    sink = io.StringIO()
    print_stored_row(Console(file=sink, width=200), rows, rows.row(0, 0), NAMES)
    assert "label toxic, threat" in sink.getvalue() and "toxic 0.953" in sink.getvalue()


def test_a_filter_takes_rows_that_have_a_label(rows: JoinedRows) -> None:
    for label, keys in (("toxic", [0, 2]), ("spam", [2]), ("none", [3])):
        wanted = Filter.of(rows, NAMES, None, label)
        assert [
            key for batch in rows.batches() for key in batch.table["key"].to_numpy()[wanted.wants(batch)].tolist()
        ] == keys


def test_lists_rank_sets_of_labels(rows: JoinedRows) -> None:
    lists = {one.name: one for one in lists_of([ListPart(rows)], NAMES, 2, False)}
    # Where the teacher finds the labels unlikely; its least sure answer, in bits of all labels.
    assert lists["labels"].rows[0].place == "b000-i000:2"
    shares = 1 / (1 + np.exp(-np.array(LOGITS[2])))
    expected = 1 - shares[0] * (1 - shares[1]) * shares[2]
    assert lists["labels"].rows[0].score == pytest.approx(expected, abs=1e-6)
    assert lists["uncertain"].rows[0].place == "b000-i000:2"
    assert lists["augmentation"].rows[0].place == "b000-i001:0"


def test_flat_rows_have_lists_of_names(rows: JoinedRows) -> None:
    table = pa.concat_tables(FlatRows(rows, NAMES, Filter()).tables())
    assert table["label"].to_pylist() == [["toxic", "threat"], [], ["toxic", "spam"], None]
    assert table["teacher"].to_pylist()[3] == ["threat"]
    assert sum(table["probabilities"].to_pylist()[0]) > 1.0
