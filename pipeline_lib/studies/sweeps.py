"""The sweeps: each turns the parameters into those of a study, and says what its points are.

A sweep starts from one distilled row of params.yaml and from the undistilled row that is its
baseline; task, teacher, student and optimisers stay theirs.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline_lib.errors import DistilleryError

Raw = dict[str, Any]
SHARES = (0.2, 0.3, 0.5, 1.0)
SIZES = (1, 2, 5, 10, 20)
UNITS = (2, 4, 16, 64, 150, 300)


@dataclass(frozen=True)
class Point:
    """One student of a study: its line in the plot, its place on the axis, and where it stands."""

    series: str
    place: float | str
    task: str
    method: str


@dataclass(frozen=True)
class Study:
    """A sweep, spelled out: parameters to run, and which of their rows are the points.

    :ivar axis: what the places are, with their unit; :ivar scale: ``log`` | ``linear`` |
        ``category``.
    """

    title: str
    source: str
    axis: str
    scale: str
    params: Raw
    points: list[Point]


@dataclass(frozen=True)
class Rows:
    """What a sweep starts from: the raw parameters, cut down to one task and two rows."""

    params: Raw
    task: str
    distilled: str
    baseline: str

    @classmethod
    def of(cls, raw: Raw, task: str, distilled: str) -> "Rows":
        """Cut ``raw`` down to the task, the distilled row and its baseline.

        :raises DistilleryError: if there is no such task or row, or the row has no baseline.
        """
        for group, name in (("tasks", task), ("methods", distilled)):
            if name not in raw[group]:
                known = ", ".join(raw[group])
                raise DistilleryError(f"{group}: no {name!r} in params.yaml; there are {known}.")
        baseline = raw["methods"][distilled]["baseline"]
        if baseline is None:
            raise DistilleryError(
                f"methods.{distilled}.baseline: null. A study compares a distilled row with an "
                "undistilled one: name its row as the baseline, or choose another with --row."
            )
        params = copy.deepcopy(raw)
        params["tasks"] = {task: params["tasks"][task]}
        params["methods"] = {n: params["methods"][n] for n in (baseline, distilled)}
        recipes = {row["data"] for row in params["methods"].values()}
        params["transfer"] = {n: params["transfer"][n] | {"tasks": None} for n in recipes}
        return cls(params, task, distilled, baseline)

    def row(self, name: str) -> Raw:
        """Return a copy of a row."""
        return copy.deepcopy(self.params["methods"][name])

    def on_originals(self) -> Raw:
        """Return the distilled row's objective on the baseline's data, trained as the baseline."""
        return self.row(self.baseline) | {
            "objective": self.row(self.distilled)["objective"],
            "baseline": self.baseline,
        }


def ablation(rows: Rows) -> Study:
    """Labels, logits, then the rules one by one: Tang 2019 (thesis), table 3.3."""
    params, task = rows.params, rows.task
    last = rows.row(rows.distilled)
    recipe = params["transfer"][last["data"]]
    mask = recipe | {"p_pos": 0.0, "p_ngram": 0.0}
    params["transfer"] |= {"mask_only": mask, "mask_and_pos": recipe | {"p_ngram": 0.0}}
    params["methods"] = {
        rows.baseline: rows.row(rows.baseline),
        "logits": rows.on_originals(),
        "masking": last | {"data": "mask_only"},
        "pos": last | {"data": "mask_and_pos"},
        rows.distilled: last,
    }
    names = ("labels", "logits", "+ masking", "+ POS", "+ n-grams")
    points = [
        Point("student", name, task, method)
        for name, method in zip(names, params["methods"], strict=True)
    ]
    title = f"What each step adds: {task}"
    return Study(title, "thesis, table 3.3", "training", "category", params, points)


def size(rows: Rows) -> Study:
    """Accuracy against the size of the transfer set: Tang 2019 (thesis), figure 3.3."""
    params, task, last = rows.params, rows.task, rows.row(rows.distilled)
    params["tasks"][task]["augment"] = {"n_iter": max(SIZES) - 1, "cap": None}
    sweep = {f"times_{times}": last | {"iterations": times - 1} for times in SIZES}
    params["methods"] = {rows.baseline: rows.row(rows.baseline), **sweep}
    points = [
        Point("distilled", times, task, name) for times, name in zip(SIZES, sweep, strict=True)
    ]
    points += [Point("labels alone", times, task, rows.baseline) for times in SIZES]
    axis = "size of the transfer set (× the corpus)"
    title = f"Size of the transfer set: {task}"
    return Study(title, "thesis, figure 3.3", axis, "log", params, points)


def hidden(rows: Rows) -> Study:
    """Accuracy against hidden units, distilled and not: Tang 2019 (thesis), figure 3.3."""
    params, task = rows.params, rows.task
    student = params["methods"][rows.distilled]["student"]
    if "hidden" not in params["students"][student]:
        raise DistilleryError(
            f"students.{student}: has no hidden units. Choose the row of an LSTM with --row."
        )
    points, methods, students = [], {}, {}
    for units in UNITS:
        students[f"units_{units}"] = params["students"][student] | {"hidden": units}
        for series, row in (("labels alone", rows.baseline), ("distilled", rows.distilled)):
            name = f"{row}_{units}"
            baseline = f"{rows.baseline}_{units}" if row == rows.distilled else None
            methods[name] = rows.row(row) | {"student": f"units_{units}", "baseline": baseline}
            points.append(Point(series, units, task, name))
    params |= {"students": students, "methods": methods}
    axis = "LSTM units per direction"
    title = f"Size of the student: {task}"
    return Study(title, "thesis, figure 3.3", axis, "log", params, points)


def fractions(rows: Rows) -> Study:
    """Accuracy against the share of the training set: SRA, table 3."""
    params, task = rows.params, rows.task
    methods = {
        rows.baseline: rows.row(rows.baseline),
        "logits": rows.on_originals(),
        rows.distilled: rows.row(rows.distilled),
    }
    tasks = {
        f"{task}_{share:.0%}".replace("%", ""): params["tasks"][task] | {"train_fraction": share}
        for share in SHARES
    }
    names = ("labels alone", "logits", "logits on the transfer set")
    points = [
        Point(series, 100 * share, name, method)
        for share, name in zip(SHARES, tasks, strict=True)
        for series, method in zip(names, methods, strict=True)
    ]
    params |= {"tasks": tasks, "methods": methods}
    axis = "share of the training set (%), teacher fine-tuned on the same"
    title = f"Share of the training data: {task}"
    return Study(title, "SRA, table 3", axis, "linear", params, points)


SWEEPS: dict[str, Callable[[Rows], Study]] = {
    "ablation": ablation,
    "size": size,
    "hidden": hidden,
    "fractions": fractions,
}
"""Study name to the sweep that spells it out."""
