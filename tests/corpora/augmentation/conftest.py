from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.corpora.augmentation.lexicon import Lexicon

from .corpus import COUNTS, sentences


@pytest.fixture
def lexicon(make_lexicon: Callable[..., Lexicon]) -> Lexicon:
    return make_lexicon(COUNTS)


@pytest.fixture
def block(make_examples: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
    """Return a maker of blocks of random sentences, some written together, some of them equal."""

    def make(count: int = 40, seed: int = 0, longest: int = 9) -> pa.Table:
        # Tags and blanks are those of the words: equal words are equal examples.
        drawn = list({tuple(w for w, _ in s): s for s in sentences(count, seed, longest)}.values())
        generator = np.random.default_rng(seed + 1)
        spaces = [[*(generator.random(len(s) - 1) < 0.7).tolist(), False] for s in drawn]
        words, tags = ([[pair[i] for pair in s] for s in drawn] for i in (0, 1))
        return make_examples(*(column + column[:3] for column in (words, tags, spaces)))

    return make
