"""Figures, samples and filters of a set."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.sampling import sample
from pipeline_lib.inspection.statistics import Numbers, figures

from .made_up import TASK, TEACHER, made_up_transfer, sentence, transfer_table, write_set

NAMES = ["negative", "positive"]


@pytest.fixture
def rows(tmp_path: Path) -> JoinedRows:
    layout = Layout(tmp_path / "data")
    made_up_transfer(layout)
    return JoinedRows.open(layout.transfer(TASK, "full"))


def chosen(rows: JoinedRows, rule: str | None = None, label: str | None = None) -> list[int]:
    wanted = Filter.of(rows, NAMES, rule, label)
    return [key for batch in rows.batches(2) for key in batch.table["key"].to_numpy()[wanted.wants(batch)].tolist()]


class TestFigures:
    def test_of_everything(self, rows: JoinedRows) -> None:
        found = figures(rows, NAMES, Filter())
        assert found.rows == 9
        assert found.labels == {"negative": 3, "positive": 1, "no label": 5}
        assert found.answers == {"negative": 3, "positive": 6}
        assert found.rules == {"original": 4, "mask": 3, "replace": 1, "ngram": 2}
        assert found.iterations == {0: 4, 1: 5}
        assert found.agreeing == (2, 4)
        lengths = found.numbers["length"]
        assert (lengths.values.min(), lengths.values.max(), lengths.count) == (1, 4, 9)
        assert [rows for *_, rows in lengths.bars()] == [1, 4, 2, 2]
        assert found.numbers["teacher's entropy"].unit == "bits"

    def test_of_the_rows_that_a_filter_wants(self, rows: JoinedRows) -> None:
        found = figures(rows, NAMES, Filter.of(rows, NAMES, "mask", None))
        assert found.rows == 3 and found.labels == {"negative": 0, "positive": 0, "no label": 3}

    def test_of_scores(self, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "data")
        texts = [(-1.5, "one two"), (0.5, "one"), (None, "none")]
        given = [{"key": n, "label": y, **sentence(t)} for n, (y, t) in enumerate(texts)]
        tables = {"b000-i000": transfer_table(given, regression=True)}
        answers = [[-1.0], [np.nan], [1.0]]
        folder = layout.transfer(TASK, "full")
        write_set(folder, tables, layout.outputs(TASK, TEACHER, "full"), answers)
        found = figures(JoinedRows.open(folder), None, Filter())
        assert not found.labels and not found.answers
        label, answer = found.numbers["label"], found.numbers["teacher's answer"]
        assert (label.values.tolist(), label.missing) == ([-1.5, 0.5], 1)
        assert (answer.values.tolist(), answer.missing) == ([-1.0, 1.0], 1)

    def test_bars_hold_every_value(self) -> None:
        values = np.random.default_rng(1).normal(size=5000)
        numbers = Numbers("", whole=False)
        for half in np.split(values, 2):
            numbers.add(half)
        assert numbers.quantile(0.05) == pytest.approx(np.quantile(values, 0.05))
        assert len(numbers.bars()) == 10 and sum(rows for *_, rows in numbers.bars()) == 5000

    def test_whole_numbers_over_a_wide_range_share_bars(self) -> None:
        numbers = Numbers("words", whole=True)
        numbers.add(np.arange(1.0, 2502.0))
        assert numbers.quantile(0.5) == 1251 and numbers.bars()[0] == (1.0, 251.0, 251)
        assert sum(rows for *_, rows in numbers.bars()) == 2501


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


class TestSample:
    def test_every_row_is_as_likely_as_any_other(self, rows: JoinedRows) -> None:
        drawn = np.zeros((4, 3))
        for seed in range(90):
            places, of = sample(rows, 3, seed, Filter())
            assert len(set(places)) == 3 and of == 9
            for place in places:
                drawn[place] += 1
        # 9 rows are drawn 30 times each; the standard deviation is 4.5.
        assert np.abs(drawn[drawn > 0] - 30).max() < 18 and (drawn > 0).sum() == 9

    def test_the_same_rows_of_a_set_that_grew(self, rows: JoinedRows, tmp_path: Path) -> None:
        made = [{"key": 100 + n, "example": n, **sentence("more")} for n in range(2)]
        grown = {f"b00{n}-i000": table for n, table in enumerate(rows.inputs.tables())}
        write_set(tmp_path / "grown", grown | {"b009-i000": transfer_table(made)})
        other = JoinedRows.open(tmp_path / "grown")
        before, _ = sample(rows, 4, 1, Filter())
        after, _ = sample(other, 4, 1, Filter())
        # Of 4 rows at most 2 can have lost their place to the 2 new ones.
        assert len({*before} & {*after}) >= 2 and before == sorted(before)

    def test_a_small_set_is_drawn_whole(self, rows: JoinedRows) -> None:
        wanted = Filter.of(rows, NAMES, "ngram", None)
        assert sample(rows, 10, 1, wanted) == ([(1, 1), (3, 0)], 2)
