"""The sweeps: each turns the parameters into those of a study, and defines its points.

A sweep starts from one distilled row of params.yaml and its undistilled baseline, and keeps their
task, teacher, student and optimisers.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_lib.base.errors import PotstillError

Raw = dict[str, Any]
SHARES = (0.2, 0.3, 0.5, 1.0)
SIZES = (1, 2, 5, 10, 20)
UNITS = (2, 4, 16, 64, 150, 300)
CURVE_SHARE = 0.3
PARTS = (8, 4, 2, 1)
"""Divisors of the number of Wikipedia's sentences."""


@dataclass(frozen=True)
class Point:
    """One student of a study: its line in the plot, its place on the axis, its task and its row.

    ``encoder`` is the one that it starts from, if the study shows its loss.
    """

    series: str
    place: float | str
    task: str
    method: str
    encoder: str | None = None


@dataclass(frozen=True)
class Study:
    """A sweep in full: the parameters to run, and which of their rows are the points.

    :ivar axis: what the places are, with their unit.
    :ivar scale: ``log`` | ``linear`` | ``category`` | ``epochs``; with the last, a point is a
        learning curve of dev scores after each epoch.
    """

    title: str
    source: str
    axis: str
    scale: str
    params: Raw
    points: list[Point]


@dataclass(frozen=True)
class Rows:
    """What a sweep starts from: the raw parameters, reduced to one task and two rows."""

    params: Raw
    task: str
    distilled: str
    baseline: str
    encoded: Raw
    """The task's rows that have the same baseline and start from an encoder."""

    @classmethod
    def of(cls, raw: Raw, task: str, distilled: str) -> "Rows":
        """Reduce ``raw`` to the task, the distilled row and its baseline."""
        for group, name in (("tasks", task), ("methods", distilled)):
            if name not in raw[group]:
                known = ", ".join(raw[group])
                raise PotstillError(f"{group}: no {name!r} in params.yaml; there are {known}.")
        baseline = raw["methods"][distilled]["baseline"]
        if baseline is None:
            raise PotstillError(
                f"methods.{distilled}.baseline: null. A study compares a distilled row with an "
                "undistilled one: name its row as the baseline, or choose another with --row."
            )
        for name in (baseline, distilled):
            start = raw["methods"][name]["start"]
            if start in raw["joint"]:
                raise PotstillError(
                    f"methods.{name}.start: {start} is trained on several tasks, and a study has "
                    "one. Choose another row with --row."
                )
            if start in raw["methods"] and start not in raw["encoders"]:
                raise PotstillError(
                    f"methods.{name}.start: {start} is another row, and a study has only a row and "
                    "its baseline. Choose another row with --row."
                )
        params = copy.deepcopy(raw)
        methods, task_rows = params["methods"], {"tasks": None}
        rows = {n: methods[n] | task_rows for n in (baseline, distilled)}
        encoded = {
            name: row | task_rows
            for name, row in methods.items()
            if row["start"] in params["encoders"] and row["baseline"] == baseline
            if row["tasks"] is None or task in row["tasks"]
        }
        params |= {"tasks": {task: params["tasks"][task]}, "methods": rows}
        params |= {"joint": {}, "retrieval": {}, "similarity": {}}
        params["teachers"] = {
            name: _of_any_name(teacher, task)
            for name, teacher in params["teachers"].items()
            if teacher["tasks"] is None or task in teacher["tasks"]
        }
        for encoder in params["encoders"].values():
            # Its corpus stays; of the tasks whose texts it adds, only the study's is kept.
            if "tasks" in encoder:
                encoder["tasks"] = {t: r for t, r in encoder["tasks"].items() if t == task}
        return cls(params, task, distilled, baseline, encoded)

    def finish(self, methods: Raw, **changes: Raw) -> Raw:
        """Return the parameters with these rows and changes, without what no row needs."""
        params = self.params | {"methods": methods} | changes
        starts = {row["start"] for row in methods.values()}
        params["encoders"] = {n: e for n, e in params["encoders"].items() if n in starts}
        params["catalogues"] = {}
        params["teachers"] = self._teachers(methods)
        recipes = {row["data"] for row in methods.values()}
        recipes |= {r for e in params["encoders"].values() for r in e.get("tasks", {}).values() if r}
        sets = params["transfer"].items()
        params["transfer"] = {n: recipe | {"tasks": None} for n, recipe in sets if n in recipes}
        pairs = any(t["source"]["kind"] == "neighbours" for t in params["tasks"].values())
        if not params["encoders"] and not pairs:
            params["wikipedia"] = None
        return params

    def _teachers(self, methods: Raw) -> Raw:
        """Return the teachers of these rows, and those whose answers they average."""
        known = self.params["teachers"]
        needed = [row.get("teacher") or next(iter(known)) for row in methods.values()]
        needed += [member for name in needed for member in known[name]["tuning"].get("of", [])]
        return {name: teacher for name, teacher in known.items() if name in needed}

    def row(self, name: str) -> Raw:
        """Return a copy of a row."""
        return copy.deepcopy(self.params["methods"][name])

    def on_originals(self) -> Raw:
        """Return the distilled row's objective on the baseline's data, trained as the baseline."""
        distilled = self.row(self.distilled)
        taught = {name: distilled[name] for name in ("objective", "teacher") if name in distilled}
        return self.row(self.baseline) | taught | {"baseline": self.baseline}


def ablation(rows: Rows) -> Study:
    """Labels, logits, then one rule after the other: Tang 2019 (thesis), table 3.3."""
    task, last = rows.task, rows.row(rows.distilled)
    recipe = rows.params["transfer"][last["data"]]
    mask = recipe | {"p_pos": 0.0, "p_ngram": 0.0}
    sets = {"mask_only": mask, "mask_and_pos": recipe | {"p_ngram": 0.0}}
    methods = {
        rows.baseline: rows.row(rows.baseline),
        "logits": rows.on_originals(),
        "masking": last | {"data": "mask_only"},
        "pos": last | {"data": "mask_and_pos"},
        rows.distilled: last,
    }
    names = ("labels", "logits", "+ masking", "+ POS", "+ n-grams")
    points = [Point("student", name, task, method) for name, method in zip(names, methods, strict=True)]
    title = f"What each step adds: {task}"
    params = rows.finish(methods, transfer=rows.params["transfer"] | sets)
    return Study(title, "thesis, table 3.3", "training", "category", params, points)


def size(rows: Rows) -> Study:
    """Accuracy against the size of the transfer set: Tang 2019 (thesis), figure 3.3."""
    task, last = rows.task, rows.row(rows.distilled)
    tasks = {task: rows.params["tasks"][task] | {"augment": {"n_iter": max(SIZES) - 1, "cap": None}}}
    sweep = {f"times_{times}": last | {"iterations": times - 1} for times in SIZES}
    params = rows.finish({rows.baseline: rows.row(rows.baseline), **sweep}, tasks=tasks)
    points = [Point("distilled", times, task, name) for times, name in zip(SIZES, sweep, strict=True)]
    points += [Point("labels alone", times, task, rows.baseline) for times in SIZES]
    axis = "size of the transfer set (× the corpus)"
    title = f"Size of the transfer set: {task}"
    return Study(title, "thesis, figure 3.3", axis, "log", params, points)


def hidden(rows: Rows) -> Study:
    """Accuracy against hidden units, distilled and not: Tang 2019 (thesis), figure 3.3."""
    params, task = rows.params, rows.task
    student = params["methods"][rows.distilled]["student"]
    if "hidden" not in params["students"][student]:
        raise PotstillError(f"students.{student}: has no hidden units. Choose a row with an LSTM with --row.")
    for name in (rows.baseline, rows.distilled):
        if (start := params["methods"][name]["start"]) in params["encoders"]:
            raise PotstillError(
                f"methods.{name}.start: {start} is an encoder of one size, and this study has "
                "students of several. Choose another row with --row."
            )
    points, methods, students = [], {}, {}
    for units in UNITS:
        students[f"units_{units}"] = params["students"][student] | {"hidden": units}
        for series, row in (("labels alone", rows.baseline), ("distilled", rows.distilled)):
            name = f"{row}_{units}"
            baseline = f"{rows.baseline}_{units}" if row == rows.distilled else None
            methods[name] = rows.row(row) | {"student": f"units_{units}", "baseline": baseline}
            points.append(Point(series, units, task, name))
    params = rows.finish(methods, students=students)
    axis = "LSTM units per direction"
    title = f"Size of the student: {task}"
    return Study(title, "thesis, figure 3.3", axis, "log", params, points)


def fractions(rows: Rows) -> Study:
    """Accuracy against the share of the training set: SRA, table 3."""
    params, task = rows.params, rows.task
    methods = {rows.baseline: rows.row(rows.baseline)}
    names = ["labels alone", *rows.encoded]
    if rows.distilled not in rows.encoded:
        methods |= {"logits": rows.on_originals(), rows.distilled: rows.row(rows.distilled)}
        names[1:1] = ["logits", "logits on the transfer set"]
    methods |= rows.encoded
    tasks, encoders = _of_shares(params, task, SHARES)
    points = [
        Point(series, 100 * share, name, method)
        for share, name in zip(SHARES, tasks, strict=True)
        for series, method in zip(names, methods, strict=True)
    ]
    fixed = all(teacher["tuning"]["kind"] == "finished" for teacher in params["teachers"].values())
    axis = f"share of the training set (%), teacher fine-tuned on {'all' if fixed else 'the same'}"
    title = f"Share of the training data: {task}"
    params = rows.finish(methods, tasks=tasks, encoders=encoders)
    return Study(title, "SRA, table 3", axis, "linear", params, points)


def _of_any_name(teacher: Raw, task: str) -> Raw:
    """Return a teacher of one task as that of whatever tasks and recipes a study makes of it."""
    tuning = copy.deepcopy(teacher["tuning"])
    if "checkpoint" in tuning:
        tuning["checkpoint"] = tuning["checkpoint"].replace("{task}", task)
    if "files" in tuning:
        tuning["files"] = [path.replace("{task}", task) for path in tuning["files"]]
    return teacher | {"tasks": None, "data": None, "tuning": tuning}


def _of_shares(params: Raw, task: str, shares: Sequence[float]) -> tuple[Raw, Raw]:
    """Return a task per share of a task's training set, and the encoders, of the last of these.

    An encoder uses no labels: its corpus is the same for every share.
    """
    tasks = {
        f"{task}_{share:.0%}".replace("%", ""): params["tasks"][task] | {"train_fraction": share} for share in shares
    }
    encoders = {}
    for name, encoder in params["encoders"].items():
        texts = {[*tasks][-1]: r for t, r in encoder.get("tasks", {}).items() if t == task}
        encoders[name] = encoder | ({"tasks": texts} if "tasks" in encoder else {})
    return tasks, encoders


def wikipedia(rows: Rows) -> Study:
    """Loss and accuracy against the number of Wikipedia's sentences: SRA, table 4."""
    task, row = rows.task, rows.row(rows.distilled)
    encoder = rows.params["encoders"].get(row["start"])
    if encoder is None:
        raise PotstillError(
            f"methods.{rows.distilled}.start: {row['start']} is not an encoder. Choose a row that "
            "starts from one with --row."
        )
    sentences = rows.params["wikipedia"]["sentences"]
    counts = [sentences // part for part in PARTS]
    encoders = {f"first_{count}": encoder | {"wikipedia": count} for count in counts}
    methods = {rows.baseline: rows.row(rows.baseline)}
    methods |= {f"{rows.distilled}_{c}": row | {"start": f"first_{c}"} for c in counts}
    points = [Point("from an encoder", count, task, f"{rows.distilled}_{count}", f"first_{count}") for count in counts]
    points += [Point("labels alone", count, task, rows.baseline) for count in counts]
    title = f"Sentences of Wikipedia: {task}"
    params = rows.finish(methods, encoders=encoders)
    return Study(title, "SRA, table 4", "sentences of Wikipedia", "log", params, points)


def curves(rows: Rows) -> Study:
    """Dev scores after each epoch, on part of the training set and on all: SRA, figure 2."""
    params, task = rows.params, rows.task
    methods = {name: rows.row(name) for name in (rows.baseline, rows.distilled)}
    by_epoch = {"evaluate_every": None}
    optimisers = {n: o | by_epoch for n, o in params["optimisers"].items()}
    shares = (CURVE_SHARE, 1.0)
    tasks, encoders = _of_shares(params, task, shares)
    points = [
        Point(f"{method}, {share:.0%}", 0, name, method)
        for share, name in zip(shares, tasks, strict=True)
        for method in methods
    ]
    params = rows.finish(methods, tasks=tasks, encoders=encoders, optimisers=optimisers)
    return Study(f"Learning curves: {task}", "SRA, figure 2", "epoch", "epochs", params, points)


SWEEPS: dict[str, Callable[[Rows], Study]] = {
    "ablation": ablation,
    "size": size,
    "hidden": hidden,
    "fractions": fractions,
    "wikipedia": wikipedia,
    "curves": curves,
}
"""Study name to sweep."""
