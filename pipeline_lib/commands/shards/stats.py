"""``distill shards stats``: distributions over a set's rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.terminal import say_json
from pipeline_lib.commands.shards.options import (
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

    from pipeline_lib.inspection.statistics import Figures, Numbers

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
    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.inspection.statistics import figures

    rows, names = open_set(folder, params)
    result = figures(rows, names, wanted_rows(rows, names, rule, label))
    if as_json:
        say_json(_as_json(rows.name, result), indent=2)
        return
    console = SafeConsole()
    print_line(console, f"{rows.name}: {result.rows:,} rows", "bold")
    for name, numbers in result.numbers.items():
        print_numbers(console, name, numbers)
    _print_counts(console, "labels", result.labels)
    _print_counts(console, "teacher's answers", result.answers)
    right, both = result.agreeing
    if both:
        text = f"\nThe teacher agrees with {right:,} of {both:,} labels, {right / both:.1%}."
        print_line(console, text)
    if result.rules:
        print_line(console, "\nrules (a row can have several)", "bold")
        _print_bars(console, result.rules, result.rows)
    _print_counts(console, "iterations", {str(n): c for n, c in sorted(result.iterations.items())})


def _as_json(name: str, figures: "Figures") -> dict[str, Any]:
    return {
        "set": name,
        "rows": figures.rows,
        "numbers": {name: number_json(numbers) for name, numbers in figures.numbers.items()},
        "labels": dict(figures.labels),
        "answers": dict(figures.answers),
        "agreeing": {"rows": figures.agreeing[0], "of": figures.agreeing[1]},
        "rules": dict(figures.rules),
        "iterations": {str(number): count for number, count in sorted(figures.iterations.items())},
    }


def number_json(numbers: "Numbers") -> dict[str, Any]:
    """Return a distribution as plain values."""
    extremes = {}
    if numbers.count:
        values = numbers.values
        extremes = {"least": float(values.min()), "mean": float(values.mean()), "greatest": float(values.max())}
    return {
        "unit": numbers.unit,
        "rows": numbers.count,
        "missing": numbers.missing,
        **extremes,
        "quantiles": {str(share): numbers.quantile(share) for share in QUANTILES},
        "bins": [{"from": low, "to": high, "rows": rows} for low, high, rows in numbers.bars()],
    }


def print_numbers(console: "Console", name: str, numbers: "Numbers") -> None:
    """Print a distribution: its figures, and a bar per bin."""
    print_line(console, f"\n{name}, {numbers.unit}", "bold")
    missing = f", none {numbers.missing:,}" if numbers.missing else ""
    if not numbers.count:
        print_line(console, f"  no values{missing}")
        return
    digits, values = 0 if numbers.whole else 3, numbers.values
    tail = numbers.quantile(0.95)
    print_line(
        console,
        f"  {values.min():.{digits}f} to {values.max():.{digits}f}, mean {values.mean():.3g}, median "
        f"{numbers.quantile(0.5):.{digits}f}, 95th percentile {tail:.{digits}f}{missing}",
    )
    bars = numbers.bars()
    ends = [(f"{low:.{digits}f}", f"{high:.{digits}f}") for low, high, _ in bars]
    wide = max(len(end) for pair in ends for end in pair)
    heads = [f"{low:>{wide}} – {high:>{wide}}" for low, high in ends]
    _print_bars(console, dict(zip(heads, (rows for *_, rows in bars), strict=True)))


def _print_counts(console: "Console", name: str, counts: Mapping[str, int]) -> None:
    if counts:
        print_line(console, f"\n{name}", "bold")
        _print_bars(console, counts)


def _print_bars(console: "Console", counts: Mapping[str, int], rows: int | None = None) -> None:
    most, total = max(counts.values()) or 1, rows or sum(counts.values()) or 1
    wide = max(len(head) for head in counts)
    numbers = max(len(f"{rows:,}") for rows in counts.values())
    for head, rows in counts.items():
        bar = "█" * round(BAR * rows / most) or ("▏" if rows else "")
        line = f"  {head:<{wide}}  {rows:>{numbers},} {rows / total:>6.1%}  {bar}"
        print_line(console, line.rstrip())


def print_line(console: "Console", text: str, style: str = "") -> None:
    """Print a line without wrapping it."""
    from rich.text import Text

    console.print(Text(text, style), highlight=False, soft_wrap=True)
