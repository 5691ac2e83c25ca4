"""A task's scores besides its metrics: see :mod:`pipeline_lib.base.kinds.calibration`."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial

import numpy as np

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.calibration import best_temperature
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.evaluation.heldout import Heldout, System
from pipeline_lib.evaluation.routing import Hits, Routed
from pipeline_lib.params import Task
from pipeline_lib.results.schema import Gain, MethodDetails, ParameterCounts, Routing, SeedScores, TeacherDetails
from pipeline_lib.results.significance import Difference, compare_samples, holm


class DetailScorer:
    """Holds the labels, and every method's outputs as they are used.

    Outputs are divided by the temperature if the row asks for one.
    """

    def __init__(self, task: Task, heldout: Mapping[str, Heldout], systems: Mapping[str, System]) -> None:
        self.task = task
        self.heldout = heldout
        self.systems = systems
        self.temperatures = {name: self._temperatures(system) for name, system in systems.items()}
        self.outputs = {name: self._scaled(name, system) for name, system in systems.items()}
        self.gains = {split: self._gains(split) for split in heldout}

    def teacher(self, name: str) -> TeacherDetails:
        """Score a teacher's stored logits."""
        outputs = {split: heldout.teachers[name] for split, heldout in self.heldout.items()}
        return TeacherDetails(
            scores={split: self._details(split, logits) for split, logits in outputs.items()},
            recall={split: self._recall(split, logits) for split, logits in outputs.items()},
        )

    def method(self, name: str) -> MethodDetails:
        """Score one method's students against the labels, and against the baseline's."""
        outputs, temperatures = self.outputs[name].items(), self.temperatures[name]
        return MethodDetails(
            temperature={str(s): value for s, value in temperatures.items()} if temperatures else None,
            scores={split: by_seed(each, partial(self._details, split)) for split, each in outputs},
            recall={split: by_seed(each, partial(self._recall, split)) for split, each in outputs},
            gain={split: gains[name] for split, gains in self.gains.items()},
        )

    def routing(self, name: str, teacher: ParameterCounts | None) -> Routing | None:
        """Return how a method's students and their teacher do together.

        None for a regression or several labels, and if the teacher is not run here or left a row of dev without an
        answer.
        """
        system, outputs, kind = self.systems[name], self.outputs[name], KINDS[self.task.kind]
        answers = {split: heldout.teachers[system.teacher] for split, heldout in self.heldout.items()}
        answers = {split: kind.decide(logits) for split, logits in answers.items() if answered(logits).all()}
        labels = {split: self.heldout[split].labels for split in answers if self.heldout[split].labels is not None}
        if not kind.one_of or teacher is None or "dev" not in answers:
            return None

        def hits(right: Mapping[str, np.ndarray]) -> Hits:
            return {s: {n: kind.decide(each) == right[s] for n, each in outputs[s].items()} for s in right}

        routed = Routed(
            {s: {seed: kind.confidence(logits) for seed, logits in each.items()} for s, each in outputs.items()},
            hits(answers),
            hits(labels),
            {split: answers[split] == labels[split] for split in labels},
            system.parameters.without_embeddings / max(teacher.without_embeddings, 1),
        )
        return routed.routing()

    def _details(self, split: str, outputs: np.ndarray) -> dict[str, float] | None:
        scored = self.heldout[split].scored(outputs)
        return scored and KINDS[self.task.kind].details(*scored)

    def _recall(self, split: str, outputs: np.ndarray) -> dict[str, float] | None:
        scored, names = self.heldout[split].scored(outputs), self.task.label_names
        return scored and {names[n]: share for n, share in KINDS[self.task.kind].recall(*scored).items()}

    def _temperatures(self, system: System) -> dict[int, float] | None:
        if system.method.temperature is None:
            return None
        labels, outputs = self.heldout["dev"].labels, system.logits["dev"].items()
        # Rounded as it is written, so that students in use answer exactly as they were scored.
        return {seed: round(best_temperature(labels, logits), 6) for seed, logits in outputs}

    def _scaled(self, name: str, system: System) -> dict[str, dict[int, np.ndarray]]:
        temperatures = self.temperatures[name]
        if temperatures is None:
            return system.logits
        return {
            split: {seed: logits / temperatures[seed] for seed, logits in by_seed.items()}
            for split, by_seed in system.logits.items()
        }

    def _gains(self, split: str) -> dict[str, dict[str, Gain] | None]:
        """Compare every method with its baseline; p values are corrected for the table's rows."""
        differences = {name: self._differences(name, split) for name in self.systems}
        compared = {name: each for name, each in differences.items() if each is not None}
        details = dict.fromkeys(detail for each in compared.values() for detail in each)
        gains = {detail: corrected({name: each[detail] for name, each in compared.items()}) for detail in details}
        return {
            name: {detail: gains[detail][name] for detail in details} if name in compared else None
            for name in differences
        }

    def _differences(self, name: str, split: str) -> dict[str, Difference] | None:
        labels, baseline = self.heldout[split].labels, self.systems[name].method.baseline
        if labels is None or baseline not in self.outputs:
            return None
        first, second = ([*self.outputs[method][split].values()] for method in (name, baseline))
        samples = KINDS[self.task.kind].detail_samples(labels, np.stack([*first, *second]))
        seeds = len(first), len(second)
        return {detail: compare_samples(scores, len(labels), seeds) for detail, scores in samples.items()}


def corrected(differences: Mapping[str, Difference | None]) -> dict[str, Gain | None]:
    """Return differences as gains, whose p values are corrected for their number."""
    p_values = holm({name: each.p for name, each in differences.items() if each is not None})
    return {name: each and Gain(**asdict(each), p_holm=p_values[name]) for name, each in differences.items()}


def by_seed(
    outputs: Mapping[int, np.ndarray], score: Callable[[np.ndarray], dict[str, float] | None]
) -> dict[str, SeedScores] | None:
    """Return each score over a method's seeds, or None if they have none."""
    scores = {str(seed): score(output) for seed, output in outputs.items()}
    return None if None in scores.values() else SeedScores.by_name(scores)
