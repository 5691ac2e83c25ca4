"""The kinds of tasks: what labels and outputs are, and all that follows from it; one module for each.

Whatever depends on the kind of a task asks its :class:`TaskKind` in :data:`KINDS`.  Elsewhere a kind is its name.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.classes import Classes
from pipeline_lib.base.kinds.kind import TaskKind, check_labels
from pipeline_lib.base.kinds.label_sets import LabelSets
from pipeline_lib.base.kinds.scores import Scores

if TYPE_CHECKING:
    import pyarrow as pa

KINDS: dict[str, TaskKind] = {kind.name: kind for kind in (Classes(), Scores(), LabelSets())}

TASK_KIND = "task_kind"
"""The key of a config.json with the name of a kind that nothing else tells."""


def register_kind(kind: TaskKind) -> None:
    """Add a kind, which a task's ``kind`` in params.yaml can then name.

    Its metrics and the type of its labels tell it from the others, so none has them too.
    """
    others = [other for name, other in KINDS.items() if name != kind.name]
    shared = [metric for other in others for metric in other.metrics if metric in kind.metrics]
    shared += [f"labels of type {kind.label_type(2)}" for other in others if other.holds(kind.label_type(2))]
    if shared:
        raise PotstillError(f"kind {kind.name}: another kind has {shared[0]} already. Give it its own.")
    KINDS[kind.name] = kind


def kind_of(metric: str) -> str:
    """Return the kind of task that a metric is for."""
    names = [name for name, kind in KINDS.items() if metric in kind.metrics]
    if not names:
        every = ", ".join(metric for kind in KINDS.values() for metric in kind.metrics)
        raise PotstillError(f"metric {metric!r}: take one of {every}.")
    return names[0]


def kind_of_labels(labels: "pa.ChunkedArray | pa.Array") -> str:
    """Return the kind of task whose column ``label`` this is."""
    return next((name for name, kind in KINDS.items() if kind.holds(labels.type)), Classes.name)


def label_array(column: "pa.ChunkedArray") -> np.ndarray:
    """Return a column of labels without nulls: int64 classes, float32 scores, or a uint8 for each of several."""
    return KINDS[kind_of_labels(column)].array(column)


def kind_of_model(outputs: Sequence[str], config: Mapping[str, Any]) -> str:
    """Return the kind of task that a model answers.

    Unless its configuration says it, a single output is a score, and several are alternatives.
    """
    if (name := config.get(TASK_KIND)) is not None:
        if name not in KINDS:
            raise PotstillError(f"a model of `kind: {name}`, which is not registered. Import the module that does so.")
        return name
    if len(outputs) == 1:
        return Scores.name
    stated = config.get("problem_type")
    return next((name for name, kind in KINDS.items() if kind.problem_type == stated), Classes.name)


def stated_kind(kind: str, outputs: Sequence[str]) -> dict[str, str]:
    """Return what a model's config.json must say, so that :func:`kind_of_model` finds its kind."""
    problem_type = {"problem_type": KINDS[kind].problem_type}
    for config in ({}, problem_type):
        if kind_of_model(outputs, config) == kind:
            return config
    return problem_type | {TASK_KIND: kind}


def score(metric: str, labels: np.ndarray | None, outputs: np.ndarray, positive: int = 1) -> float:
    """Return a metric of outputs, as a fraction.

    :param labels: None or negative where hidden; :param outputs: float (rows, outputs).
    """
    return KINDS[kind_of(metric)].score(metric, check_labels(labels, outputs), outputs, positive)
