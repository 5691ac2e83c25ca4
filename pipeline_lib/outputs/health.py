"""Checks that a teacher's outputs must pass before they are stored: a digest vouches only for bytes."""

import math

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS

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
    kind: str,
    where: str,
    remedy: str,
) -> None:
    """Check that a shard's outputs agree with its labels about as well as the teacher on its training rows.

    :param labels: of rows that have one, (rows,); :param outputs: theirs, (rows, width); :param rows: their numbers.
    """
    of_kind = KINDS[kind]
    if len(labels) < MIN_LABELS or not of_kind.varies(labels):
        return
    shard_agreement = of_kind.agreement(labels, outputs)
    if shard_agreement >= of_kind.least_agreement(teacher_agreement, len(labels)):
        return
    wrong, which = of_kind.wrong(labels, outputs)
    raise PotstillError(
        f"{where}: the agreement of {len(labels):,} labelled rows' outputs with their labels is {shard_agreement:.1%}, "
        f"the teacher's own is {teacher_agreement:.1%} ({which}: {_listed(rows[wrong])}). {remedy}"
    )


def _listed(rows: np.ndarray) -> str:
    more = f" and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else ""
    return f"rows {', '.join(map(str, rows[:SHOWN].tolist()))}{more}"
