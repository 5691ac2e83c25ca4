"""benchmarks/papers: no figure is lost, rows exist, the page is what the data say, a submission is whole."""

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params import load_params
from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.shard_sets import write_shard
from tests.kit.made_up import made_up_method, made_up_scores

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks/papers"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"papers_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables, submission = script("tables"), script("submission")
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
        (4.0, {}, "reproduced"),
        (4.0, {"p": 0.06}, "not shown"),
        (4.0, {"p": None}, "not shown"),
        (-4.0, {}, "contrary"),
        (9.0, {}, "smaller"),
        (0.5, {}, "reproduced"),
    ],
)
def test_gains_are_compared(printed: float, changes: dict[str, Any], expected: str) -> None:
    ours = {"baseline": "b", "gain": 0.038, "low": 0.022, "high": 0.054, "p": 0.01} | changes
    table = tables.Table("kd", "1", ["sst2 accuracy test"], {"A": [80 + printed], "B": [80]}, {"A": "B"}, {})
    runs = {"run": {"sst2": {"metric": "accuracy", "split": "test", "methods": {"a": ours}}}}
    assert list(tables.compare(table, runs)) == []
    [line] = tables.compare(table._replace(ours={"A": ["a"], "B": ["b"]}), runs)
    assert line[5] == expected and line[2] == f"{printed:+g}" and line[4] == "+3.8 [+2.2, +5.4]"


def test_a_submission_is_the_eleven_official_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    profile = ROOT / "profiles/thesis.yaml"
    monkeypatch.setattr(submission, "load_params", lambda: load_params(profile))
    params, rows_named = load_params(profile), ["bilstm_kd_mask_pos", "bilstm_kd_mask_pos_256"]
    for task, split, rows, _ in submission.FILES.values():
        if task in params.tasks and split == "test":
            row = next(name for name in rows_named if name in params.methods_of(task))
            _predictions(task, row, rows)
    submission.main(rows_named, Path("s.zip"))
    with zipfile.ZipFile("s.zip") as archive:
        assert {*archive.namelist()} == {*submission.FILES}
        for name, (_, _, count, valid) in submission.FILES.items():
            header, *lines = archive.read(name).decode().splitlines()
            assert header == "index\tprediction" and len(lines) == count
            constant = name in ("AX.tsv", "WNLI.tsv", "STS-B.tsv")
            assert constant or {line.split("\t")[1] for line in lines} == {*valid}
    _predictions("rte", rows_named[0], 10)
    with pytest.raises(PotstillError, match=r"RTE\.tsv: 10 answers for 3,000 rows"):
        submission.main(rows_named, Path("s.zip"))
    assert not Path("s.zip").exists()


def _predictions(task: str, row: str, rows: int) -> None:
    sizes = {"test": rows} | ({"test_mismatched": 9847} if task == "mnli" else {})
    width = {"mnli": 3, "stsb": 1}.get(task, 2)
    parts = [
        pa.table({"split": [split] * size, f"{row}-2": list_column(np.resize(np.eye(width), (size, width)))})
        for split, size in sizes.items()
    ]
    write_shard(Path("data/results") / task / "predictions.arrow", pa.concat_tables(parts))
    made_up_scores({row: made_up_method(0.8)}).write(Path("data/results") / task / "scores.json")
