"""Progress in a log: a line every so often, with rate and time left."""

import io
from types import SimpleNamespace

import pytest

from pipeline_lib.base import progress
from pipeline_lib.base.progress import show_progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_lines_in_a_log(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("teacher", "rows") as advance:
        clock.now += 10
        advance(1000, 4000)
        assert capsys.readouterr().out == ""
        clock.now += 10
        advance(2000, 4000, "shard 2")
        assert capsys.readouterr().out == "teacher: 2,000/4,000 100 rows/s, 20 s left shard 2\n"
        clock.now += 5
        advance(2500, 4000)
        assert capsys.readouterr().out == ""
        clock.now += 15
        advance(4000, 4000)
        assert capsys.readouterr().out == "teacher: 4,000/4,000 100 rows/s, 0 s left\n"


def test_the_rate_and_the_last_line(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("teacher", "rows") as advance:
        clock.now += 40
        # 3,000 of these were found in the store: only the rest says how fast the teacher is.
        advance(4000, 8000, counted=1000)
    assert capsys.readouterr().out == "teacher: 4,000/8,000 25 rows/s, 160 s left\n"
    # The last line comes at once even for nothing.
    with show_progress("teacher", "rows") as advance:
        advance(0, 0)
    assert capsys.readouterr().out == "teacher: 0/0 0.0 rows/s, 0 s left\n"


def test_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = progress.SafeConsole(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr(progress, "SafeConsole", lambda file: console)
    with show_progress("teacher", "rows") as advance:
        advance(30, 40, "shard 2")
    shown = screen.getvalue()
    assert "teacher" in shown and "30/40" in shown and "rows/s" in shown and "shard 2" in shown
