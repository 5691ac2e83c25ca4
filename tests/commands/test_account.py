"""``distill results --account``: the records of stages, added up."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.workspace import make_workspace
from tests.kit.made_up import made_up_method, made_up_scores

from .running import distill, write_params

RECORD = {"command": "x", "started": "2026-01-02T03:04:05+00:00"}
ON_CARD = {"accelerators": ["NVIDIA H100 80GB HBM3"]}


def write_records(**more: Any) -> None:
    make_workspace(Path("."), False)
    counts = {
        "rows": {"computed": 6000, "reused": 1234},
        "tokens": {"computed": 1_234_567, "reused": 50_000},
        "shards": {"computed": 6, "reused": 3},
        "trainings": {"computed": 3, "reused": 0},
    }
    of_first = {"seconds": 120.0, "counts": counts, "peak_bytes": 3 * 2**30, "processor": "A CPU"}
    write_json(Layout().stage_record("precompute@movies"), RECORD | of_first | more)
    write_json(Layout().stage_record("report"), RECORD | {"seconds": 60.0, "counts": {}})


def cells(printed: str, stage: str) -> list[str]:
    [line] = [line for line in printed.splitlines() if line.strip().startswith(stage)]
    return line.split()


def test_time_work_and_memory_of_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    make_workspace(Path("."), False)
    assert "no stage ran here yet" in distill("results", "--account")
    write_records()
    printed = distill("results", "--account")
    heads = "Stage Seconds Rows Rows/s Tokens, k Tokens/s Trained Found MiB"
    assert cells(printed, "Stage") == heads.split()  # no accelerator
    figures = "precompute@movies 120 6,000 50 1,235 10,288 3 25 % 3,072"
    assert cells(printed, "precompute@movies") == figures.split()
    assert cells(printed, "report") == ["report", "60"]
    total = "3 min 0 s in all, 6,000 rows and 1,234,567 tokens computed"
    assert f"{total}, on A CPU" in printed
    assert max(map(len, printed.splitlines()[:-1])) <= 100


def test_the_accelerator_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    write_records(**ON_CARD)
    printed = distill("results", "--account")
    # More than 100 columns hold: the second half is a table of its own.
    *table, _ = printed.splitlines()
    assert max(map(len, table)) <= 100 and "…" not in printed
    assert " precompute@movies  3,072  NVIDIA H100 80GB HBM3" in map(str.rstrip, table)
    assert "on A CPU, NVIDIA H100 80GB HBM3" in printed
    found = json.loads(distill("results", "--account", "--json"))
    assert found["seconds"] == 180.0
    first, second = found["runs"]
    assert [run["stage"] for run in (first, second)] == ["precompute@movies", "report"]
    assert {key: first[key] for key in ON_CARD} == ON_CARD
    assert [second[key] for key in ("peak_bytes", *ON_CARD)] == [None, None]


def test_the_totals_are_a_line_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    write_records(**ON_CARD)
    write_params()
    made_up_scores({"bilstm": made_up_method(0.8)}).write(Layout().scores("movies"))
    work = "6,000 rows and 1,234,567 tokens computed"
    line = f"The stages' last runs: 3 min 0 s in all, {work}, on A CPU, NVIDIA H100 80GB HBM3."
    assert distill("results").splitlines()[-1] == line
