"""The page's checks, which pass or fail, each with what was found and what was expected."""

from collections.abc import Iterator
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record
from pipeline_lib.base.layout import Layout
from pipeline_lib.results.schema import MethodScores, TaskScores
from pipeline_lib.results.splits import shared_line
from pipeline_lib.results.table import p_value, percent, signed

Check = dict[str, Any]
"""``check``, ``found``, ``wanted`` (what was expected), and ``holds`` (whether it passed)."""
SIGNIFICANT = 0.05
"""A gain is significant below this p, corrected for the table's comparisons."""


def task_checks(task: str, scores: TaskScores, layout: Layout) -> list[Check]:
    """Return the checks of one task's data, teachers and methods."""
    shared, splits = shared_line(scores.shared_texts), [scores.decisive_split, *scores.further_splits]
    return [
        _check("No text is in two splits", shared or "none", "none", not shared),
        *_alignment(task, layout),
        *_answers(scores),
        *(check for split in splits for check in (*_gains(scores, split), *_routes(scores, split))),
    ]


def _check(check: str, result: str, expected: str, holds: bool) -> Check:
    return {"check": check, "found": result, "wanted": expected, "holds": holds}


def _alignment(task: str, layout: Layout) -> Iterator[Check]:
    for path in sorted(layout.all_outputs(task).rglob("alignment.json")):
        try:
            proof = read_record(path)
            rows, equal = proof["rows"], proof["rows_with_equal_key"]
        except (PotstillError, KeyError):
            continue
        flipped = proof.get("flipped_argmax", 0)
        teacher, texts = path.parts[-3:-1]
        result = f"{equal:,} of {rows:,} do"
        if "recomputed_rows" in proof:
            result += f"; of {proof['recomputed_rows']:,} computed again, {flipped} differ"
        check = f"The answers of {teacher} to {texts} belong to their texts"
        yield _check(check, result, "all do, none differs", equal == rows and not flipped)


def _answers(scores: TaskScores) -> Iterator[Check]:
    for name, teacher in scores.teachers.items():
        missing = sum(teacher.unanswered.values())
        result = f"{missing:,} held-out rows without an answer"
        yield _check(f"Teacher {name} answered every row", result, "0", not missing)


def _best(scores: TaskScores) -> dict[str, MethodScores]:
    """Return the best student on dev by its name; those of others would alarm without a reason."""
    best = scores.best_on_dev()
    return {} if best is None else {best: scores.methods[best]}


def _gains(scores: TaskScores, split: str) -> Iterator[Check]:
    for name, method in _best(scores).items():
        gain = method.gain[split]
        if gain is None:
            continue
        result, holds = f"{signed(gain.difference)} points", False
        if gain.low is None or gain.high is None or gain.p_holm is None:
            result += ", one seed"
        else:
            result += f" [{signed(gain.low)}, {signed(gain.high)}], p {p_value(gain.p_holm)}"
            # The interval is for this comparison alone; p is corrected for all in the table.
            holds = gain.low > 0 and gain.p_holm < SIGNIFICANT
        yield _check(
            f"{name} is better than {method.baseline} on {split}",
            result,
            f"interval above 0, p (Holm) below {SIGNIFICANT}",
            holds,
        )


def _routes(scores: TaskScores, split: str) -> Iterator[Check]:
    for name, method in _best(scores).items():
        agreement = method.routing and method.routing.agreement[split]
        if agreement is None:
            continue
        yield _check(
            f"{name}, where it may answer alone, answers as its teacher on {split}",
            f"{percent(agreement)} %, alone on {percent(1 - method.routing.best.routed[split])} %",
            f"at least {percent(method.routing.figure)} %",
            agreement >= method.routing.figure,
        )
