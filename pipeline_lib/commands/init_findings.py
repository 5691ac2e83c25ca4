"""Prints what ``distill init`` found in the files: how it reads them, and what is odd."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pipeline_lib.onboarding.findings import Findings, Place
    from pipeline_lib.onboarding.proposal import Inspection
    from pipeline_lib.onboarding.understanding import TaskGuess

SHOWN = 8
"""How many row numbers or classes are listed before the rest is only counted."""
FEW = 10
"""A class with fewer rows than this in a split cannot be scored well there."""


def show(console: "Console", inspection: "Inspection") -> None:
    """Print how the files are read, and what is odd in them."""
    from rich.text import Text

    lines = [*_lines(inspection)]
    width = max(10, *(len(title) for title, _ in lines)) + 1
    for title, line in lines:
        text = Text().append(f"{title:<{width}}", "bold").append(line)
        console.print(text, highlight=False, soft_wrap=True)
    if inspection.findings.classes and any(inspection.findings.classes.values()):
        console.print(_class_table(inspection.findings))
    for line in _oddities(inspection):
        text = Text().append(f"{'odd':<{width}}", "bold yellow").append(line)
        console.print(text, highlight=False, soft_wrap=True)


def _lines(inspection: "Inspection") -> Iterator[tuple[str, str]]:
    """Yield the lines that say how the files are read, each with its title."""
    understood, findings = inspection.understood, inspection.findings
    for split, content in understood.contents.items():
        paths = ", ".join(map(str, content.paths))
        note = " (no header line)" if content.is_nameless else ""
        names = f"{', '.join(content.names)}{note}"
        yield split, f"{paths}: {content.table.num_rows:,} rows, {names}"
    median, most, longest = findings.words
    words = f"words: {median} (median), {most} (95th percentile), {longest} (longest)"
    pair = " (a pair)" if len(understood.text) == 2 else ""
    yield "text", f"{', '.join(understood.text)}{pair}; {words}"
    yield "label", _label(understood)
    positive = understood.f1_class
    names = {"f1": f"f1 (of {positive})"} if positive is not None else {}
    yield "metrics", ", ".join(names.get(name, name) for name in understood.metrics)
    rows = ", ".join(f"{name} {count:,}" for name, count in findings.rows.items())
    shares = understood.split
    drawn = [f"{name} {shares[name]:.0%}" for name in ("dev", "test") if shares and shares[name]]
    note = f" (drawn: {', '.join(drawn)}; identical texts stay together)" if drawn else " (given)"
    yield "splits", rows + note
    for split in findings.hidden:
        yield split, "no labels: predicted, not scored"
    if inspection.unlabelled is not None:
        yield "more texts", _more_texts(inspection)
    if inspection.skipped:
        yield "skipped", f"{_some(list(map(str, inspection.skipped)))}: unknown file suffixes"
    teacher = inspection.teacher
    how = {"single": "fine-tuned here", "finished": "as it is", "answers": "answers in a file"}
    yield "teacher", f"{teacher.path or teacher.model}, {how[teacher.kind]}"


def _more_texts(inspection: "Inspection") -> str:
    further, paths = (
        inspection.findings.further,
        [str(path) for path in inspection.unlabelled.paths],
    )
    counts = ((further.known, "among the rows above"), (further.repeated, "repeated"))
    left_out = [f"{n:,} {why}" for n, why in (*counts, (further.empty, "empty")) if n]
    note = f" (left out: {', '.join(left_out)})" if left_out else ""
    return f"{_some(paths)}: {further.texts:,}, answered by the teacher{note}"


def _label(understood: "TaskGuess") -> str:
    label = understood.label
    column = "none" if label is None else label
    if isinstance(label, dict):
        column = ", ".join(f"{name} in {split}" for split, name in label.items())
    if understood.kind == "regression":
        low, high = understood.labels["min"], understood.labels["max"]
        return f"{column}: regression, {low:g} to {high:g}"
    named = [
        name if meaning in ([name], []) else f"{name} ({_meaning(meaning)})"
        for name, meaning in understood.labels.items()
    ]
    return f"{column}: classification, {len(named)} classes: {_some(named)}"


def _meaning(meaning: Any) -> str:
    if isinstance(meaning, dict):
        return f"{meaning['min']:g} to {meaning['max']:g}"
    return ", ".join(meaning)


def _class_table(findings: "Findings") -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("Class", overflow="fold")
    for split in findings.classes:
        table.add_column(split, justify="right")
    totals: dict[str, int] = {}
    for counts in findings.classes.values():
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
    order = sorted(totals, key=totals.__getitem__, reverse=True)
    for name in [*order[: 2 * SHOWN], *(order[-1:] if len(order) > 2 * SHOWN else ())]:
        cells = (f"{counts.get(name, 0):,}" for counts in findings.classes.values())
        table.add_row(Text(name), *cells)
    if len(order) > 2 * SHOWN + 1:
        table.caption = f"and {len(order) - 2 * SHOWN - 1} more between the last two"
    return table


def _oddities(inspection: "Inspection") -> Iterator[str]:
    from pipeline_lib.onboarding.findings import LONELY

    findings = inspection.findings
    for odd in findings.odd:
        what = "left out" if inspection.leaves_out or not odd.stops else "cannot be used"
        what = "kept" if odd.reason == LONELY else what
        yield f"{odd.split}: {_count(odd.places)} {odd.reason} ({what}): {named_rows(odd.places)}"
    for split in ("dev", "test"):
        counts = findings.classes.get(split, {})
        few = [f"{name} ({count})" for name, count in counts.items() if count < FEW]
        if few:
            yield f"{split}: classes with too few rows to be scored well: {_some(few)}"
    if findings.repeated:
        other = f", {findings.conflicts:,} under another label" if findings.conflicts else ""
        yield f"repeated texts within a split: {findings.repeated:,}{other}"
    for overlap in findings.shared:
        other = f", {overlap.other_label:,} under another label" if overlap.other_label else ""
        where = f"{overlap.earlier}{other}: {named_rows(overlap.places)}"
        yield f"{overlap.split}: {overlap.rows:,} also in {where}"


def _count(places: Sequence["Place"]) -> str:
    return "1 row" if len(places) == 1 else f"{len(places):,} rows"


def named_rows(places: Sequence["Place"]) -> str:
    """List the first rows by file and number, and count the rest."""
    by_file: dict[Path, list[str]] = {}
    for path, row in places[:SHOWN]:
        by_file.setdefault(path, []).append(str(row))
    named = "; ".join(f"{path} row {', '.join(rows)}" for path, rows in by_file.items())
    more = len(places) - SHOWN
    return f"{named} and {more:,} more" if more > 0 else named


def _some(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
