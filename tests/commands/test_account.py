"""``distill account``: the records of stages, added up."""

import json
from pathlib import Path

from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.workspace import make_workspace

from .running import distill

RECORD = {"command": "x", "started": "2026-01-02T03:04:05+00:00"}


def write_records() -> None:
    """Write the records of two stages; the second is of an earlier version."""
    make_workspace(Path("."), False)
    counts = {
        "rows": {"computed": 6000, "reused": 1234},
        "shards": {"computed": 6, "reused": 2},
        "trainings": {"computed": 3, "reused": 0},
    }
    more = {"seconds": 120.0, "counts": counts, "peak_bytes": 3 * 2**30, "processor": "A CPU"}
    write_json(Layout().stage_record("precompute@movies"), RECORD | more)
    write_json(Layout().stage_record("report"), RECORD | {"seconds": 60.0, "counts": {}})


def test_time_rows_memory_and_money_of_each_stage() -> None:
    write_records()
    printed = distill("account", "--price", "20")
    [line] = [line for line in printed.splitlines() if "precompute@movies" in line]
    for part in ("120", "6,000", "1,234", "50", "3", "3072"):
        assert part in line
    assert "3 min 0 s in all, at a price of 1.00, on A CPU" in printed
    assert "report" in printed


def test_the_same_as_json() -> None:
    write_records()
    found = json.loads(distill("account", "--json", "--price", "20"))
    assert found["cost"] == 1.0 and found["seconds"] == 180.0
    assert [run["stage"] for run in found["runs"]] == ["precompute@movies", "report"]
    assert found["runs"][1]["peak_bytes"] is None


def test_nothing_ran() -> None:
    make_workspace(Path("."), False)
    assert "no stage ran here yet" in distill("account")
