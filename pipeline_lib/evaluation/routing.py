"""Routing: the student answers, and the rows it is unsure of are routed to its teacher.

A row is routed if the student's confidence is at or below a threshold, chosen on dev so that a given share of its
rows is routed.  Cost is counted in parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline_lib.base.kinds.probabilities import threshold_at
from pipeline_lib.results.schema import Routing, RoutingPoint, SeedScores

MAX_LOSS = 0.005
"""The accuracy loss, relative to the teacher, that still counts as the teacher's accuracy."""
SHARES = tuple(number / 20 for number in range(21))


@dataclass(frozen=True)
class Routed:
    """One method's students by seed, backed by their teacher.

    :ivar confidences: of the students, by split and seed, float (rows,).
    :ivar student_hits: whether they are right, bool (rows,); splits with hidden labels left out.
    :ivar teacher_hits: whether the teacher is, by split.
    :ivar student_cost: a student's parameters relative to the teacher's, without embeddings.
    """

    confidences: Mapping[str, Mapping[int, np.ndarray]]
    student_hits: Mapping[str, Mapping[int, np.ndarray]]
    teacher_hits: Mapping[str, np.ndarray]
    student_cost: float

    def routing(self) -> Routing:
        """Return the curve, and the smallest share that keeps the teacher's accuracy on dev."""
        return Routing(
            teacher_accuracy={split: _share(hits) for split, hits in self.teacher_hits.items()},
            max_loss=MAX_LOSS,
            best=self.point(self.least_share()),
            curve=[self.point(share) for share in SHARES],
        )

    def least_share(self) -> float:
        """Return the smallest share of dev whose loss plus a standard error is small.

        The mean accuracy over seeds, minus its standard error over rows, is at most
        :data:`MAX_LOSS` below the teacher's (a one-standard-error rule, as in Breiman et al. 1984,
        section 3.4.3): without the margin, the smallest share that suffices on a small dev set
        would be a lucky one.  Routing all rows always suffices: nothing is lost.
        """
        teacher, by_seed = self.teacher_hits["dev"].astype(np.int64), self.confidences["dev"]
        rows = len(teacher)
        lost, variance = np.zeros(rows + 1), np.zeros(rows + 1)
        for seed, confidences in by_seed.items():
            order = np.argsort(confidences, kind="stable")
            # For rows that the student answers: 1 if only the teacher is right, -1 if only the student.
            lead = (teacher - self.student_hits["dev"][seed])[order]
            left = _from_here_on(lead) / rows
            lost += left / len(by_seed)
            variance += (_from_here_on(lead**2) / rows - left**2) / len(by_seed)
        # The seeds answer the same rows: their mean is hardly less uncertain than any one of them.
        bound = lost + np.sqrt(variance / rows)
        return int((bound <= MAX_LOSS + 1e-9).argmax()) / rows

    def point(self, share: float) -> RoutingPoint:
        """Return how the two do together when the teacher answers ``share`` of dev."""
        thresholds = {s: threshold_at(values, share) for s, values in self.confidences["dev"].items()}
        taken = {
            split: {seed: values <= thresholds[seed] for seed, values in by_seed.items()}
            for split, by_seed in self.confidences.items()
        }
        routed = {split: _share(np.stack([*each.values()])) for split, each in taken.items()}
        return RoutingPoint(
            share=share,
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


def _from_here_on(values: np.ndarray) -> np.ndarray:
    """Return the sums of the values from each index to the end, (values + 1,); the last is 0."""
    return np.append(np.cumsum(values[::-1])[::-1], 0)


def _share(hits: np.ndarray) -> float:
    return float(hits.mean())
