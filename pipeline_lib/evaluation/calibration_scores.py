"""A task's scores besides its metrics: see :mod:`pipeline_lib.base.kinds.calibration`."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial

import numpy as np

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.calibration import best_temperature
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.evaluation.heldout import Heldout, System
from pipeline_lib.evaluation.routing import Routed
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
        parts = {split: part.teachers[name] for split, part in self.heldout.items()}
        return TeacherDetails(
            scores={split: self._details(split, outputs) for split, outputs in parts.items()},
            recall={split: self._recall(split, outputs) for split, outputs in parts.items()},
        )

    def method(self, name: str) -> MethodDetails:
        """Score one method's students against the labels, and against the baseline's."""
        outputs, temperatures = self.outputs[name].items(), self.temperatures[name]
        return MethodDetails(
            temperature={str(s): value for s, value in temperatures.items()} if temperatures else None,
            scores={split: _by_seed(each, partial(self._details, split)) for split, each in outputs},
            recall={split: _by_seed(each, partial(self._recall, split)) for split, each in outputs},
            gain={split: gains[name] for split, gains in self.gains.items()},
        )

    def routing(self, name: str, teacher: ParameterCounts | None) -> Routing | None:
        """Return how a method's students and their teacher do together.

        None for a regression or several labels, if dev has no labels, and if the teacher is not run
        here or left a labelled row without an answer.

        :param teacher: its parameter counts.
        """
        system, outputs, kind = self.systems[name], self.outputs[name], KINDS[self.task.kind]
        labelled = {s: part for s, part in self.heldout.items() if part.labels is not None}
        whole = all(answered(part.teachers[system.teacher]).all() for part in labelled.values())
        if not kind.one_of or teacher is None or "dev" not in labelled or not whole:
            return None
        routed = Routed(
            {s: {seed: kind.confidence(logits) for seed, logits in each.items()} for s, each in outputs.items()},
            {
                split: {seed: kind.decide(logits) == part.labels for seed, logits in outputs[split].items()}
                for split, part in labelled.items()
            },
            {s: kind.decide(part.teachers[system.teacher]) == part.labels for s, part in labelled.items()},
            system.parameters.without_embeddings / max(teacher.without_embeddings, 1),
        )
        return routed.routing()

    def _details(self, split: str, outputs: np.ndarray) -> dict[str, float] | None:
        labels, known = self.heldout[split].labels, answered(outputs)
        if labels is None or not known.any():
            return None
        return KINDS[self.task.kind].details(labels[known], outputs[known])

    def _recall(self, split: str, outputs: np.ndarray) -> dict[str, float] | None:
        labels, known = self.heldout[split].labels, answered(outputs)
        if labels is None or not known.any():
            return None
        shares = KINDS[self.task.kind].recall(labels[known], outputs[known])
        return {self.task.label_names[number]: share for number, share in shares.items()}

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
        gains: dict[str, dict[str, Gain] | None] = {
            name: None if each is None else {} for name, each in differences.items()
        }
        compared = {name: each for name, each in differences.items() if each is not None}
        for detail in dict.fromkeys(detail for each in compared.values() for detail in each):
            corrected = holm({name: each[detail].p for name, each in compared.items()})
            for name, each in compared.items():
                gains[name][detail] = Gain(**asdict(each[detail]), p_holm=corrected[name])
        return gains

    def _differences(self, name: str, split: str) -> dict[str, Difference] | None:
        labels, baseline = self.heldout[split].labels, self.systems[name].method.baseline
        if labels is None or baseline not in self.outputs:
            return None
        pair = [list(self.outputs[one][split].values()) for one in (name, baseline)]
        samples = KINDS[self.task.kind].detail_samples(labels, np.stack([*pair[0], *pair[1]]))
        return {
            detail: compare_samples(scores, len(labels), (len(pair[0]), len(pair[1])))
            for detail, scores in samples.items()
        }


def _by_seed(
    outputs: Mapping[int, np.ndarray], score: Callable[[np.ndarray], dict[str, float] | None]
) -> dict[str, SeedScores] | None:
    """Return each score over a method's seeds, or None if they have none."""
    scores = {str(seed): score(output) for seed, output in outputs.items()}
    return None if None in scores.values() else SeedScores.by_name(scores)
