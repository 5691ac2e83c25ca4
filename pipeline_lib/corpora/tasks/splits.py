"""Drawing dev and test from one file.

Within each block and label, examples are ordered by a seeded hash of their content, and the first go to dev, the
next to test.  So the order of the file does not matter, an added example affects only its own block, and equal texts
are always in the same split.  A class of which train would get nothing has one text moved to train.

Of several labels, a row counts under the rarest that it has in its block (the first step of the iterative
stratification of Sechidis et al. 2011, in one pass), and one that dev would lack has one text moved there.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import salt, splitmix64
from pipeline_lib.corpora.tasks.labelled import Example
from pipeline_lib.params import Range, SplitParams

_NAMES = np.array(["dev", "test", "train"])
_DEV, _TRAIN = 0, 2
_GOLDEN = 0.6180339887498949
_SILVER = 0.4142135623730951
FIFTHS = 5
SEED = 1
"""Of the hash by which examples are ordered."""


def split_examples(
    examples: Sequence[Example], keys: np.ndarray, blocks: np.ndarray, params: SplitParams, scores: Range | None = None
) -> np.ndarray:
    """Return ``train``, ``dev`` or ``test`` for each example.

    :param examples: labelled examples, or unlabelled ones, which are all treated alike.
    :param keys: uint64 content key of each; examples with equal keys stay together.
    :param blocks: block number of each, a function of its key.
    :param params: fractions and seed.
    :param scores: the range of a regression's labels, which are stratified by fifths of it.
    :return: array of strings, shape (len(examples),).
    """
    several = any(isinstance(example.label, tuple) for example in examples)
    if several:
        has = np.array([example.label for example in examples], bool)
        labels = _rarest(has, blocks)
    else:
        labels = np.array([_stratum(example.label, scores) for example in examples], np.int64)
    units, first, inverse, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    if np.any(blocks != blocks[first][inverse]):
        raise ValueError("examples with equal keys are in different blocks")
    # Duplicates with different labels count under the lowest: a choice independent of file order.
    unit_labels = np.full(len(units), np.iinfo(np.int64).max)
    np.minimum.at(unit_labels, inverse, labels)
    unit_blocks = blocks[first].astype(np.int64)
    order = np.lexsort((splitmix64(units ^ salt("split", SEED)), unit_labels, unit_blocks))
    codes = np.empty(len(units), np.int64)
    for stratum in _strata(unit_blocks[order], unit_labels[order]):
        rows = order[stratum]
        offset = _offset(int(unit_blocks[rows[0]]), int(unit_labels[rows[0]]))
        codes[rows] = _codes(sizes[rows], offset, params)
    if scores is None:
        masks = has.T if several else (labels == label for label in np.unique(labels))
        members = [*map(np.flatnonzero, masks)]
        for rows in members:
            _move_to_train(codes, inverse, rows)
        for rows in members if several else ():
            _move_to_dev(codes, inverse, rows)
    names = _NAMES[codes[inverse]]
    _check(names, params)
    return names


def _rarest(has: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the rank in its block of the rarest label of each example, int64.

    Those without a label come last.  So what is rare is spread over the splits before what is not.

    :param has: which labels each example has, bool (examples, labels).
    """
    ranks = np.empty(len(has), np.int64)
    for block in np.unique(blocks):
        rows = np.flatnonzero(blocks == block)
        order = np.argsort(has[rows].sum(axis=0), kind="stable")
        ordered = np.column_stack([has[rows][:, order], np.ones(len(rows), bool)])
        ranks[rows] = ordered.argmax(axis=1)
    return ranks


def _stratum(label: float | None, scores: Range | None) -> int:
    if label is None:
        return 0
    if scores is None:
        return int(label)
    share = (label - scores.min) / (scores.max - scores.min)
    return min(FIFTHS - 1, int(share * FIFTHS))


def _strata(blocks: np.ndarray, labels: np.ndarray) -> list[slice]:
    """Return the slices of sorted rows that share block and label."""
    changes = np.flatnonzero((np.diff(blocks) != 0) | (np.diff(labels) != 0)) + 1
    ends = [*changes.tolist(), len(blocks)]
    return [slice(a, b) for a, b in zip([0, *changes.tolist()], ends, strict=True) if b > a]


def _codes(sizes: np.ndarray, offset: float, params: SplitParams) -> np.ndarray:
    """Return 0 (dev), 1 (test) or 2 (train) for each unit of a stratum, by its middle row."""
    total = int(sizes.sum())
    middles = np.cumsum(sizes) - (sizes + 1) / 2
    dev_end = np.floor(total * params.dev + offset)
    test_end = np.floor(total * (params.dev + params.test) + offset)
    return (middles >= dev_end).astype(np.int64) + (middles >= test_end)


def _offset(block: int, label: int) -> float:
    """Return the rounding offset of a stratum, in [0, 1).

    Plain rounding would take nothing from every small stratum.  Offsets that are spread evenly over
    the strata make the roundings cancel out, and still depend on nothing outside of the block.
    """
    return (0.5 + block * _GOLDEN + label * _SILVER) % 1.0


def _move_to_train(codes: np.ndarray, inverse: np.ndarray, rows: np.ndarray) -> None:
    """Move one unit of a class to train, from test or else from dev, if train lacks it.

    :param codes: code of each unit, changed in place; :param inverse: each example's unit.
    :param rows: the numbers of the class's examples.
    """
    units = np.unique(inverse[rows])
    if len(units) and not np.any(codes[units] == _TRAIN):
        codes[units[codes[units].argmax()]] = _TRAIN


def _move_to_dev(codes: np.ndarray, inverse: np.ndarray, rows: np.ndarray) -> None:
    """Move one unit of a label from train to dev if dev lacks it and train has three."""
    units = np.unique(inverse[rows])
    in_train = units[codes[units] == _TRAIN]
    if len(in_train) >= 3 and not np.any(codes[units] == _DEV):
        codes[in_train[0]] = _DEV


def _check(names: np.ndarray, params: SplitParams) -> None:
    for split, fraction in (("dev", params.dev), ("test", params.test)):
        if fraction and not np.any(names == split):
            raise PotstillError(
                f"params.yaml: split.{split}: {fraction:g} of {len(names)} examples leaves none "
                f"for {split}. Raise it, or add examples."
            )


def texts_of_no_split(texts: pa.Table, splits: Iterable[pa.Table], task: str) -> tuple[pa.Table, dict[str, int]]:
    """Return the texts that are in no split, each once, and how many were left out, and why.

    To train on the teacher's answer to a text of dev or test would be to train on what is scored.

    :param texts: rows with their content keys, ``key``; :param splits: rows of the splits.
    """
    keys = texts["key"].to_numpy()
    taken = np.concatenate([table["key"].to_numpy() for table in splits])
    elsewhere = np.isin(keys, taken)
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    new = texts.filter(pa.array(first & ~elsewhere))
    if not new.num_rows:
        raise PotstillError(
            f"tasks.{task}: all {len(keys):,} unlabelled texts are in a split too. Take the file "
            "out of `source.files`, or put others into it."
        )
    counts = {"in_a_split": int(elsewhere.sum()), "repeated": int((~first & ~elsewhere).sum())}
    return new, counts
