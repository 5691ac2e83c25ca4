"""Adds a second task to a workspace without moving a row of the first.

Rows that both tasks can use are shared.  Where the new task needs another size or length, it gets a row of its own,
named after it, and the old row is left to the old tasks: so nothing of theirs runs again.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pipeline_lib.base.errors import PotstillError

SHARED = ("models", "transfer", "students", "optimisers", "encoders", "teachers", "methods")
"""Sections with rows, each after those that it refers to."""
RESTRICTED = ("transfer", "teachers", "methods")
"""Those whose rows are for all tasks, unless their `tasks` names some."""
REFERENCES = {
    "teachers": {"model": "models"},
    "students": {"model": "models"},
    "encoders": {"student": "students", "optimiser": "optimisers"},
    "methods": {
        **{"student": "students", "start": "encoders", "data": "transfer"},
        **{"optimiser": "optimisers"},
        **{"baseline": "methods", "teacher": "teachers"},
    },
}
"""Keys that hold the name of a row of another section."""
Names = dict[str, dict[str, str]]
"""By section: what a row of the new task is called in the workspace."""


def with_task(current: Mapping[str, Any], new: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Return the values of a parameter file with one more task.

    :param current: those that are there; :param new: those that `init` would write for the task.
    """
    if task in current["tasks"]:
        raise PotstillError(
            f"--add: there is a task {task} already. Choose another --name, or run this without "
            "--add to describe it anew."
        )
    values, names = deepcopy(dict(current)), Names()
    before = [*values["tasks"]]
    values["tasks"][task] = new["tasks"][task]
    values["wikipedia"] = values["wikipedia"] or new["wikipedia"]
    for section in SHARED:
        names[section] = {}
        if section == "transfer" and values["tagger"]["engine"] == "none":
            new = {**new, section: {n: r | ({"p_pos": 0.0} if "p_pos" in r else {}) for n, r in new[section].items()}}
        rows = {
            name: _renamed(section, row, names)
            for name, row in new[section].items()
            if section != "models" or name in _models_of(new)
        }
        added = {name for name, row in rows.items() if not _has(values[section], name, row)}
        names[section] |= {name: _free(values[section], name, task) for name in added}
        shared = rows.keys() - added
        for name, row in values[section].items():
            if section in RESTRICTED and row.get("tasks") is None and name not in shared:
                row["tasks"] = list(before)
            elif isinstance(row.get("tasks"), list) and name in shared:
                row["tasks"] = [*row["tasks"], task]
        for name in (name for name in rows if name in added):
            # A second time: a baseline may be a row of the same section.
            row = _renamed(section, new[section][name], names)
            restricted = {"tasks": [task]} if section in RESTRICTED and row.get("tasks") is None else {}
            values[section][names[section][name]] = row | restricted
    return values


def _models_of(new: Mapping[str, Any]) -> set[str]:
    rows = [*new["teachers"].values(), *new["students"].values()]
    return {row["model"] for row in rows if row.get("model")}


def _has(rows: Mapping[str, Any], name: str, row: Mapping[str, Any]) -> bool:
    """Whether there is such a row, for whatever tasks; an encoder learns from those it names."""
    present = rows.get(name)
    if present is None or isinstance(row.get("tasks"), dict):
        return False
    # null is what a key that is left out means.
    one, other = ({key: r[key] for key in r if key != "tasks" and r[key] is not None} for r in (present, row))
    return one == other


def _free(rows: Mapping[str, Any], name: str, task: str) -> str:
    return f"{name}_{task}" if name in rows else name


def _renamed(section: str, row: Any, names: Names) -> dict[str, Any]:
    """Return a row with the names that the rows it refers to have in the workspace."""
    references = REFERENCES.get(section, {})
    return {
        key: names.get(references[key], {}).get(value, value) if key in references else value
        for key, value in row.items()
    }
