"""Content keys and counter-based random numbers, vectorised over numpy arrays.

Augmentation must be a pure function of (seed, example content, iteration).  So an example is
identified by a 64-bit key of its words, and every random draw is a hash of (key, counter, purpose).
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from pipeline_lib.base.text import composed

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


def splitmix64(x: np.ndarray) -> np.ndarray:
    """Return the SplitMix64 mix (Steele et al. 2014) of each uint64: a random-looking bijection."""
    z = x + GOLDEN
    z ^= z >> np.uint64(30)
    z *= _MIX1
    z ^= z >> np.uint64(27)
    z *= _MIX2
    z ^= z >> np.uint64(31)
    return z


def salt(*parts: int | str) -> np.uint64:
    """Return a 64-bit number that stands for ``parts`` (a seed, an iteration, a purpose)."""
    return string_key("\x1f".join(str(part) for part in parts))


def string_key(text: str) -> np.uint64:
    """Return the 64-bit key of one string."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def string_keys(texts: Sequence[str]) -> np.ndarray:
    """Return the keys of ``texts``, uint64, shape (len(texts),)."""
    return np.fromiter((string_key(text) for text in texts), np.uint64, len(texts))


def word_keys(words: Sequence[str]) -> np.ndarray:
    """Return the key of each word, uint64, as students see it: composed (NFC), and without case."""
    return string_keys([composed(word).casefold() for word in words])


def sequence_keys(item_keys: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return one key per sequence of items: it depends on the items and their order.

    :param item_keys: uint64 keys of all sequences' items, concatenated.
    :param offsets: int64, shape (sequences + 1,): where each sequence starts.
    """
    starts = offsets[:-1]
    lengths = np.diff(offsets)
    positions = np.arange(len(item_keys), dtype=np.uint64) - np.repeat(starts, lengths).astype(np.uint64)
    mixed = splitmix64(item_keys + positions * GOLDEN)
    # reduceat needs an item at every start, and gives an empty sequence the next one's first item.
    totals = np.add.reduceat(np.append(mixed, np.uint64(0)), starts)
    return splitmix64(np.where(lengths > 0, totals, np.uint64(0)))


def pair_keys(sides: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return one key per example, from its sentence, or from two, whose order matters.

    :param sides: the arguments of :func:`sequence_keys`, for each sentence of the examples.
    """
    keys = sequence_keys(*sides[0])
    for item_keys, offsets in sides[1:]:
        keys = splitmix64(keys + splitmix64(sequence_keys(item_keys, offsets) ^ GOLDEN))
    return keys


def uniform(keys: np.ndarray, purpose: np.uint64) -> np.ndarray:
    """Return a float64 in [0, 1) for each uint64 key, a pure function of (key, purpose)."""
    return (splitmix64(keys ^ purpose) >> np.uint64(11)).astype(np.float64) * 2.0**-53


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
        seen = np.zeros(len(unique), bool)
        for run in self._runs:
            seen |= run[np.minimum(np.searchsorted(run, unique), len(run) - 1)] == unique
        new = np.zeros(len(keys), bool)
        new[first[~seen]] = True
        self._append(unique[~seen])
        return new

    def _append(self, run: np.ndarray) -> None:
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
            # A stable sort merges two sorted runs in a single pass.
            run.sort(kind="stable")
        self._runs.append(run)
