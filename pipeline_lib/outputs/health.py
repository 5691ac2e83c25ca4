"""Checks that a teacher's outputs must pass before they are stored.

A digest vouches only for bytes: it passes outputs that are NaN, or the same for every row.  Each
check here states when it does not apply, so that small shards and shards of one class pass.
"""

import math

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.probabilities import Kind
from pipeline_lib.results.metrics import agreement, decide

MIN_ROWS = 32
"""Distinct inputs needed to call a shard constant or hardly unique: fewer may well get the same answer."""
MAX_ROWS = 4096
"""Maximum distinct inputs of a shard to compare, evenly spaced; that all are finite is checked for every row."""
MAX_UNIQUE, UNIQUE_SHARE = 32, 0.1
"""Hardly unique: fewer distinct outputs than this number, and than this share of the inputs.  In
bfloat16 a saturated classifier of two classes still gives hundreds."""
MIN_SPREAD = 1e-4
"""Variance gone: the deviation between rows, as a share of the outputs' root mean square.  Rounding
to bfloat16 alone gives 1e-3; an untrained head's answers differ by 1e-2."""
MIN_LABELS = 32
"""Labelled rows needed for a shard's agreement with them to be meaningful."""
DEVIATIONS = 4.0
"""Standard errors allowed for chance: one in 30,000 sound shards falls further below."""
TOLERANCE = 0.03
"""A further shortfall allowed in a shard's agreement: its rows can be harder."""
SHOWN = 5


def check_outputs(outputs: np.ndarray, keys: np.ndarray, where: str, remedy: str, few: bool = False) -> None:
    """Check that a shard's outputs are finite, and differ as those of different inputs do.

    :param outputs: float (rows, width); :param keys: content keys of the rows, uint64 (rows,).
    :param where: the pass and the shard; :param remedy: what to do.
    :param few: whether there may be few distinct ones, as with labels or rounded probabilities.
    """
    check_finite(outputs, where, remedy)
    first = np.unique(keys, return_index=True)[1]
    if len(first) < MIN_ROWS:
        return
    chosen = first[:: -(-len(first) // MAX_ROWS)]
    values = outputs[chosen].astype(np.float64)
    different, size = len(np.unique(values, axis=0)), math.sqrt((values**2).mean())
    spread = math.sqrt(values.var(axis=0).mean())
    fault = None
    if different == 1:
        fault = "constant: the same output"
    elif not few and different < min(MAX_UNIQUE, UNIQUE_SHARE * len(chosen)):
        fault = f"hardly unique: {different} different outputs"
    elif spread < MIN_SPREAD * size:
        fault = f"variance gone: a deviation of {spread:.3g}, {spread / size:.1e} of their size,"
    if fault:
        raise PotstillError(
            f"{where}: {fault} for {len(chosen):,} different inputs of rows 0 to {len(outputs) - 1}. {remedy}"
        )


def check_finite(outputs: np.ndarray, where: str, remedy: str) -> None:
    """Check that a shard's outputs, float (rows, width), are finite; see :func:`check_outputs`."""
    broken = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    if len(broken):
        raise PotstillError(
            f"{where}: not a finite number in the outputs of {len(broken):,} of {len(outputs):,} "
            f"rows ({_listed(broken)}). {remedy}"
        )


def check_agreement(
    labels: np.ndarray,
    outputs: np.ndarray,
    rows: np.ndarray,
    teacher_agreement: float,
    kind: Kind,
    where: str,
    remedy: str,
) -> None:
    """Check that a shard's outputs agree with its labels about as well as the teacher itself.

    :param labels: of the rows that have one, (rows,); :param outputs: theirs, (rows, width).
    :param rows: their numbers in the shard, int (rows,).
    :param teacher_agreement: on the teacher's training rows; see :func:`~pipeline_lib.results.metrics.agreement`.
    """
    if len(labels) < MIN_LABELS or (kind == "regression" and np.ptp(labels) == 0):
        return
    shard_agreement = agreement(labels, outputs, kind)
    if shard_agreement >= least_agreement(teacher_agreement, len(labels), kind):
        return
    if kind == "regression":
        wrong = np.argsort(-np.abs(outputs[:, 0] - labels))
        which = "furthest from their labels first"
    else:
        differs = decide(outputs, kind) != labels
        wrong = np.flatnonzero(differs if differs.ndim == 1 else differs.any(axis=1))
        which = "with another class" if differs.ndim == 1 else "with other labels"
    raise PotstillError(
        f"{where}: the agreement of {len(labels):,} labelled rows' outputs with their labels is {shard_agreement:.1%}, "
        f"the teacher's own is {teacher_agreement:.1%} ({which}: {_listed(rows[wrong])}). {remedy}"
    )


def least_agreement(teacher_agreement: float, rows: int, kind: Kind) -> float:
    """Return the lowest agreement that chance explains in a shard with ``rows`` labelled rows.

    Binomial for accuracy, Fisher's z for a correlation.
    """
    if kind == "regression":
        teacher_agreement = min(teacher_agreement, 1.0 - 1e-9)
        return math.tanh(math.atanh(teacher_agreement) - DEVIATIONS / math.sqrt(rows - 3)) - TOLERANCE
    # A teacher that is never wrong on its training rows may still be wrong on one in ``rows``.
    error = max(teacher_agreement * (1.0 - teacher_agreement), 1.0 / rows)
    return teacher_agreement - DEVIATIONS * math.sqrt(error / rows) - TOLERANCE


def chance_agreement(labels: np.ndarray, outputs: np.ndarray, kind: Kind) -> float:
    """Return the highest agreement that answers unrelated to their rows reach by chance.

    For classes the expected agreement of shuffled answers, for correlations 0, plus the deviations.
    """
    rows = len(labels)
    if kind == "regression":
        return DEVIATIONS / math.sqrt(max(rows - 1, 1))
    # Each set of labels is a class of its own.
    both = np.concatenate([labels, decide(outputs, kind)])
    classes, numbers = np.unique(both, axis=0, return_inverse=True)
    shares = [np.bincount(part, minlength=len(classes)) / rows for part in np.split(numbers, 2)]
    expected = float(shares[0] @ shares[1])
    return expected + DEVIATIONS * math.sqrt(expected * (1.0 - expected) / rows)


def _listed(rows: np.ndarray) -> str:
    more = f" and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else ""
    return f"rows {', '.join(map(str, rows[:SHOWN].tolist()))}{more}"
