"""A small lexicon, random sentences over it, and the rows that a recipe makes of them."""

from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.text import MASK
from pipeline_lib.corpora.augmentation.lexicon import Lexicon
from pipeline_lib.corpora.augmentation.rules import augment_block
from pipeline_lib.params import Recipe

# Tag to word to count: a tag with one word alone, a word under two tags, letters beyond ASCII.
COUNTS = {
    "NN": {"film": 9, "plot": 4, "joy": 1, "joké": 2, "run": 1},
    "JJ": {"good": 5, "dull": 3, "東京": 1},
    "VB": {"run": 3, "do": 6},
    "RB": {"n't": 4, "very": 2},
    ".": {".": 7, "!": 2},
    "UH": {"oh": 3},
}
# What sentences are made of: the lexicon's words, and words or tags that it lacks.
TAGGED = [(word, tag) for tag, words in COUNTS.items() for word in words]
TAGGED += [("ghost", "NN"), ("film", "XX"), (MASK, "NN"), ("(", "-LRB-"), ("Ünï", "JJ")]


def sentences(count: int, seed: int, longest: int = 9) -> list[list[tuple[str, str]]]:
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, longest + 1, count)
    return [[TAGGED[i] for i in generator.integers(0, len(TAGGED), n)] for n in sizes]


def rows_of(
    examples: pa.Table, lexicon: Lexicon, recipe: Recipe, n_iter: int, cap: int | None = None
) -> list[dict[str, Any]]:
    tables = [table for _, table, _ in augment_block(examples, lexicon, recipe, n_iter, cap)]
    return pa.concat_tables(tables).to_pylist()
