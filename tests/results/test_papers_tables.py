"""benchmarks/papers: no figure of the papers is lost, rows exist, and the page is what the data say."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.params import load_params

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks/papers"
SPEC = importlib.util.spec_from_file_location("papers_tables", FOLDER / "tables.py")
tables = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = tables
SPEC.loader.exec_module(tables)
PROFILES = ("tang", "thesis", "thesis_mkd", "sra", "dse")


def test_figures_and_rows_are_complete() -> None:
    papers, read = tables.read_published()
    keys = [
        (one.paper, one.number, row, column)
        for one in read
        for row, values in one.rows.items()
        for column, value in zip(one.columns, values, strict=True)
        if value is not None
    ]
    assert len(keys) == len({*keys}) == 695 and {*papers} == {one.paper for one in read}
    profiles = [load_params(ROOT / f"profiles/{name}.yaml") for name in PROFILES]
    methods = {name for profile in profiles for name in profile.methods}
    methods |= {f"teacher {name}" for profile in profiles for name in profile.teachers}
    for one in read:
        assert {*one.baselines, *one.baselines.values(), *one.ours} <= {*one.rows}, one.number
        assert all({*names} & methods for names in one.ours.values()), one.number


def test_the_page_is_what_the_data_say() -> None:
    assert (FOLDER / "tables.md").read_text("utf-8") == tables.page()


@pytest.mark.parametrize(
    ("printed", "changes", "expected"),
    [
        (4.0, {}, "agrees"),
        (4.0, {"p": 0.06}, "not shown"),
        (4.0, {"p": None}, "not shown"),
        (-4.0, {}, "opposite"),
        (9.0, {}, "smaller"),
        (0.5, {}, "larger"),
    ],
)
def test_gains_are_compared(printed: float, changes: dict[str, Any], expected: str) -> None:
    ours = {"baseline": "b", "gain": 0.038, "low": 0.022, "high": 0.054, "p": 0.01} | changes
    table = tables.Table("kd", "1", ["sst2 accuracy test"], {"A": [80 + printed], "B": [80]}, {"A": "B"}, {})
    runs = {"run": {"sst2": {"metric": "accuracy", "split": "test", "methods": {"a": ours}}}}
    assert list(tables.compare(table, runs)) == []
    [line] = tables.compare(table._replace(ours={"A": ["a"], "B": ["b"]}), runs)
    assert line[5] == expected and line[2] == f"{printed:+g}" and line[4] == "+3.8 [+2.2, +5.4]"
