"""The rows that students are held against: regressions on labels, which every labelled task gets."""

from collections.abc import Mapping
from typing import Any

PENALTIES = [3.0e-2, 1.0e-2, 3.0e-3, 1.0e-3, 3.0e-4, 1.0e-4, 3.0e-5]
FIT = {"name": "lbfgs", "penalties": PENALTIES}
LINEAR = {"architecture": "regression", "max_words": 512}
STUDENTS = {
    "tfidf": LINEAR | {"mean": False, "ngrams": 2},
    "regression": LINEAR | {"ngrams": 2},
    "regression_of_pairs": LINEAR | {"ngrams": 0},
}
"""Of n-grams; of n-grams and the mean of word vectors; and of the comparison of two means."""
SECTIONS = ("tasks", "transfer", "students", "optimisers", "methods")


def with_yardsticks(values: Any) -> Any:
    """Return the mapping of params.yaml with a row for each yardstick of its tasks, unless ``yardsticks`` is false.

    A row, student or optimiser of the same name is left as it is; a student of another kind gets no row.
    """
    if not isinstance(values, dict) or values.get("yardsticks") is False:
        return values
    if not all(isinstance(values.get(section), dict) and values[section] for section in SECTIONS):
        return values
    rows = {}
    for name in STUDENTS:
        recipe, tasks = _labelled(values, pairs=name.endswith("_pairs"))
        if tasks and name not in values["methods"] and _is_linear(values["students"].get(name, LINEAR)):
            row = {"student": name, "start": "vectors", "data": recipe, "tasks": tasks}
            rows[name] = row | {"objective": {"labels": 1.0}, "optimiser": "yardstick"}
    added = {"methods": rows, "students": {name: STUDENTS[name] for name in rows}, "optimisers": {"yardstick": FIT}}
    more = {section: values[section] | _new(values[section], rows_of) for section, rows_of in added.items() if rows}
    return values | more


def _is_linear(student: Any) -> bool:
    return isinstance(student, dict) and student.get("architecture") == LINEAR["architecture"]


def _new(rows: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row for name, row in more.items() if name not in rows}


def _labelled(values: Mapping[str, Any], pairs: bool) -> tuple[str, list[str]]:
    """Return the first recipe that changes nothing, and its labelled tasks, of pairs or of single texts."""
    for recipe, settings in values["transfer"].items():
        if isinstance(settings, dict) and settings.keys() <= {"tasks"}:
            covered = settings.get("tasks") or [*values["tasks"]]
            tasks = {name: values["tasks"].get(name) for name in covered}
            return recipe, [name for name, task in tasks.items() if _is_labelled(task) and _is_pair(task) == pairs]
    return "", []


def _is_labelled(task: Any) -> bool:
    return isinstance(task, dict) and isinstance(task.get("label"), str | list)


def _is_pair(task: Mapping[str, Any]) -> bool:
    return isinstance(task.get("text"), list) and len(task["text"]) == 2
