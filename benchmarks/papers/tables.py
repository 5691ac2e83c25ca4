"""The four papers' result tables as printed, and the gains measured here beside theirs.

    python benchmarks/papers/tables.py            # writes tables.md beside this file
    python benchmarks/papers/tables.py --check    # fails if tables.md is not what this would write

The figures are in published.yaml, in percent; ours are in the files that ``benchmarks/glue_table.py`` wrote. A row is
compared with rows of the same names here, which have other teachers and sizes: compare gains, not scores.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from ruamel.yaml import YAML

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "results"
PAGE = FOLDER / "tables.md"
ALPHA = 0.05


class Table(NamedTuple):
    """A paper's table: figures by row, one for each column or None; see the head of published.yaml."""

    paper: str
    number: str
    columns: list[str]
    rows: dict[str, list[float | None]]
    baselines: dict[str, str]
    ours: dict[str, list[str]]


def read_published() -> tuple[dict[str, dict[str, Any]], list[Table]]:
    """Return the papers by key, and their tables in the order of the file."""
    content = YAML(typ="safe", pure=True).load((FOLDER / "published.yaml").read_text(encoding="utf-8"))
    tables = [
        Table(one["paper"], one["table"], one["columns"], one["rows"], one.get("baselines", {}), one.get("ours", {}))
        for one in content["tables"]
    ]
    return content["papers"], tables


def read_runs(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return the runs' scores by file and task, where ``mnli_mismatched`` counts as a task."""
    runs = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and "mean_gain" in content:
            further = {task.replace(" dev_", "_"): scores for task, scores in content.get("further", {}).items()}
            runs[path.stem] = content["tasks"] | further
    return runs


def compare(table: Table, runs: dict[str, dict[str, Any]]) -> Iterator[list[str]]:
    """Yield the cells of a line for each gain of the table that a run has measured too."""
    for row, baseline in table.baselines.items():
        for column, value, base in zip(table.columns, table.rows[row], table.rows[baseline], strict=True):
            task, measure = column.split()[:2]
            for run, tasks in runs.items() if value is not None and base is not None else ():
                if task not in tasks or tasks[task]["metric"] != measure:
                    continue
                for name in table.ours.get(row, []):
                    ours = tasks[task]["methods"].get(name, {})
                    # Older files have no name of the baseline: it was the undistilled row of the run.
                    over = {ours["baseline"]} if "baseline" in ours else {*tasks[task]["methods"]}
                    if ours.get("gain") is not None and over & {*table.ours.get(baseline, [])}:
                        printed, link = (
                            round(value - base, 2),
                            f"[{run}](../results/{run}.json), {tasks[task]['split']}",
                        )
                        yield [row, column, f"{printed:+g}", name, _gain(ours), verdict(printed, ours), link]


def verdict(printed: float, ours: dict[str, Any]) -> str:
    """Say how our gain, a fraction, compares with the printed one, in points."""
    if ours["p"] is None or ours["p"] >= ALPHA:
        return "not shown"
    gain, low, high = (100 * ours[name] for name in ("gain", "low", "high"))
    if gain * printed < 0:
        return "contrary"
    return "smaller" if max(abs(low), abs(high)) < abs(printed) else "reproduced"


def _gain(ours: dict[str, Any]) -> str:
    gain, *interval = (None if ours[name] is None else f"{100 * ours[name]:+.1f}" for name in ("gain", "low", "high"))
    return gain if None in interval else f"{gain} [{', '.join(interval)}]"


def page() -> str:
    """Return the page: each table as printed, and below it the gains that have a counterpart here."""
    papers, tables = read_published()
    runs = read_runs()
    lines = ["# The papers' tables, and the gains here", "", "Written by tables.py from published.yaml and ../results."]
    lines += [
        "Scores in percent, gains in points with a 95 % interval over seeds and examples; p corrected after Holm."
    ]
    for table in tables:
        paper = papers[table.paper]
        lines += ["", f"## {paper['authors']} {paper['year']}, table {table.number}", ""]
        rows = [[row, *("–" if v is None else f"{v:g}" for v in values)] for row, values in table.rows.items()]
        lines += _markdown(["row", *table.columns], rows)
        if compared := list(compare(table, runs)):
            head = ["row", "column", "paper's gain", "row here", "our gain", "verdict", "run and split"]
            lines += ["", *_markdown(head, compared)]
    return "\n".join(lines) + "\n"


def _markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"|{'|'.join(cells)}|" for cells in (head, ["---"] * len(head), *rows)]


def main(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if the page is old.")] = False,
) -> None:
    """Write tables.md."""
    if not check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        raise SystemExit(f"{PAGE}: not what its data say. Run `python benchmarks/papers/tables.py`.")


if __name__ == "__main__":
    typer.run(main)
