"""Whether one system is better than another, given few seeds and a finite evaluation set.

A difference of mean scores has two sources of noise: which examples were drawn, and which seeds were trained.  The
model is that of Obuchowski and Rockette 1995, with seeds as readers nested in systems (Hillis 2014): examples are
shared by all seeds, so their contribution is the covariance between seeds, estimated by the bootstrap (Efron 1979);
that of the seeds is the variance between their scores.  Satterthwaite's degrees of freedom (1946) widen the interval
as appropriate for two or three seeds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from pipeline_lib.base.kinds import KINDS, kind_of
from pipeline_lib.base.kinds.kind import ScoreSamples, check_labels

CHUNK = 4_000_000
"""Resampled rows to count at a time: limits memory to some tens of megabytes."""
RESAMPLES, CONFIDENCE, SEED = 1000, 0.95, 1
"""Samples of the examples, with replacement, for the covariances; the level of the intervals in pages and tables."""


@dataclass(frozen=True)
class Difference:
    """A's mean score minus B's, its confidence interval, and the two-sided p of no difference.

    Interval and p are None if a system has a single seed: the training noise is unknown.
    """

    difference: float
    low: float | None
    high: float | None
    p: float | None


def compare(
    labels: np.ndarray | None,
    a: np.ndarray,
    b: np.ndarray,
    metric: str,
    classes: int,
    positive: int = 1,
    **sampling: float,
) -> Difference:
    """Return the mean score of ``a``'s seeds minus that of ``b``'s, with interval and p value.

    :param labels: int classes, or float scores of a regression, shape (rows,); of several labels,
        0 or 1, (rows, labels).
    :param a: answers, shape (seeds, rows), or of several labels logits, (seeds, rows, labels);
        ``b`` may have another number of seeds.
    :param classes: how many the task has; 1 for a regression.
    :param positive: the class whose F1 is computed if there are two.
    """
    answers = np.concatenate([a, b])
    for of_seed in answers:
        labels = check_labels(labels, of_seed)
    score_samples = partial(KINDS[kind_of(metric)].resampled, metric, labels, answers, classes, positive)
    return compare_samples(score_samples, len(labels), (len(a), len(b)), **sampling)


def compare_samples(
    score_samples: ScoreSamples,
    rows: int,
    seeds: tuple[int, int],
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> Difference:
    """Return the mean of the first system's scores minus that of the second's; see :func:`compare`.

    :param score_samples: scores the seeds of both systems, the first system's before the second's.
    :param rows: how many examples there are; :param seeds: how many each system has.
    """
    scores = score_samples(np.arange(rows)[None])[0]
    first, second = np.split(scores, [seeds[0]])
    # Equal means of different seeds may differ in the last bit; that is a tie, not a win.
    observed = round(float(first.mean() - second.mean()), 12)
    if min(seeds) < 2:
        return Difference(observed, None, None, None)
    drawn = _resampled(score_samples, sum(seeds), rows, resamples, seed)
    return _test(observed, scores, np.cov(drawn, rowvar=False), seeds[0], confidence)


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the p values corrected for their number (Holm 1979); None stays None."""
    rising = sorted((p, name) for name, p in p_values.items() if p is not None)
    corrected: dict[str, float | None] = dict.fromkeys(p_values)
    highest = 0.0
    for rank, (p, name) in enumerate(rising):
        highest = max(highest, min(1.0, p * (len(rising) - rank)))
        corrected[name] = highest
    return corrected


def _test(observed: float, scores: np.ndarray, covariance: np.ndarray, seeds: int, confidence: float) -> Difference:
    """Test a difference; the first ``seeds`` of the scores (systems' seeds,) are a's."""
    import scipy.stats

    first, other = slice(None, seeds), slice(seeds, None)
    variances = [scores[side].var(ddof=1) / len(scores[side]) for side in (first, other)]
    freedom = [len(scores[side]) - 1 for side in (first, other)]
    shared = _off_diagonal(covariance[first, first]) + _off_diagonal(covariance[other, other])
    examples = max(0.0, shared - 2 * float(covariance[first, other].mean()))
    variance = sum(variances) + examples
    if variance <= 0.0:
        return Difference(observed, observed, observed, 1.0 if observed == 0.0 else 0.0)
    spread = sum(v**2 / free for v, free in zip(variances, freedom, strict=True))
    degrees = variance**2 / spread if spread > 0 else np.inf
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, degrees)) * variance**0.5
    p = float(2 * scipy.stats.t.sf(abs(observed) / variance**0.5, degrees))
    return Difference(observed, observed - half, observed + half, p)


def _off_diagonal(covariance: np.ndarray) -> float:
    """Return the mean covariance between different seeds of one system."""
    seeds = len(covariance)
    return float(covariance.sum() - np.trace(covariance)) / (seeds * (seeds - 1))


def _resampled(score_samples: ScoreSamples, seeds: int, rows: int, resamples: int, seed: int) -> np.ndarray:
    """Return every seed's score on every resample of the rows, (resamples, seeds)."""
    rng = np.random.default_rng(seed)
    size = max(1, CHUNK // (rows * seeds))
    sizes = (min(size, resamples - start) for start in range(0, resamples, size))
    return np.concatenate([score_samples(rng.integers(0, rows, (count, rows))) for count in sizes])
