"""What the stages took when they last ran here: time, work, memory."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline_lib.results.table import Table

Run = Mapping[str, Any]
"""A stage's last run: its record, with ``stage`` and ``item`` (of its task or row, or None)."""
PIECES = ("shards", "trainings")
CAPTION = "Rows and tokens are those computed. Found: the part of shards and trainings reused."


def stage_runs(flow: Mapping[str, Any]) -> list[Run]:
    """Return the runs of all stages of :func:`~pipeline_lib.base.flow.read_flow`, in its order."""
    return [
        {"stage": stage["name"] + (f"@{run['item']}" if run["item"] else ""), **run}
        for stage in flow["stages"]
        for run in stage["runs"]
    ]


def account_table(runs: Sequence[Run], started: bool = False) -> Table:
    """Return a line per run; columns without a figure are left out."""
    columns = {
        "Started": [run["started"][:19].replace("T", " ") if started else "" for run in runs],
        "Seconds": [f"{run['seconds']:,.0f}" for run in runs],
        "Rows": [_number(computed(run, "rows")) for run in runs],
        "Rows/s": [_number(_rate(run, "rows")) for run in runs],
        "Tokens, k": [_number(computed(run, "tokens") / 1000) for run in runs],
        "Tokens/s": [_number(_rate(run, "tokens")) for run in runs],
        "Trained": [_number(computed(run, "trainings")) for run in runs],
        "Found": [_share(*reused([run])) for run in runs],
        "MiB": [_number((run["peak_bytes"] or 0) / 2**20) for run in runs],
        "Accelerator": [", ".join(run["accelerators"] or ()) for run in runs],
    }
    shown = {"Stage": [run["stage"] for run in runs]} | {head: cells for head, cells in columns.items() if any(cells)}
    lines = [list(line) for line in zip(*shown.values(), strict=True)]
    breaks = ([*shown].index("MiB"),) if "MiB" in shown else ()
    return Table("Last runs of the stages", [*shown], lines, [CAPTION], breaks)


def totals(runs: Sequence[Run]) -> str:
    """Return what all runs took together, in a line."""
    phrases = [f"{duration(sum(run['seconds'] for run in runs))} in all"]
    work = {kind: sum(computed(run, kind) for run in runs) for kind in ("rows", "tokens")}
    if any(work.values()):
        new = " and ".join(f"{amount:,} {kind}" for kind, amount in work.items() if amount)
        phrases.append(f"{new} computed")
    machines = {name for run in runs for name in (run["processor"], *(run["accelerators"] or ()))}
    if names := sorted(machines - {None}):
        phrases.append(f"on {', '.join(names)}")
    return ", ".join(phrases)


def duration(seconds: float) -> str:
    """Return a time as people say it: ``8 s``, ``2 min 5 s``, ``3 h 10 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def computed(run: Run, kind: str) -> int:
    """Return how many rows, tokens or trainings a run computed."""
    return run["counts"].get(kind, {}).get("computed", 0)


def reused(runs: Sequence[Run]) -> tuple[int, int]:
    """Return how many shards and trainings of these runs were found, and how many there were."""
    counts = [run["counts"].get(kind, {}) for run in runs for kind in PIECES]
    stored, new = (sum(count.get(key, 0) for count in counts) for key in ("reused", "computed"))
    return stored, stored + new


def _rate(run: Run, kind: str) -> float:
    return computed(run, kind) / run["seconds"] if run["seconds"] else 0.0


def _number(value: float) -> str:
    return f"{value:,.0f}" if value else ""


def _share(stored: int, whole: int) -> str:
    return f"{stored / whole:.0%}".replace("%", " %") if whole else ""
