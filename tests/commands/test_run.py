"""``distill run``: what it shows of DVC's and the stages' lines, and of the time left."""

import io
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.workspace import make_workspace, shipped
from pipeline_lib.commands import run
from pipeline_lib.commands.planning.forecast import Forecast
from pipeline_lib.commands.planning.stages import planned_stages
from pipeline_lib.commands.run import Display
from pipeline_lib.results.account import duration

STAGES = {"fingerprint": 1.0, "prepare@movies": 10.0, "train@movies": 100.0, "report": 5.0}
BEFORE = {
    "fingerprint": set(),
    "prepare": {"fingerprint"},
    "train": {"prepare", "fingerprint"},
    "report": {"train", "prepare", "fingerprint"},
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Replace the clock of the display by one that a test sets."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(run, "time", clock)
    return clock


def _display() -> tuple[Display, io.StringIO]:
    screen = io.StringIO()
    console = Console(file=screen, soft_wrap=True, highlight=False, width=200)
    return Display(console, Forecast(dict(STAGES), BEFORE)), screen


LINES = [
    "Running stage 'fingerprint':",
    "> python -m pipeline_lib.stages.fingerprint",
    "Updating lock file 'dvc.lock'",
    "",
    "Running stage 'prepare@movies':",
    "> python -m pipeline_lib.stages.prepare --task movies",
    "movies: train 10, dev 2 rows",
    "Updating lock file 'dvc.lock'",
    "Stage 'train@movies' didn't change, skipping",
    "Running stage 'report':",
    "> python -m pipeline_lib.stages.report",
    "report: data/report/index.html",
    "To track the changes with git, run:",
    "\tgit add dvc.lock",
    "Use `dvc push` to send your updates to remote storage.",
]


def test_a_line_per_stage_that_did_something(clock: SimpleNamespace) -> None:
    display, screen = _display()
    for line in LINES:
        clock.now += 1.0
        display.line(line)
    display.end(0)
    printed = screen.getvalue().splitlines()
    assert [line.split()[0] for line in printed] == ["prepare@movies", "report"]
    assert "train 10, dev 2 rows" in printed[0] and "about" in printed[0]
    assert display.ran == ["prepare@movies", "report"]


def test_warnings_are_shown_below_their_stage(clock: SimpleNamespace) -> None:
    display, screen = _display()
    lines = ["warning: the answers are unrelated", "movies minilm: accuracy 0.85 on dev"]
    for line in ["Running stage 'train@movies':", *lines]:
        display.line(line)
    display.end(0)
    first, second = screen.getvalue().splitlines()
    assert "accuracy 0.85" in first and second.strip() == "warning: the answers are unrelated"


def test_a_stage_that_fails_shows_all_that_it_said(clock: SimpleNamespace) -> None:
    display, screen = _display()
    for line in ["Running stage 'train@movies':", "one line", "error: data is missing. Add it."]:
        display.line(line)
    display.line("ERROR: failed to reproduce 'train@movies': failed to run: python, exited with 1")
    display.end(255)
    printed = screen.getvalue()
    assert "train@movies failed" in printed and "one line" in printed
    assert "error: data is missing. Add it." in printed and "ERROR" not in printed
    # What DVC refuses before a stage is shown, and progress in words.
    display, screen = _display()
    display.line("ERROR: Unable to acquire lock.")
    display.end(255)
    assert "Unable to acquire lock" in screen.getvalue()
    display, screen = _display()
    display.line("Running stage 'train@movies':")
    clock.now = 40.0
    display.line("\x1e50\t100\t2 steps/s, 40 s left\tbilstm 1")
    assert screen.getvalue() == "train@movies: 50%, 2 steps/s, 40 s left\n"


def test_the_time_left_is_that_of_what_comes_after() -> None:
    forecast = Forecast(dict(STAGES), BEFORE)
    assert forecast.seconds_left("prepare@movies", 0.0, 2.0) == pytest.approx(8.0 + 105.0)
    # Half of it took a minute.
    assert forecast.seconds_left("train@movies", 0.5, 60.0) == pytest.approx(60.0 + 5.0)
    forecast.finish("prepare@movies", 40.0)
    forecast.skip("train@movies")
    assert forecast.seconds_left("report", 1.0, 5.0) == pytest.approx(0.0)
    # A machine four times slower than the table.
    forecast = Forecast({"a": 30.0, "b": 10.0}, {"a": set(), "b": {"a"}})
    forecast.finish("a", 120.0)
    assert forecast.seconds_left("b", 0.0, 0.0) == pytest.approx(40.0)
    assert [duration(s) for s in (0.4, 59.4, 125, 11_400)] == ["0 s", "59 s", "2 min 5 s", "3 h 10 min"]


def test_a_million_rows_take_what_rows_took_before(tmp_path: Path) -> None:
    params = {"tasks": {"a": {}, "b": {}, "c": {}}, "encoders": {}, "joint": {}}
    params |= {"refined": [], "retrieval": {}, "similarity": {}}

    def seconds(stage: str, kind: str, new: int) -> float:
        return Forecast.read(shipped("pipeline.yaml"), params, Layout(tmp_path)).seconds_of(stage, kind, new)

    # The default's 16,864 rows take 108 seconds; nothing takes less than starting.
    assert seconds("precompute@a", "rows", 1_686_400) == pytest.approx(10_800.0)
    assert seconds("precompute@a", "rows", 0) == 5.0
    record = {"command": "", "started": "", "seconds": 50.0}
    counts = {"rows": {"computed": 100, "reused": 900}, "trainings": {"computed": 1, "reused": 99}}
    write_json(Layout(tmp_path).stage_record("precompute@a"), record | {"counts": counts})
    assert seconds("precompute@a", "rows", 1000) == pytest.approx(500.0)
    assert seconds("precompute@b", "rows", 1000) == pytest.approx(500.0)
    # A stage that found all but a hundredth of its work took as long as it does to start.
    write_json(Layout(tmp_path).stage_record("train@a"), record | {"counts": counts})
    assert seconds("train@c", "trainings", 16) == pytest.approx(314.0)


def test_the_stages_of_a_workspace_are_forecast(tmp_path: Path) -> None:
    params = {"tasks": {"a": {}, "b": {}}, "encoders": {"sra": {}}, "joint": {}}
    params |= {"refined": [], "retrieval": {}, "similarity": {}}
    forecast = Forecast.read(shipped("pipeline.yaml"), params, Layout(tmp_path))
    assert {"train@a", "train@b", "pretrain@sra", "report"} <= forecast.expected.keys()
    assert not [name for name in forecast.expected if name.startswith(("index", "train_joint"))]
    assert len(forecast.expected) == 2 * 8 + 8
    # Nothing of one task waits for the other's own stages.
    alone = forecast.seconds_left("evaluate@a", 0.0, 0.0)
    usual = forecast.expected
    assert alone == pytest.approx(usual["evaluate@a"] + usual["measure_speed@a"] + usual["report"])


def test_another_users_table_of_states_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dvc.repo.Repo", refuse)
    with pytest.raises(PotstillError, match=r"readonly database\).* Set DVC_SITE_CACHE_DIR"):
        planned_stages()
