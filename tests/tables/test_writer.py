"""Tables for people: no cell of CSV is a formula, no text orders a terminal about."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import printable
from pipeline_lib.tables.answer_writer import AnsweredBatch, text_lines
from pipeline_lib.tables.writer import open_writer, require_other

FORMULAS = ['=HYPERLINK("http://x")', "@SUM(A1)", "+cmd|' /C calc'!A0", "-so it was", "\tx", "-"]
TEXTS = ["so = so", "-5 degrees", "+1", "", "a@b"]


@pytest.mark.parametrize("raw", [False, True])
def test_cells_that_a_spreadsheet_would_compute(tmp_path: Path, raw: bool) -> None:
    path, texts = tmp_path / "a.csv", FORMULAS + TEXTS
    with open_writer(path, raw_cells=raw) as write:
        write(pa.table({"text": texts, "n": pa.array(range(-5, 6))}), None)
        write(
            pa.table({"text": [None] * 3, "n": [1] * 3}).cast(pa.schema([("text", pa.string()), ("n", pa.int64())])),
            None,
        )
    with path.open(newline="") as file:
        rows = [*csv.reader(file)][1:]
    marked = FORMULAS if raw else [f"'{text}" for text in FORMULAS]
    assert [row[0] for row in rows] == [*marked, *TEXTS, "", "", ""]
    assert [int(row[1]) for row in rows[:11]] == [*range(-5, 6)]


def test_what_is_written(tmp_path: Path) -> None:
    orders = "\x1b]0;title\x07so\x9b31m\r\tit\x7f"
    assert printable(orders) == r"\x1b]0;title\x07so\x9b31m\r" + "\tit" + r"\x7f"
    assert printable("naïve 🎉 ‮") == "naïve 🎉 ‮"
    batch = AnsweredBatch({"text": [orders]}, ["a\x1b[2J", "b"], "classification", np.array([[1.0, 0.0]]))
    (line,) = text_lines(batch)
    assert "\x1b" not in line and "\x9b" not in line and line.startswith(r"a\x1b[2J")
    # What is read is not written.
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    require_other(tmp_path / "c", tmp_path / "a")
    require_other(None, tmp_path / "a")
    with pytest.raises(PotstillError, match="b: the file that is read"):
        require_other(tmp_path / "b", tmp_path / "a")
