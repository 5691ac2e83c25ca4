"""``distill shards stats``: distributions over a set's rows."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from pipeline_lib.commands.shard_options import (
    PARAMS,
    AsJson,
    OneLabel,
    OneRule,
    ParamsFile,
    SetFolder,
    open_set,
    wanted_rows,
)

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline_lib.inspection.figures import Figures, Numbers

EXAMPLE = "Example: distill shards stats data/transfer/movies/full"
BAR = 30
"""Length of the longest bar, in characters."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def stats(
    folder: SetFolder,
    rule: OneRule = None,
    label: OneLabel = None,
    as_json: AsJson = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Show the distributions of lengths, labels, rules, and the teacher's answers and entropy.

    Name either inputs or outputs; they are joined. For a regression, labels and answers are scores;
    for sentences with vectors, the vectors' lengths are shown.
    """
    from rich.console import Console

    from pipeline_lib.inspection.figures import figures

    rows, names = open_set(folder, params)
    found = figures(rows, names, wanted_rows(rows, names, rule, label))
    if as_json:
        typer.echo(json.dumps(_as_json(rows.name, found), indent=2, ensure_ascii=False))
        return
    console = Console()
    say(console, f"{rows.name}: {found.rows:,} rows", "bold")
    for name, numbers in found.numbers.items():
        print_numbers(console, name, numbers)
    _print_counts(console, "labels", found.labels)
    _print_counts(console, "teacher's answers", found.answers)
    right, both = found.agreeing
    if both:
        text = f"\nThe teacher agrees with {right:,} of {both:,} labels, {right / both:.1%}."
        say(console, text)
    _print_rules(console, found)
    _print_counts(console, "iterations", {str(n): c for n, c in sorted(found.iterations.items())})


def _as_json(name: str, found: "Figures") -> dict[str, Any]:
    return {
        "set": name,
        "rows": found.rows,
        "numbers": {name: number_json(own) for name, own in found.numbers.items()},
        "labels": dict(found.labels),
        "answers": dict(found.answers),
        "agreeing": {"rows": found.agreeing[0], "of": found.agreeing[1]},
        "rules": {
            rule: {"rows": own.rows, "mean_length": own.mean_length, "entropy": own.mean_entropy}
            for rule, own in found.rules.items()
        },
        "iterations": {str(number): count for number, count in sorted(found.iterations.items())},
    }


def number_json(own: "Numbers") -> dict[str, Any]:
    """Return a distribution as plain values."""
    known = {"least": own.low, "mean": own.mean, "greatest": own.high} if own.count else {}
    return {
        "unit": own.unit,
        "rows": own.count,
        "missing": own.missing,
        **known,
        "quantiles": {str(share): own.quantile(share) for share in QUANTILES},
        "bins": [{"from": low, "to": high, "rows": rows} for low, high, rows in own.bars()],
    }


def print_numbers(console: "Console", name: str, own: "Numbers") -> None:
    """Print a distribution: its figures, and a bar per bin."""
    say(console, f"\n{name}, {own.unit}", "bold")
    missing = f", none {own.missing:,}" if own.missing else ""
    if not own.count:
        say(console, f"  no values{missing}")
        return
    digits = 0 if own.whole else 3
    tail = own.quantile(0.95)
    say(
        console,
        f"  {own.low:.{digits}f} to {own.high:.{digits}f}, mean {own.mean:.3g}, median "
        f"{own.quantile(0.5):.{digits}f}, 95th percentile {tail:.{digits}f}{missing}",
    )
    bars = own.bars()
    ends = [(f"{low:.{digits}f}", f"{high:.{digits}f}") for low, high, _ in bars]
    wide = max(len(end) for pair in ends for end in pair)
    heads = [f"{low:>{wide}} – {high:>{wide}}" for low, high in ends]
    _print_bars(console, dict(zip(heads, (rows for *_, rows in bars), strict=True)))


def _print_counts(console: "Console", name: str, counts: Mapping[str, int]) -> None:
    if counts:
        say(console, f"\n{name}", "bold")
        _print_bars(console, counts)


def _print_rules(console: "Console", found: "Figures") -> None:
    if not found.rules:
        return
    say(console, "\nrules (a row can have several)", "bold")
    _print_bars(console, {rule: own.rows for rule, own in found.rules.items()}, found.rows)
    for rule, own in found.rules.items():
        sure = "" if own.mean_entropy is None else f", entropy {own.mean_entropy:.3f} bits"
        if own.rows:
            say(console, f"  {rule}: on average {own.mean_length:.1f} words{sure}", "dim")


def _print_bars(console: "Console", counts: Mapping[str, int], rows: int | None = None) -> None:
    """Print a bar per entry, with its count and its share of all rows."""
    most, total = max(counts.values()) or 1, rows or sum(counts.values()) or 1
    wide = max(len(head) for head in counts)
    numbers = max(len(f"{rows:,}") for rows in counts.values())
    for head, rows in counts.items():
        bar = "█" * round(BAR * rows / most) or ("▏" if rows else "")
        line = f"  {head:<{wide}}  {rows:>{numbers},} {rows / total:>6.1%}  {bar}"
        say(console, line.rstrip())


def say(console: "Console", text: str, style: str = "") -> None:
    """Print a line without wrapping it."""
    from rich.text import Text

    console.print(Text(text, style), highlight=False, soft_wrap=True)
