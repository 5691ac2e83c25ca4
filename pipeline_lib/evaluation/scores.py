"""The scores of one task: teacher, floor and every method, as one JSON that is the same everywhere.

Pure functions of labels and logits.  All numbers are rounded to six decimals, so that the file is
reproducible to the byte; nothing that is timed stands in it.  Labels that are hidden are not
scored: ``"hidden"`` stands in place of the numbers.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline_lib.evaluation.heldout import Heldout
from pipeline_lib.evaluation.significance import compare, holm
from pipeline_lib.params import Evaluate, Method, Task
from pipeline_lib.tasks.metrics import agreement, decide, score

SELECTION = (
    "Each run's best evaluation, and the teacher's best epoch and learning rate, were chosen on "
    "dev: dev scores are optimistic, test scores took part in no choice."
)


@dataclass(frozen=True)
class System:
    """One method's trained students.

    ``logits`` holds, by split and seed, float32 of shape (rows, classes); ``parameters`` the
    numbers ``with_embeddings`` and ``without_embeddings``; ``training`` what they were trained
    with: see :func:`~pipeline_lib.evaluation.evaluate.read_training`.
    """

    method: Method
    logits: dict[str, dict[int, np.ndarray]]
    parameters: dict[str, int]
    training: dict[str, Any]

    def predictions(self, split: str) -> np.ndarray:
        """Return answers, classes or scores, shape (seeds, rows)."""
        return np.stack([decide(outputs) for outputs in self.logits[split].values()])


def task_scores(
    task: Task,
    heldout: dict[str, Heldout],
    train_labels: np.ndarray,
    teacher_parameters: dict[str, int],
    systems: dict[str, System],
    evaluate: Evaluate,
) -> dict[str, Any]:
    """Return everything that is scored about one task; see the module for its rules.

    :param train_labels: int, shape (rows,): their most frequent class is the floor.
    :param systems: by method name, in the order of params.yaml.
    """
    scored = _Scorer(task, heldout, evaluate)
    rows = {"train": len(train_labels)} | {name: len(part.texts) for name, part in heldout.items()}
    return _rounded(
        {
            "metric": task.metrics[0],
            "metrics": task.metrics,
            "f1_label": task.f1_label,
            "labels": task.label_names,
            "rows": rows,
            "test": _state(heldout.get("test")),
            "selection": SELECTION,
            "evaluate": evaluate.model_dump(),
            "floor": scored.floor(train_labels),
            "teacher": scored.teacher() | {"parameters": teacher_parameters},
            "methods": scored.methods(systems, teacher_parameters),
        }
    )


def _state(test: Heldout | None) -> str:
    if test is None:
        return "absent"
    return "hidden" if test.labels is None else "labelled"


class _Scorer:
    """Holds what every score of the task needs."""

    def __init__(self, task: Task, heldout: dict[str, Heldout], evaluate: Evaluate) -> None:
        self.metrics = task.metrics
        self.positive = task.positive_class
        self.names = task.label_names
        self.heldout = heldout
        self.evaluate = evaluate
        self.splits = list(heldout)

    def floor(self, train_labels: np.ndarray) -> dict[str, Any]:
        """Score the constant answer: the training set's most frequent class, or mean score."""
        if train_labels.dtype.kind == "f":
            return {"answer": float(train_labels.mean())} | {
                split: "hidden"
                if self.heldout[split].labels is None
                else dict.fromkeys(self.metrics, 0.0)
                for split in self.splits
            }
        majority = int(np.bincount(train_labels, minlength=len(self.names)).argmax())
        result: dict[str, Any] = {"answer": self.names[majority]}
        for split in self.splits:
            part = self.heldout[split]
            constant = np.zeros_like(part.teacher)
            constant[:, majority] = 1.0
            result[split] = self._scores(split, constant) or "hidden"
        return result

    def teacher(self) -> dict[str, Any]:
        """Score the teacher's stored logits."""
        result = {s: self._scores(s, self.heldout[s].teacher) or "hidden" for s in self.splits}
        return result | {"precision": {s: self.heldout[s].precision for s in self.splits}}

    def methods(
        self, systems: dict[str, System], teacher_parameters: dict[str, int]
    ) -> dict[str, Any]:
        """Score every method; each split's p values are corrected for the table's rows."""
        found = {
            name: self._method(system, systems, teacher_parameters)
            for name, system in systems.items()
        }
        for split in self.splits:
            gains = {n: o["gain"][split] for n, o in found.items() if _is_tested(o["gain"][split])}
            for name, p in holm({name: gain["p"] for name, gain in gains.items()}).items():
                gains[name]["p_holm"] = p
        return found

    def _method(
        self, system: System, systems: dict[str, System], teacher_parameters: dict[str, int]
    ) -> dict[str, Any]:
        """Score one method against the labels, the teacher and its baseline."""
        method = system.method
        baseline = systems.get(method.baseline) if method.baseline else None
        result = {
            "student": method.student,
            "data": method.data,
            "baseline": method.baseline,
            "training": system.training,
            "agreement": {split: self._agreement(system, split) for split in self.splits},
            "against_teacher": {split: self._to_teacher(system, split) for split in self.splits},
            "gain": {split: self._gain(system, baseline, split) for split in self.splits},
            "parameters": system.parameters,
            # How many times smaller than the teacher.
            "ratio": {
                kind: teacher_parameters[kind] / max(count, 1)
                for kind, count in system.parameters.items()
            },
        }
        return result | {split: self._by_seed(system, split) for split in self.splits}

    def _scores(self, split: str, outputs: np.ndarray) -> dict[str, float] | None:
        labels = self.heldout[split].labels
        if labels is None:
            return None
        return {metric: score(metric, labels, outputs, self.positive) for metric in self.metrics}

    def _by_seed(self, system: System, split: str) -> dict[str, Any] | str:
        by_seed = {str(s): self._scores(split, o) for s, o in system.logits[split].items()}
        if None in by_seed.values():
            return "hidden"
        return {
            metric: _summary({seed: scores[metric] for seed, scores in by_seed.items()})
            for metric in self.metrics
        }

    def _agreement(self, system: System, split: str) -> float:
        teacher = decide(self.heldout[split].teacher)
        if teacher.dtype.kind == "f":
            each = [agreement(teacher, outputs) for outputs in system.logits[split].values()]
            return float(np.mean(each))
        return float((system.predictions(split) == teacher).mean())

    def _to_teacher(self, system: System, split: str) -> float | str:
        teacher = self._scores(split, self.heldout[split].teacher)
        own = self._by_seed(system, split)
        if teacher is None or isinstance(own, str):
            return "hidden"
        return own[self.metrics[0]]["mean"] - teacher[self.metrics[0]]

    def _gain(self, system: System, baseline: System | None, split: str) -> Any:
        if baseline is None:
            return None
        labels = self.heldout[split].labels
        if labels is None:
            return "hidden"
        found = compare(
            labels,
            system.predictions(split),
            baseline.predictions(split),
            self.metrics[0],
            len(self.names),
            self.positive,
            **self.evaluate.model_dump(),
        )
        return asdict(found)


def _is_tested(gain: Any) -> bool:
    """Whether a gain was measured: there is a baseline, and the labels are not hidden."""
    return isinstance(gain, dict)


def _summary(by_seed: dict[str, float]) -> dict[str, Any]:
    values = list(by_seed.values())
    # The sample's standard deviation; one seed says nothing about the spread.
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "std": spread, "by_seed": by_seed}


def _rounded(value: Any) -> Any:
    """Round every float below ``value`` to six decimals."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    # + 0.0: a rounded -0.0 would print as such.
    return round(value, 6) + 0.0 if isinstance(value, float) else value
