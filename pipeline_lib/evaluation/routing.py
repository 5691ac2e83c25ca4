"""Routing: the student answers, and the rows it is unsure of are routed to its teacher.

A row is routed if the student's confidence is at or below a threshold of dev.  Cost is counted in parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline_lib.base.kinds.probabilities import threshold_at
from pipeline_lib.base.promises import FIGURE, answers_alone, stretches
from pipeline_lib.results.schema import Routing, RoutingPoint, SeedScores

SHARES = tuple(number / 20 for number in range(21))
Hits = Mapping[str, Mapping[int, np.ndarray]]


@dataclass(frozen=True)
class Routed:
    """One method's students by seed, backed by their teacher.

    :ivar confidences: of the students, by split and seed, float (rows,).
    :ivar agrees: likewise, bool (rows,): whether their answers are the teacher's, of splits that it answered whole.
    :ivar student_hits, teacher_hits: whether they are right, of splits with labels; the teacher's are by split.
    :ivar student_cost: a student's parameters relative to the teacher's, without embeddings.
    """

    confidences: Mapping[str, Mapping[int, np.ndarray]]
    agrees: Hits
    student_hits: Hits
    teacher_hits: Mapping[str, np.ndarray]
    student_cost: float

    def routing(self) -> Routing:
        """Return the curve, and what the students may answer alone to agree with their teacher as promised."""
        dev = self.confidences["dev"]
        measured = {seed: stretches(values, self.agrees["dev"][seed]) for seed, values in dev.items()}
        alone = {seed: answers_alone(each, FIGURE) for seed, each in measured.items()}
        thresholds = {seed: 1.0 if each is None else each.threshold for seed, each in alone.items()}
        return Routing(
            teacher_accuracy={split: _share(hits) for split, hits in self.teacher_hits.items()},
            figure=FIGURE,
            stretches={str(seed): each for seed, each in measured.items()},
            agreement={split: self.agreement(split, thresholds) for split in self.confidences},
            best=self.point(thresholds),
            curve=[self.point({s: threshold_at(values, share) for s, values in dev.items()}) for share in SHARES],
        )

    def agreement(self, split: str, thresholds: Mapping[int, float]) -> float | None:
        """Return the share of the teacher's answers among those of all seeds that are given alone, if there are any."""
        alone = [self.confidences[split][seed] > threshold for seed, threshold in thresholds.items()]
        agrees = self.agrees.get(split)
        if agrees is None or not any(rows.any() for rows in alone):
            return None
        return _share(np.concatenate([agrees[seed][rows] for seed, rows in zip(thresholds, alone, strict=True)]))

    def point(self, thresholds: Mapping[int, float]) -> RoutingPoint:
        """Return how the two do together when the teacher answers what lies at or below each seed's threshold."""
        taken = {
            split: {seed: values <= thresholds[seed] for seed, values in by_seed.items()}
            for split, by_seed in self.confidences.items()
        }
        routed = {split: _share(np.stack([*each.values()])) for split, each in taken.items()}
        return RoutingPoint(
            share=routed["dev"],
            thresholds={str(seed): threshold for seed, threshold in thresholds.items()},
            routed=routed,
            accuracy={split: self._accuracy(split, each) for split, each in taken.items()},
            cost={split: self.student_cost + share for split, share in routed.items()},
        )

    def _accuracy(self, split: str, taken: Mapping[int, np.ndarray]) -> SeedScores | None:
        if split not in self.teacher_hits:
            return None
        teacher, student = self.teacher_hits[split], self.student_hits[split]
        return SeedScores.of(
            {str(seed): _share(np.where(mask, teacher, student[seed])) for seed, mask in taken.items()}
        )


def _share(hits: np.ndarray) -> float:
    return float(hits.mean())
