"""Which of a stream's keys were seen before, in a few bytes each."""

import numpy as np


class SeenKeys:
    """A growing set of 64-bit keys.

    They are kept in sorted runs, each more than twice as long as the next, so that there are few to search: 8 bytes
    per key, and up to 20 while the longest runs are merged.  Keys are hashes: among n different texts, two have the
    same one with a probability of about n² / 3.7e19, which is 4e-7 for four million.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, keys: np.ndarray) -> np.ndarray:
        """Add keys, and return which of them are new.

        :param keys: uint64, shape (keys,).
        :return: bool, shape (keys,): neither added before nor equal to an earlier one of ``keys``.
        """
        unique, first = np.unique(keys, return_index=True)
        known = np.zeros(len(unique), bool)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, unique), len(run) - 1)
            known |= run[places] == unique
        new = np.zeros(len(keys), bool)
        new[first[~known]] = True
        self._append(unique[~known])
        return new

    def _append(self, run: np.ndarray) -> None:
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
            # A stable sort merges two sorted runs in a single pass.
            run.sort(kind="stable")
        self._runs.append(run)
