"""Computing the scores of one task from labels and logits: teachers, floor and every method."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_lib.base.kinds import KINDS, score
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.evaluation.ablation_steps import previous
from pipeline_lib.evaluation.calibration_scores import DetailScorer, by_seed, corrected
from pipeline_lib.evaluation.heldout import Heldout, System
from pipeline_lib.params import Task
from pipeline_lib.results.schema import (
    Floor,
    Gain,
    MethodScores,
    ParameterCounts,
    Scores,
    SeedScores,
    Step,
    TaskScores,
    TeacherScores,
)
from pipeline_lib.results.significance import Difference, compare
from pipeline_lib.shards.training_records import ModelRecord

SELECTION = (
    "Each run's best evaluation, and a teacher's best epoch and learning rate, were chosen on "
    "dev: dev scores are optimistic, test scores were not used for any choice."
)


def task_scores(
    task: Task,
    heldout: dict[str, Heldout],
    train_rows: int,
    train_labels: np.ndarray,
    teachers: dict[str, ParameterCounts | None],
    systems: dict[str, System],
    shared_texts: dict[str, dict[str, dict[str, int]]],
    records: Mapping[str, ModelRecord],
) -> TaskScores:
    """Return all scores of one task.

    :param train_labels: int classes or float scores, shape (rows,), for computing the floor.
    :param teachers: each one's parameter counts; None if its answers are not from a model run here.
    :param records: the teachers': what their epoch and rate were chosen by, and whether they fit the labels.
    """
    by_loss = [name for name, record in records.items() if record.best_dev_loss is not None]
    scorer = _Scorer(task, heldout, DetailScorer(task, heldout, systems))
    return TaskScores(
        metrics=task.metrics,
        f1_label=KINDS[task.kind].f1_label(task),
        labels=task.label_names,
        rows={"train": train_rows} | {name: len(split.texts) for name, split in heldout.items()},
        selection=_selection(task, by_loss, systems),
        floor=scorer.floor(train_labels),
        teachers={name: scorer.teacher(name, counts, records[name].faults) for name, counts in teachers.items()},
        methods=scorer.methods(systems, teachers),
        steps=scorer.steps(systems),
        shared_texts=shared_texts,
    )


def _selection(task: Task, teachers: Sequence[str], systems: Mapping[str, System]) -> str:
    """Say what was chosen on dev, and for which systems by the loss."""
    names = [f"teacher {name}" for name in teachers]
    names += [name for name, system in systems.items() if system.training.dev_loss_by_rate is not None]
    if not names:
        return SELECTION
    return (
        f"{SELECTION} Evaluation and rate, or a regression's penalty, were chosen by the loss of the labels, "
        f"in place of {task.metrics[0]}, for {', '.join(names)}."
    )


@dataclass(frozen=True)
class _Scorer:
    task: Task
    heldout: dict[str, Heldout]
    details: DetailScorer

    def floor(self, train_labels: np.ndarray) -> Floor:
        """Score the constant answer that fits the training set best."""
        if not len(train_labels):
            scores = {name: None if split.labels is None else {} for name, split in self.heldout.items()}
            return Floor(answer=None, scores=scores)
        answer, constant = KINDS[self.task.kind].floor(self.task.label_names, train_labels)
        constants = {name: np.tile(constant, (len(split.texts), 1)) for name, split in self.heldout.items()}
        return Floor(answer=answer, scores={name: self._scores(name, each) for name, each in constants.items()})

    def teacher(self, name: str, parameters: ParameterCounts | None, faults: list[str]) -> TeacherScores:
        """Score a teacher's stored logits, on the rows it answered."""
        outputs = {split: heldout.teachers[name] for split, heldout in self.heldout.items()}
        missing = {split: int((~answered(logits)).sum()) for split, logits in outputs.items()}
        return TeacherScores(
            scores={split: self._scores(split, logits) for split, logits in outputs.items()},
            details=self.details.teacher(name),
            precision={split: heldout.precision[name] for split, heldout in self.heldout.items()},
            parameters=parameters,
            unanswered={split: count for split, count in missing.items() if count},
            faults=faults,
        )

    def methods(
        self, systems: dict[str, System], teachers: dict[str, ParameterCounts | None]
    ) -> dict[str, MethodScores]:
        """Score every method; each split's p values are corrected for the table's rows."""
        pairs = {name: (system, systems.get(system.method.baseline or "")) for name, system in systems.items()}
        gains = self._compared(pairs)
        return {
            name: self._method(name, system, teachers[system.teacher], gains[name]) for name, system in systems.items()
        }

    def _method(
        self, name: str, system: System, teacher_parameters: ParameterCounts | None, gain: dict[str, Gain | None]
    ) -> MethodScores:
        return MethodScores(
            student=system.method.student,
            data=system.method.data,
            learned_from=system.learned_from,
            teacher=system.teacher,
            baseline=system.method.baseline,
            training=system.training,
            scores={split: self._by_seed(system, split) for split in self.heldout},
            agreement={split: self._agreement(system, split) for split in self.heldout},
            correlation={split: self._correlation(system, split) for split in self.heldout},
            against_teacher={split: self._to_teacher(system, split) for split in self.heldout},
            gain=gain,
            details=self.details.method(name),
            routing=self.details.routing(name, teacher_parameters),
            parameters=system.parameters,
            ratio=teacher_parameters and teacher_parameters.ratio_to(system.parameters),
            yardstick=system.yardstick,
        )

    def _scores(self, split: str, outputs: np.ndarray, rows: np.ndarray | bool = True) -> Scores | None:
        """Return the scores on the rows with an answer; None if there are none, or no labels."""
        scored = self.heldout[split].scored(outputs, rows)
        return scored and {metric: score(metric, *scored, self.task.positive_class) for metric in self.task.metrics}

    def _by_seed(self, system: System, split: str, rows: np.ndarray | bool = True) -> dict[str, SeedScores] | None:
        return by_seed(system.logits[split], lambda outputs: self._scores(split, outputs, rows))

    def _agreement(self, system: System, split: str) -> float | None:
        kind, answers = KINDS[self.task.kind], self.heldout[split].teachers[system.teacher]
        rows = answered(answers)
        if not rows.any():
            return None
        teacher = kind.decide(answers[rows])
        return float(np.mean([kind.agreement(teacher, outputs[rows]) for outputs in system.logits[split].values()]))

    def _correlation(self, system: System, split: str) -> float | None:
        kind, answers = KINDS[self.task.kind], self.heldout[split].teachers[system.teacher]
        rows = answered(answers)
        if not kind.has_probabilities or not rows.any():
            return None
        taught = kind.probabilities(answers[rows]).ravel()
        learned = [kind.probabilities(outputs[rows]).ravel() for outputs in system.logits[split].values()]
        if not all(np.ptp(shares) for shares in (taught, *learned)):
            return None
        return float(np.mean([np.corrcoef(taught, shares)[0, 1] for shares in learned]))

    def _to_teacher(self, system: System, split: str) -> float | None:
        answers = self.heldout[split].teachers[system.teacher]
        teacher = self._scores(split, answers)
        student = self._by_seed(system, split, answered(answers))
        if teacher is None or student is None:
            return None
        return student[self.task.metrics[0]].mean - teacher[self.task.metrics[0]]

    def steps(self, systems: dict[str, System]) -> list[Step]:
        """Compare every row with the row that it is a step from, if any."""
        steps = {name: step for name in systems if (step := previous(name, systems))}
        gains = self._compared({name: (systems[name], systems[other]) for name, (other, _) in steps.items()})
        return [
            Step(method=name, previous=other, changed=changed, gain=gains[name])
            for name, (other, changed) in steps.items()
        ]

    def _compared(self, pairs: Mapping[str, tuple[System, System | None]]) -> dict[str, dict[str, Gain | None]]:
        """Return by split each pair's gain, of the first over the second; p is corrected for all pairs of a split."""
        gains = {
            split: corrected({name: self._difference(*pair, split) for name, pair in pairs.items()})
            for split in self.heldout
        }
        return {name: {split: by_name[name] for split, by_name in gains.items()} for name in pairs}

    def _difference(self, system: System, baseline: System | None, split: str) -> Difference | None:
        labels = self.heldout[split].labels
        if labels is None or baseline is None:
            return None
        return compare(
            labels,
            self._answers(system, split),
            self._answers(baseline, split),
            self.task.metrics[0],
            len(self.task.label_names),
            self.task.positive_class,
        )

    def _answers(self, system: System, split: str) -> np.ndarray:
        """Return what is compared: classes or scores, (seeds, rows), or the logits of several labels."""
        return np.stack([KINDS[self.task.kind].compared(logits) for logits in system.logits[split].values()])
