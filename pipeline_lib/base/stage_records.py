"""When each stage last ran here, how long it took, and how much of its work was reused.

The record is not one of DVC's outputs and decides nothing: a stage that DVC skips keeps that of its last run.
"""

import functools
import resource
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import cpu_name, used_accelerators

STARTED = time.time()
"""When this process began to import the library; heavy imports are part of a stage's time."""
_counts: dict[str, dict[str, int]] = {}
_names: set[tuple[str, str]] = set()
_accelerators: set[str] = set()


def count(kind: str, reused: bool, name: str | None = None, amount: int = 1) -> None:
    """Count a piece of work as computed now, or as reused.

    :param kind: of work: ``shards``, their ``rows`` and ``tokens``, or ``trainings``.
    :param name: identifies the piece, if it could otherwise be counted twice.
    """
    if name is not None and (kind, name) in _names:
        return
    _names.add((kind, name or ""))
    counter = _counts.setdefault(kind, {"computed": 0, "reused": 0})
    counter["reused" if reused else "computed"] += amount


def used_in_worker(accelerators: Sequence[str]) -> None:
    """Note the accelerators that a worker process has used, by name."""
    _accelerators.update(accelerators)


def recorded(main: Callable[..., None], argv: Sequence[str] = sys.argv) -> Callable[..., None]:
    """Return ``main`` wrapped to leave a record of the stage when it succeeds."""

    @functools.wraps(main)
    def run(**options: Any) -> None:
        main(**options)
        record = {
            "command": f"python -m pipeline_lib.stages.{' '.join([Path(argv[0]).stem, *argv[1:]])}",
            "started": datetime.fromtimestamp(STARTED, UTC).isoformat(timespec="seconds"),
            "seconds": round(time.time() - STARTED, 2),
            "counts": _counts,
            "peak_bytes": peak_bytes(),
            "processor": cpu_name(),
            "accelerators": sorted(_accelerators.union(used_accelerators())),
        }
        write_json(Layout().stage_record(stage_name(argv, options)), record)

    return run


def peak_bytes() -> int:
    """Return the most memory that this process, or one that it waited for, has had."""
    used = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in used)


def stage_name(argv: Sequence[str], options: dict[str, Any]) -> str:
    """Return the stage's name as DVC spells it: ``train@movies`` for the task ``movies``."""
    items = ("task", "row", "teacher", "encoder", "joint")
    item = next((options[name] for name in items if options.get(name)), None)
    return Path(argv[0]).stem + (f"@{item}" if item else "")


def read_stage_record(path: Path) -> dict[str, Any] | None:
    """Return a stage's record, or None if there is none or it cannot be read.

    What those of earlier versions lack is None.
    """
    later = dict.fromkeys(("peak_bytes", "processor", "accelerators"))
    try:
        return later | read_record(path, "command", "started", "seconds", "counts")
    except PotstillError:
        return None
