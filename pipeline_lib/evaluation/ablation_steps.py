"""The gain of each step of a method: a row against one that differs in a single thing.

A baseline shows what all steps gain together.  Between two rows of one student that differ in only
one thing, the gain is due to that thing.
"""

from collections.abc import Mapping
from typing import Any

from pipeline_lib.evaluation.heldout import System
from pipeline_lib.params import Method
from pipeline_lib.results.schema import Changed


def previous(name: str, systems: Mapping[str, System]) -> tuple[str, Changed] | None:
    """Return the row that a row is a step from, and what changed; None if there is none.

    It is the nearest row above in params.yaml that has the same student and differs in one thing.
    The optimiser only counts if nothing else differs: another transfer set needs other steps.

    :param systems: by name, in the order of params.yaml.
    """
    system = systems[name]
    above = list(systems)[: list(systems).index(name)]
    for other in reversed(above):
        changed = _changed(system, systems[other])
        if changed is not None:
            return other, changed
    return None


def _changed(system: System, other: System) -> Changed | None:
    if system.method.student != other.method.student:
        return None
    if system.learned_from == "gold" and other.learned_from != "gold":
        # Leaving the teacher out is not a step of a method.
        return None
    first, second = system.method, other.method
    # A row trained on labels has a teacher for comparison only, and learns nothing from it.
    taught = "gold" not in (system.learned_from, other.learned_from)
    differences: dict[Changed, bool] = {
        "start": first.start != second.start,
        "answers": _answers(first) != _answers(second) or (taught and system.teacher != other.teacher),
        "sentences": _sentences(first) != _sentences(second),
        "decision": _decision(first) != _decision(second),
    }
    changed = [name for name, differs in differences.items() if differs]
    if not changed:
        return None if first.optimiser == second.optimiser else "optimiser"
    return changed[0] if len(changed) == 1 else None


def _answers(row: Method) -> tuple[Any, ...]:
    return row.objective, row.teacher_runs


def _sentences(row: Method) -> tuple[Any, ...]:
    return row.data, row.iterations


def _decision(row: Method) -> tuple[Any, ...]:
    return row.threshold, row.temperature
