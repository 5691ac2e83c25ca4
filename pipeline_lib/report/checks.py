"""Checks that pass or fail, each with what was found and what was expected."""

from collections.abc import Iterator
from typing import Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import read_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.evaluation.results import TaskScores
from pipeline_lib.report.rows import p_value, percent, signed
from pipeline_lib.report.splits import shared_line

Check = dict[str, Any]
"""``check``, ``found``, ``wanted`` (what was expected), and ``holds`` (whether it passed)."""
SIGNIFICANT = 0.05
"""A gain is significant below this p, corrected for the table's comparisons."""


def task_checks(task: str, scores: TaskScores, layout: Layout) -> list[Check]:
    """Return the checks of one task's data, teachers and methods."""
    shared = shared_line(scores.shared_texts)
    own = _check("No text is in two splits", shared or "none", "none", not shared)
    return [own, *_alignment(task, layout), *_answers(scores), *_gains(scores), *_routes(scores)]


def _check(check: str, found: str, wanted: str, holds: bool) -> Check:
    return {"check": check, "found": found, "wanted": wanted, "holds": holds}


def _alignment(task: str, layout: Layout) -> Iterator[Check]:
    for path in sorted(layout.all_outputs(task).rglob("alignment.json")):
        try:
            proof = read_json(path)
            rows, equal = proof["rows"], proof["rows_with_equal_key"]
        except (DistilleryError, KeyError):
            continue
        flipped = proof.get("flipped_argmax", 0)
        name = path.parent.relative_to(layout.all_outputs(task)).as_posix()
        found = f"{equal:,} of {rows:,} rows have their input's key"
        if "recomputed_rows" in proof:
            found += f"; of {proof['recomputed_rows']:,} recomputed, {flipped} changed answer"
        yield _check(
            f"Outputs {name} belong to their rows", found, "all, 0", equal == rows and not flipped
        )


def _answers(scores: TaskScores) -> Iterator[Check]:
    for name, own in scores.teachers.items():
        missing = sum(own.unanswered.values())
        found = f"{missing:,} held-out rows without an answer"
        yield _check(f"Teacher {name} answered every row", found, "0", not missing)


def _gains(scores: TaskScores) -> Iterator[Check]:
    split = scores.decisive_split
    for name, own in scores.methods.items():
        gain = own.gain[split]
        if gain is None:
            continue
        found, holds = f"{signed(gain.difference)} points", False
        if gain.low is None or gain.high is None or gain.p_holm is None:
            found += ", one seed"
        else:
            found += f" [{signed(gain.low)}, {signed(gain.high)}], p {p_value(gain.p_holm)}"
            # The interval is for this comparison alone; p is corrected for all in the table.
            holds = gain.low > 0 and gain.p_holm < SIGNIFICANT
        yield _check(
            f"{name} is better than {own.baseline} on {split}",
            found,
            f"interval above 0, p (Holm) below {SIGNIFICANT}",
            holds,
        )


def _routes(scores: TaskScores) -> Iterator[Check]:
    split = scores.decisive_split
    for name, own in scores.methods.items():
        found = own.routing and own.routing.best.accuracy[split]
        if not found:
            continue
        teacher, loss = own.routing.teacher_accuracy[split], own.routing.max_loss
        yield _check(
            f"{name}, routing to its teacher, keeps the teacher's accuracy on {split}",
            f"{percent(found.mean)} at {percent(own.routing.best.routed[split])} % routed",
            f"at least {percent(teacher - loss)}",
            found.mean >= teacher - loss,
        )
