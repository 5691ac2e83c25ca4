"""The rates of the three rules, over many words."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from pipeline_lib.corpora.augmentation.lexicon import Lexicon
from pipeline_lib.shards.columns import KEPT, MASKED, REPLACED

from .corpus import COUNTS, rows_of


def within_four_sigma(hits: int, trials: int, p: float) -> bool:
    return abs(hits - trials * p) <= 4 * np.sqrt(trials * p * (1 - p))


@pytest.fixture
def many(make_examples: Callable[..., pa.Table]) -> pa.Table:
    """Make 3,000 different sentences of 14 words: a number of their own, then films."""
    words = [[f"n{i}", *["film", "good", "run", "."] * 3, "film"] for i in range(3000)]
    tags = [["CD", *["NN", "JJ", "VB", "."] * 3, "NN"]] * 3000
    return make_examples(words, tags)


def test_rates_of_the_rules(many: pa.Table, lexicon: Lexicon, make_recipe: Any) -> None:
    # No n-grams here, and a number to each sentence: duplicates are only those left unchanged,
    # which do not touch the rate among all words that were drawn.
    recipe = make_recipe(p_mask=0.1, p_pos=0.15, p_ngram=0.0)
    rows = [row for row in rows_of(many, lexicon, recipe, 3) if row["iteration"]]
    used = Counter(rule for row in rows for rule in row["rules"][1:])
    trials = 3 * 3000 * 13
    assert within_four_sigma(used[MASKED], trials, 0.1)
    assert within_four_sigma(used[REPLACED], trials, 0.15)
    # The number has a tag that the lexicon lacks: masked, never replaced.
    first = Counter(row["rules"][0] for row in rows)
    assert first[REPLACED] == 0 and within_four_sigma(first[MASKED], 3 * 3000, 0.1)
    # Masks and ngrams are independent.
    recipe = make_recipe(p_mask=0.5, p_pos=0.0, p_ngram=0.5)
    rows = [row for row in rows_of(many, lexicon, recipe, 1) if row["iteration"]]
    whole = [row for row in rows if not row["ngram_length"]]
    masked = Counter(rule for row in whole for rule in row["rules"])
    assert within_four_sigma(len(whole), 3000, 0.5)
    assert within_four_sigma(masked[MASKED], 14 * len(whole), 0.5)


def test_replacements_follow_the_unigrams_without_the_word_itself(
    many: pa.Table, lexicon: Lexicon, make_recipe: Any
) -> None:
    recipe = make_recipe(p_mask=0.0, p_pos=0.5, p_ngram=0.0)
    found: Counter[tuple[int, str]] = Counter()
    for row in (row for row in rows_of(many, lexicon, recipe, 1) if row["iteration"]):
        for place in (1, 2, 3):
            if row["rules"][place] == REPLACED:
                found[place, row["words"][place]] += 1
    for place, word, tag in [(1, "film", "NN"), (2, "good", "JJ"), (3, "run", "VB")]:
        others = {w: n for w, n in COUNTS[tag].items() if w != word}
        observed = {w: n for (at, w), n in found.items() if at == place}
        assert set(observed) <= set(others)
        total = sum(observed.values())
        assert total > 1000
        if len(others) > 1:
            expected = [total * n / sum(others.values()) for n in others.values()]
            assert stats.chisquare([observed[w] for w in others], expected).pvalue > 1e-3


def test_replacements_of_rare_words(make_examples: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    words = [[f"n{i}", "ghost"] for i in range(3000)]
    examples = make_examples(words, [["CD", "NN"]] * 3000)
    recipe = make_recipe(p_mask=0.0, p_pos=1.0, p_ngram=0.0)
    rows = [row for row in rows_of(examples, lexicon, recipe, 1) if row["iteration"]]
    observed = Counter(row["words"][1] for row in rows)
    assert len(rows) == 3000 and set(observed) == set(COUNTS["NN"])
    expected = [3000 * n / 17 for n in COUNTS["NN"].values()]
    assert stats.chisquare([observed[w] for w in COUNTS["NN"]], expected).pvalue > 1e-3
    # A word alone under its tag stays.
    examples = make_examples([["oh", "film"]], [["UH", "NN"]])
    recipe = make_recipe(p_mask=0.0, p_pos=1.0, p_ngram=0.0)
    rows = rows_of(examples, lexicon, recipe, 9)[1:]
    assert rows
    for row in rows:
        assert row["words"][0] == "oh" and row["rules"] == [KEPT, REPLACED]


@pytest.mark.parametrize("length", [14, 3])
def test_ngram_lengths_and_places(make_examples: Any, lexicon: Lexicon, make_recipe: Any, length: int) -> None:
    # Every word is its own, so that no two n-grams are equal and none is dropped.
    words = [[f"n{i}w{j}" for j in range(length)] for i in range(4000)]
    examples = make_examples(words, [["CD"] * length] * 4000)
    recipe = make_recipe(p_mask=0.0, p_pos=0.0, p_ngram=0.25)
    rows = [row for row in rows_of(examples, lexicon, recipe, 1) if row["iteration"]]
    numbers = {int(key): i for i, key in enumerate(examples["key"].to_pylist())}
    lengths = Counter(row["ngram_length"] for row in rows)
    if length == 14:
        assert within_four_sigma(len(rows), 4000, 0.25)
        assert set(lengths) == {1, 2, 3, 4, 5}
        assert stats.chisquare([lengths[n] for n in range(1, 6)]).pvalue > 1e-3
    else:
        # Clipped at the sentence, an n-gram of 3 to 5 is the original and dropped: 2 of 5 are left.
        assert set(lengths) == {1, 2}
        assert within_four_sigma(len(rows), 4000, 0.25 * 0.4)
    for n in (1, 2):
        starts = Counter(row["ngram_start"] for row in rows if row["ngram_length"] == n)
        places = range(length - n + 1)
        assert set(starts) <= set(places)
        assert stats.chisquare([starts[p] for p in places]).pvalue > 1e-3
    for row in rows:
        start, stop = row["ngram_start"], row["ngram_start"] + row["ngram_length"]
        assert row["words"] == words[numbers[row["example"]]][start:stop]
