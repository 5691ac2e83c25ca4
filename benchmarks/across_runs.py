"""Gains of a row over another of another run, with intervals that do not pair their examples.

Two runs scored the same test set, but only their scores were kept.  The examples' errors then count twice, as if each
row had a test set of its own, so that an interval is wider than that of one run.

    python benchmarks/across_runs.py sra bilstm_sra sra_words bilstm_wide --name sra_same_words
"""

import json
import math
from typing import Annotated, Any

import typer
from harness import RESULTS, Name, Out, facts, table, write_results
from scipy.stats import t

Arg = typer.Argument


def main(
    run: Annotated[str, Arg(help="A result of glue_table.py.")],
    row: Annotated[str, Arg(help="A row of it.")],
    base_run: Annotated[str, Arg(help="Another result.")],
    base_row: Annotated[str, Arg(help="The row of it to compare with.")],
    name: Name = "across_runs",
    out: Out = RESULTS,
) -> None:
    """Compare and write the results."""
    ours, base = (json.loads((RESULTS / f"{file}.json").read_text("utf-8"))["tasks"] for file in (run, base_run))
    gains = {task: _gain(ours[task], row, base[task], base_row) for task in sorted({*ours} & {*base})}
    content = {"facts": facts(("scipy",), 1, 1), "row": f"{run} {row}", "baseline": f"{base_run} {base_row}"}
    cells = [[task, *(f"{100 * value:.1f}" for value in gain.values())] for task, gain in gains.items()]
    write_results(
        name, content | {"tasks": gains}, table(["task", "row", "baseline", "gain", "low", "high"], cells), out
    )


def _gain(ours: dict[str, Any], row: str, base: dict[str, Any], base_row: str) -> dict[str, float]:
    """Return both means, the gain and its 95 % interval: Welch's t over seeds, with the examples' variance added."""
    sides = [(task, task["methods"][name], name) for task, name in ((ours, row), (base, base_row))]
    seeds = [(method["std"] ** 2 / len(method["seeds"]), len(method["seeds"]) - 1) for _, method, _ in sides]
    variance = sum(of_seeds for of_seeds, _ in seeds) + sum(_error(task, name) ** 2 for task, _, name in sides)
    freedom = variance**2 / sum(of_seeds**2 / degrees for of_seeds, degrees in seeds)
    half = float(t.ppf(0.975, freedom)) * math.sqrt(variance)
    means = [method["mean"] for _, method, _ in sides]
    gain = means[0] - means[1]
    values = {"row": means[0], "baseline": means[1], "gain": gain, "low": gain - half, "high": gain + half}
    return {key: round(value, 6) for key, value in values.items()}


def _error(task: dict[str, Any], name: str) -> float:
    """Return the standard error of a score over examples: of accuracy, F1 by the delta method, or Pearson's r."""
    score, rows = task["methods"][name]["mean"], task["scored_rows"]
    if task["metric"] == "accuracy":
        return math.sqrt(score * (1 - score) / rows)
    if task["metric"] == "pearson":
        return (1 - score**2) / math.sqrt(rows)
    # F1 = 2a / (2a + b), for shares of true positives, a, and of errors, b.
    b = 1 - task["other_metrics"]["accuracy"][name]
    a = score * b / (2 * (1 - score))
    by_a, by_b = 2 * b / (2 * a + b) ** 2, -2 * a / (2 * a + b) ** 2
    return math.sqrt((by_a**2 * a * (1 - a) + by_b**2 * b * (1 - b) - 2 * by_a * by_b * a * b) / rows)


if __name__ == "__main__":
    typer.run(main)
