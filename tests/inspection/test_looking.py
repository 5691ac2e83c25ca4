"""Filters of a set."""

from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.joined import JoinedRows

from .made_up import TASK, made_up_transfer, transfer_table, write_set

NAMES = ["negative", "positive"]


@pytest.fixture
def rows(tmp_path: Path) -> JoinedRows:
    layout = Layout(tmp_path / "data")
    made_up_transfer(layout)
    return JoinedRows.open(layout.transfer(TASK, "full"))


def chosen(rows: JoinedRows, rule: str | None = None, label: str | None = None) -> list[int]:
    wanted = Filter.of(rows, NAMES, rule, label)
    return [key for batch in rows.batches(2) for key in batch.table["key"].to_numpy()[wanted.wants(batch)].tolist()]


class TestFilters:
    @pytest.mark.parametrize(
        ("rule", "keys"),
        [("original", [11, 12, 13, 14]), ("mask", [22, 23, 25]), ("replace", [21]), ("ngram", [22, 24])],
    )
    def test_by_rule(self, rows: JoinedRows, rule: str, keys: list[int]) -> None:
        assert chosen(rows, rule) == keys

    def test_by_label(self, rows: JoinedRows) -> None:
        assert chosen(rows, label="negative") == [12, 13, 14]
        assert chosen(rows, label="none") == [21, 22, 23, 24, 25]
        assert chosen(rows, "original", "positive") == [11]

    def test_what_there_is_not_is_refused(self, rows: JoinedRows, tmp_path: Path) -> None:
        with pytest.raises(PotstillError, match="no label 'good'; there are negative, positive"):
            chosen(rows, label="good")
        write_set(tmp_path / "plain", {"b000": transfer_table([]).select(["key", "text"])})
        with pytest.raises(PotstillError, match="--rule needs a transfer set"):
            Filter.of(JoinedRows.open(tmp_path / "plain"), None, "mask", None)
