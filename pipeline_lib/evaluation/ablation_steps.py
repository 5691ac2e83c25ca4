"""The gain of each step of a method: a row against one of the same student that differs in a single thing."""

from collections.abc import Mapping

from pipeline_lib.evaluation.heldout import System
from pipeline_lib.results.schema import Changed


def previous(name: str, systems: Mapping[str, System]) -> tuple[str, Changed] | None:
    """Return the row that a row is a step from, and what changed; None if there is none.

    It is the nearest row above in params.yaml that has the same student and differs in one thing.
    The optimiser only counts if nothing else differs: another transfer set needs other steps.
    """
    above = list(systems)[: list(systems).index(name)]
    steps = ((other, _changed(systems[name], systems[other])) for other in reversed(above))
    return next((step for step in steps if step[1] is not None), None)


def _changed(system: System, other: System) -> Changed | None:
    if system.method.student != other.method.student:
        return None
    if system.learned_from == "gold" and other.learned_from != "gold":
        # Leaving the teacher out is not a step of a method.
        return None

    def differ(*keys: str) -> bool:
        return any(getattr(system.method, key) != getattr(other.method, key) for key in keys)

    # A row trained on labels has a teacher for comparison only, and learns nothing from it.
    taught = "gold" not in (system.learned_from, other.learned_from)
    differences: dict[Changed, bool] = {
        "start": differ("start"),
        "answers": differ("objective", "teacher_runs") or (taught and system.teacher != other.teacher),
        "sentences": differ("data", "iterations"),
        "decision": differ("threshold", "temperature"),
    }
    changed = [name for name, differs in differences.items() if differs]
    if not changed:
        return "optimiser" if differ("optimiser") else None
    return changed[0] if len(changed) == 1 else None
