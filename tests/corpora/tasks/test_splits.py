"""Properties of the split: fractions per class, order, locality, no text in two splits."""

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.corpora.tasks.labelled import Example
from pipeline_lib.corpora.tasks.splits import split_examples
from pipeline_lib.params import SplitParams

PARAMS = SplitParams(dev=0.1, test=0.2)


def data(count: int, blocks: int, share: float = 0.3) -> tuple[list[Example], np.ndarray, np.ndarray]:
    """Return examples (a ``share`` of them of class 1), their keys and blocks."""
    examples = [Example((f"text {i}",), int(i % 10 < share * 10)) for i in range(count)]
    keys = string_keys([example.texts[0] for example in examples])
    return examples, keys, (keys % np.uint64(blocks)).astype(np.int64)


@pytest.mark.parametrize("count", [100, 1000, 5000])
@pytest.mark.parametrize("blocks", [1, 4, 64])
def test_fractions_per_class(count: int, blocks: int) -> None:
    examples, keys, of = data(count, blocks)
    names = split_examples(examples, keys, of, PARAMS)
    labels = np.array([example.label for example in examples])
    for label in (0, 1):
        of_class = names[labels == label]
        # Spread roundings cancel out: the error grows far slower than one per block.
        allowed = 1 + 0.6 * np.sqrt(blocks)
        assert abs((of_class == "dev").sum() - 0.1 * len(of_class)) <= allowed
        assert abs((of_class == "test").sum() - 0.2 * len(of_class)) <= allowed
    assert set(names) == {"train", "dev", "test"}


def test_the_order_of_examples_changes_no_split() -> None:
    examples, keys, blocks = data(500, 4)
    names = split_examples(examples, keys, blocks, PARAMS)
    order = np.random.default_rng(0).permutation(500)
    shuffled = split_examples([examples[i] for i in order], keys[order], blocks[order], PARAMS)
    assert (shuffled == names[order]).all()
    # Added example touches its own block.
    examples, keys, blocks = data(801, 4)
    before = split_examples(examples[:800], keys[:800], blocks[:800], PARAMS)
    after = split_examples(examples, keys, blocks, PARAMS)[:800]
    changed = before != after
    assert set(blocks[:800][changed]) <= {blocks[800]}
    # Even there only rows at the borders between splits move.
    assert changed.sum() <= 4


def test_duplicates_stay_together() -> None:
    # Every text stands three times, and a tenth of the copies disagree about the label.
    keys = np.repeat(string_keys([f"text {i}" for i in range(200)]), 3)
    examples = [Example((str(key),), int(i % 2 if i % 10 else 1)) for i, key in enumerate(keys)]
    names = split_examples(examples, keys, np.zeros(600, np.int64), PARAMS)
    for key in np.unique(keys):
        assert len(set(names[keys == key])) == 1
    assert abs((names == "dev").sum() - 60) <= 6


def test_sizes_and_faults() -> None:
    examples, keys, blocks = data(100, 1)
    names = split_examples(examples, keys, blocks, SplitParams(dev=0.1, test=0.0))
    assert set(names) == {"train", "dev"}
    examples, keys, blocks = data(4, 1, share=0.0)
    with pytest.raises(PotstillError, match=r"split.dev: 0.1 of 4 examples leaves none"):
        split_examples(examples, keys, blocks, PARAMS)
    # Equal keys in different blocks.
    with pytest.raises(ValueError, match="different blocks"):
        split_examples([Example(("a",), 0)] * 2, np.zeros(2, np.uint64), np.array([0, 1]), PARAMS)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_every_class_is_in_train(rows: int) -> None:
    examples, keys, blocks = data(400, 4)
    # Ten classes with as few rows each, and one of which all rows have the same text.
    for label in range(2, 12):
        start = 30 * label
        examples[start : start + rows] = [Example(("rare",), label)] * rows
    keys[1], blocks[1] = keys[0], blocks[0]
    examples[:2] = [Example(("twice",), 12)] * 2
    names = split_examples(examples, keys, blocks, PARAMS)
    labels = np.array([example.label for example in examples])
    assert set(labels[names == "train"]) == set(range(13))
    order = np.random.default_rng(0).permutation(400)
    shuffled = split_examples([examples[i] for i in order], keys[order], blocks[order], PARAMS)
    assert (shuffled == names[order]).all()
