"""Routing: the student answers, and what it is unsure of goes on to its teacher.

Which rows go on is decided by a threshold on the student's confidence, chosen on dev so that a
given share of its rows lies at or below it.  So a student that knows when it errs keeps its
teacher's accuracy at a part of the cost; how great a part, the curve says.  Nothing here is timed:
cost is counted in parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline_lib.evaluation.results import Routing, RoutingPoint, SeedScores

MAX_LOSS = 0.005
"""How much less accuracy than the teacher's still counts as the teacher's."""
SHARES = tuple(number / 20 for number in range(21))
"""Of the curve."""


def threshold_at(confidences: np.ndarray, share: float) -> float:
    """Return the confidence up to which the given share of these rows lies.

    It is halfway between the last row within and the first beyond; equal confidences cannot be cut
    apart, so that more rows may lie within.

    :param confidences: probabilities, float (rows,).
    """
    count = round(share * len(confidences))
    if count == 0:
        return 0.0
    if count == len(confidences):
        return 1.0
    rising = np.sort(confidences)
    return float(rising[count - 1 : count + 1].mean())


@dataclass(frozen=True)
class Routed:
    """One method's students by seed, with their teacher behind them.

    :ivar confidences: of the students, by split and seed, float (rows,).
    :ivar student_hits: whether they are right, bool (rows,); splits with hidden labels left out.
    :ivar teacher_hits: whether the teacher is, by split.
    :ivar student_cost: parameters of a student for one of the teacher's, embeddings left out.
    """

    confidences: Mapping[str, Mapping[int, np.ndarray]]
    student_hits: Mapping[str, Mapping[int, np.ndarray]]
    teacher_hits: Mapping[str, np.ndarray]
    student_cost: float

    def routing(self) -> Routing:
        """Return the curve, and the least share that keeps the teacher's accuracy, by dev."""
        return Routing(
            teacher_accuracy={split: _share(hits) for split, hits in self.teacher_hits.items()},
            max_loss=MAX_LOSS,
            best=self.point(self.least_share()),
            curve=[self.point(share) for share in SHARES],
        )

    def least_share(self) -> float:
        """Return the least share of dev at which what is lost is small beyond a standard error.

        The mean accuracy over seeds, less its standard error over rows, is no more than
        :data:`MAX_LOSS` below the teacher's (Breiman et al. 1984, section 3.4.3, choose by one
        standard error as well): the least share that is good enough on a small dev is a lucky one.
        There always is one: of all rows the teacher's accuracy is its own.
        """
        teacher, by_seed = self.teacher_hits["dev"].astype(np.int64), self.confidences["dev"]
        rows = len(teacher)
        lost, variance = np.zeros(rows + 1), np.zeros(rows + 1)
        for seed, confidences in by_seed.items():
            order = np.argsort(confidences, kind="stable")
            # Of the rows that stay with the student: 1 where the teacher alone is right, or -1.
            kept = (teacher - self.student_hits["dev"][seed])[order]
            left = _from_here_on(kept) / rows
            lost += left / len(by_seed)
            variance += (_from_here_on(kept**2) / rows - left**2) / len(by_seed)
        # The seeds answer the same rows: their mean is hardly less uncertain than one of them.
        bound = lost + np.sqrt(variance / rows)
        return int((bound <= MAX_LOSS + 1e-9).argmax()) / rows

    def point(self, share: float) -> RoutingPoint:
        """Return what the two do together when the teacher is to answer ``share`` of dev."""
        thresholds = {s: threshold_at(own, share) for s, own in self.confidences["dev"].items()}
        taken = {
            split: {seed: own <= thresholds[seed] for seed, own in by_seed.items()}
            for split, by_seed in self.confidences.items()
        }
        routed = {split: _share(np.stack([*each.values()])) for split, each in taken.items()}
        return RoutingPoint(
            share=share,
            thresholds={str(seed): threshold for seed, threshold in thresholds.items()},
            routed=routed,
            accuracy={split: self._accuracy(split, each) for split, each in taken.items()},
            cost={split: self.student_cost + part for split, part in routed.items()},
        )

    def _accuracy(self, split: str, taken: Mapping[int, np.ndarray]) -> SeedScores | None:
        if split not in self.teacher_hits:
            return None
        teacher, student = self.teacher_hits[split], self.student_hits[split]
        return SeedScores.of(
            {
                str(seed): _share(np.where(own, teacher, student[seed]))
                for seed, own in taken.items()
            }
        )


def _from_here_on(values: np.ndarray) -> np.ndarray:
    """Return the sums of the values from each place to the end, (values + 1,): the last is 0."""
    return np.append(np.cumsum(values[::-1])[::-1], 0)


def _share(hits: np.ndarray) -> float:
    return float(hits.mean())
