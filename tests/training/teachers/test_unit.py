"""A regression teacher of the user's own scores in the unit of the labels, or is refused."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS

RNG = np.random.default_rng(1)
LABELS = RNG.uniform(0, 5, 200).astype(np.float32)
NOISY = (LABELS + RNG.normal(0, 0.5, 200)).astype(np.float32)


def test_scores_in_the_labels_unit_pass() -> None:
    # A weak teacher's scores are drawn to the mean; a useless one's are all alike, or too wide.
    weak = 2.5 + 0.3 * (LABELS + RNG.normal(0, 1.5, 200) - 2.5)
    for scores in (NOISY, weak, np.full(200, 2.0), RNG.permutation(LABELS)):
        KINDS["regression"].check_unit(Path("mine"), LABELS, np.float32(scores)[:, None])


@pytest.mark.parametrize("unit", [NOISY / 5, NOISY * 20, NOISY + 4, -NOISY])
def test_scores_in_another_unit_are_refused(unit: np.ndarray) -> None:
    with pytest.raises(PotstillError, match=r"mine: .*mean .*another unit.*mean 2\.\d"):
        KINDS["regression"].check_unit(Path("mine"), LABELS, unit[:, None])
