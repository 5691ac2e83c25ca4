"""Keys seen before are found, whatever the batches they came in."""

import numpy as np
import pytest

from pipeline_lib.base.hashing import SeenKeys


@pytest.mark.parametrize("batch", [1, 7, 100, 5000])
def test_new_keys_are_first_occurrences(batch: int) -> None:
    keys = np.random.default_rng(1).integers(0, 900, 2000).astype(np.uint64)
    keys[5:8] = np.iinfo(np.uint64).max
    seen = SeenKeys()
    new = np.concatenate([seen.add(keys[i : i + batch]) for i in range(0, len(keys), batch)])
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    np.testing.assert_array_equal(new, first)
    assert len(seen) == first.sum()


def test_few_runs_hold_many_keys() -> None:
    seen = SeenKeys()
    for start in range(0, 100_000, 100):
        seen.add(np.arange(start, start + 100, dtype=np.uint64))
    assert len(seen) == 100_000
    assert len(seen._runs) <= 10
    assert sum(run.nbytes for run in seen._runs) == 8 * len(seen)


def test_nothing_to_add() -> None:
    seen = SeenKeys()
    assert seen.add(np.array([], np.uint64)).tolist() == []
    assert seen.add(np.array([3], np.uint64)).tolist() == [True]
    assert seen.add(np.array([], np.uint64)).tolist() == []
