"""One table of the GLUE tasks that `dvc repro` has finished with benchmarks/glue_heldout.yaml.

    python benchmarks/glue_table.py                              # after dvc repro
    python benchmarks/glue_table.py --data data --data elsewhere/data
    python benchmarks/glue_table.py --name sst2_rows             # after sst2_rows.yaml: every row

Writes results/NAME.{json,md}; papers/tables.py puts the papers' gains beside them.  It only reads
data/results; glue.md says how they were made.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
from harness import RESULTS, Name, Out, facts, table, write_results

from pipeline_lib.base.processor import usable_cores
from pipeline_lib.results.schema import Gain, TaskScores

SUBSETS = ("qqp", "qqp_20", "mnli", "qnli")
"""The tasks that were subsets when the stored results were made."""


def main(
    data: Annotated[
        list[Path] | None, typer.Option(help="Folders with results, by default data; later ones win.")
    ] = None,
    name: Name = "glue",
    out: Out = RESULTS,
) -> None:
    """Write the table of all finished tasks."""
    scores: dict[str, TaskScores] = {}
    for folder in data or [Path("data")]:
        for path in sorted((folder / "results").glob("*/scores.json")):
            scores[path.parent.name] = TaskScores.read(path)
    tasks = {task: _task(scored, scored.decisive_split) for task, scored in scores.items()}
    further = {
        f"{task} {split}": _task(scored, split) for task, scored in scores.items() for split in scored.further_splits
    }
    if not tasks:
        raise typer.BadParameter("no scores in these folders. Run `dvc repro evaluate` first.")
    gains = {
        method: [task["methods"][method]["gain"] for task in tasks.values() if _has(task, method)]
        for method in _methods(tasks)
    }
    gains = {method: values for method, values in gains.items() if None not in values}
    results = {
        "facts": facts(("torch", "transformers"), usable_cores(), 1),
        "tasks": tasks,
        # A second set of a task's rows does not count in the means over the tasks.
        "further": further,
        "mean_gain": {method: round(sum(v) / len(v), 6) for method, v in gains.items()},
        "tasks_with_gain": {method: sum(g > 0 for g in v) for method, v in gains.items()},
        "tasks_with_row": {method: len(v) for method, v in gains.items()},
    }
    write_results(name, results, _lines(results), out)


def _task(scores: TaskScores, split: str) -> dict[str, Any]:
    metric = scores.metric
    teachers = {name: teacher_scores.scores[split] for name, teacher_scores in scores.teachers.items()}
    return {
        "metric": metric,
        "split": split,
        "train_rows": scores.rows["train"],
        "scored_rows": scores.rows[split],
        "floor": scores.floor.scores[split][metric],
        "teachers": {name: values[metric] for name, values in teachers.items() if values},
        "other_metrics": {
            name: {teacher: values[name] for teacher, values in teachers.items() if values}
            | {method: method_scores.scores[split][name].mean for method, method_scores in scores.methods.items()}
            for name in scores.metrics
            if name != metric
        },
        "methods": {
            name: {
                "mean": method_scores.scores[split][metric].mean,
                "std": method_scores.scores[split][metric].std,
                "seeds": sorted(method_scores.scores[split][metric].by_seed),
                "baseline": method_scores.baseline,
                **_gain(method_scores.gain[split]),
                "training": method_scores.training.model_dump(),
            }
            for name, method_scores in scores.methods.items()
        },
    }


def _gain(gain: Gain | None) -> dict[str, Any]:
    if gain is None:
        return {"gain": None, "low": None, "high": None, "p": None}
    return {"gain": gain.difference, "low": gain.low, "high": gain.high, "p": gain.p_holm}


def _methods(tasks: dict[str, Any]) -> list[str]:
    """Return all rows: some have tasks of their own."""
    return list(dict.fromkeys(name for task in tasks.values() for name in task["methods"]))


def _teachers(tasks: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for task in tasks.values() for name in task["teachers"]))


def _baseline(tasks: dict[str, Any], method: str) -> str:
    return next(task["methods"][method]["baseline"] for task in tasks.values() if _has(task, method))


def _has(task: dict[str, Any], method: str) -> bool:
    return method in task["methods"]


def _lines(results: dict[str, Any]) -> list[str]:
    tasks, sets = results["tasks"], results["tasks"] | results["further"]
    names = [f"{t} (subset)" if t.split()[0] in SUBSETS else t for t in sets]
    columns = zip(names, sets.values(), strict=True)
    head = ["system", *[f"{name}, {task['metric']}" for name, task in columns]]
    rows = [["constant prediction", *[f"{100 * task['floor']:.1f}" for task in sets.values()]]]
    for teacher in _teachers(tasks):
        cells = [task["teachers"].get(teacher) for task in sets.values()]
        rows.append([f"teacher {teacher}", *["" if c is None else f"{100 * c:.1f}" for c in cells]])
    for method in _methods(tasks):
        rows.append([method, *[_cell(task["methods"].get(method)) for task in sets.values()]])
    gained, had = results["tasks_with_gain"], results["tasks_with_row"]
    gains = [
        (name, _baseline(tasks, name), f"{100 * gain:+.1f}", f"{gained[name]} of {had[name]}")
        for name, gain in results["mean_gain"].items()
    ]
    seeds = ", ".join(next(iter(next(iter(tasks.values()))["methods"].values()))["seeds"])
    return [
        f"# Scores and gains: {', '.join(tasks)}",
        "",
        f"First metric of each task in percent on {_scored_on(tasks)}; mean ± standard deviation over seeds {seeds}; "
        "in brackets the gain over the row's baseline and its 95 % interval over seeds and examples (* p < 0.05, "
        "corrected for the task's rows after Holm). A subset's score is not comparable with published ones.",
        "",
        *table(head, rows),
        "",
        "Gain over the baseline, mean over the tasks, and on how many it is positive:",
        "",
        *table(["method", "baseline", "mean gain", "positive"], gains),
        "",
        *_other_metrics(sets),
        *_rates(tasks),
        "Rows to train on and scored: "
        + ", ".join(f"{n} {t['train_rows']:,}, {t['scored_rows']:,}" for n, t in sets.items())
        + ".",
    ]


def _scored_on(tasks: dict[str, Any]) -> str:
    if {task["split"] for task in tasks.values()} == {"test"}:
        return "the test split, which was not used for any selection"
    return "the dev split, on which rates and best evaluations were also chosen"


def _rates(tasks: dict[str, Any]) -> list[str]:
    rows = [[method, *[_rate(task["methods"].get(method)) for task in tasks.values()]] for method in _methods(tasks)]
    return [
        "Learning rate, best on dev with the first seed; steps × batch of one training:",
        "",
        *table(["method", *tasks], rows),
        "",
    ]


def _rate(result: dict[str, Any] | None) -> str:
    if result is None:
        return "–"
    training = result["training"]
    return f"{training['learning_rate']:g}; {training['steps']:,} × {training['batch_size']}"


def _other_metrics(tasks: dict[str, Any]) -> list[str]:
    columns = [(t, m) for t, task in tasks.items() for m in task["other_metrics"]]
    if not columns:
        return []
    head = ["system", *[f"{task}, {metric}" for task, metric in columns]]
    scores = [tasks[task]["other_metrics"][metric] for task, metric in columns]
    rows = [
        [s, *[f"{100 * by_system[s]:.1f}" if s in by_system else "–" for by_system in scores]]
        for s in [*_teachers(tasks), *_methods(tasks)]
    ]
    return ["The tasks' other metrics:", "", *table(head, rows), ""]


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return "–"
    score = f"{100 * result['mean']:.1f} ± {100 * result['std']:.1f}"
    if result["gain"] is None:
        return score
    mark = "*" if result["p"] is not None and result["p"] < 0.05 else ""
    if result["low"] is None:
        return f"{score} ({100 * result['gain']:+.1f})"
    interval = f"[{100 * result['low']:+.1f}, {100 * result['high']:+.1f}]"
    return f"{score} ({100 * result['gain']:+.1f} {interval}{mark})"


if __name__ == "__main__":
    typer.run(main)
