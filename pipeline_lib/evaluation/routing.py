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
        """Return the curve, and the least share that keeps the teacher's accuracy on dev."""
        return Routing(
            teacher_accuracy={split: _share(hits) for split, hits in self.teacher_hits.items()},
            max_loss=MAX_LOSS,
            best=self.point(self.least_share()),
            curve=[self.point(share) for share in SHARES],
        )

    def least_share(self) -> float:
        """Return the least share of dev for which the mean accuracy over seeds is good enough.

        There always is one: of all rows the teacher's accuracy is its own.
        """
        teacher, by_seed = self.teacher_hits["dev"], self.confidences["dev"]
        rows, right = len(teacher), np.zeros(len(teacher) + 1)
        for seed, confidences in by_seed.items():
            own = self.student_hits["dev"][seed]
            order = np.argsort(confidences, kind="stable")
            gained = np.cumsum(teacher[order].astype(np.int64) - own[order])
            right += own.sum() + np.append(0, gained)
        wanted = (teacher.mean() - MAX_LOSS) * rows * len(by_seed)
        # Counts of rows: what is missing to a whole one is rounding.
        return int((right >= wanted - 1e-6).argmax()) / rows

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


def _share(hits: np.ndarray) -> float:
    return float(hits.mean())
