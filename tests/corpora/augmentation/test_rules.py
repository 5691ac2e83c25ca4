"""The three rules: against a word-by-word reference, as a pure function, and as text."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.hashing import salt, sequence_keys, uniform, word_keys
from pipeline_lib.base.text import MASK
from pipeline_lib.corpora.augmentation.lexicon import Lexicon
from pipeline_lib.corpora.augmentation.rules import SEED, augment_block, transfer_schema
from pipeline_lib.params import Recipe
from pipeline_lib.shards.columns import KEPT, MASKED, REPLACED

from .corpus import COUNTS, rows_of

GOLDEN = 0x9E3779B97F4A7C15


# --- The reference: one word after the other, in plain Python. -----------------------------------


def draw(key: int, iteration: int, purpose: str) -> float:
    counter = np.array([key % 2**64], np.uint64)
    return float(uniform(counter, salt(SEED, iteration, purpose))[0])


def other_word(word: str, tag: str, u: float) -> str | None:
    others = [(w, n) for w, n in sorted(COUNTS.get(tag, {}).items()) if w != word]
    ticket = int(u * sum(n for _, n in others))
    for candidate, n in others:
        if ticket < n:
            return candidate
        ticket -= n
    return None


def changed_words(example: dict[str, Any], recipe: Recipe, iteration: int) -> Iterator[tuple[str, int]]:
    for i, (word, tag) in enumerate(zip(example["words"], example["tags"], strict=True)):
        counter = example["key"] + i * GOLDEN
        x = draw(counter, iteration, "rule")
        if x < recipe.p_mask:
            yield MASK, MASKED
            continue
        other = None
        if x < recipe.p_mask + recipe.p_pos:
            other = other_word(word, tag, draw(counter, iteration, "replacement"))
        yield (word, KEPT) if other is None else (other, REPLACED)


def synthetic(example: dict[str, Any], recipe: Recipe, iteration: int) -> dict[str, Any]:
    pairs = list(changed_words(example, recipe, iteration))
    words, rules = [word for word, _ in pairs], [rule for _, rule in pairs]
    spaces = list(example["spaces"])
    for i in range(len(words) - 1):
        touched = rules[i] != KEPT or rules[i + 1] != KEPT
        if touched and words[i][-1].isalnum() and words[i + 1][0].isalnum():
            spaces[i] = True
    start, length = 0, 0
    if draw(example["key"], iteration, "ngram") < recipe.p_ngram:
        size = int(draw(example["key"], iteration, "ngram size") * recipe.ngram_max)
        length = min(1 + size, len(words))
        place = draw(example["key"], iteration, "ngram place")
        start = int(place * (len(words) - length + 1))
    end = start + (length or len(words))
    words, rules, spaces = words[start:end], rules[start:end], spaces[start:end]
    blanks = [" " * space for space in spaces[:-1]] + [""]
    return {
        "example": example["key"],
        "iteration": iteration,
        "label": None,
        "text": "".join(w + b for w, b in zip(words, blanks, strict=True)),
        "words": words,
        "rules": rules,
        "ngram_start": start,
        "ngram_length": length,
    }


def reference(
    examples: list[dict[str, Any]], recipe: Recipe, n_iter: int, cap: int | None = None
) -> list[dict[str, Any]]:
    rows, seen = [], {tuple(example["words"]) for example in examples}
    room = 10**9 if cap is None else max(0, cap - len(examples))
    distinct: dict[tuple[str, ...], dict[str, Any]] = {}
    for example in examples:
        distinct.setdefault(tuple(example["words"]), example)
    for iteration in range(1, n_iter + 1):
        for example in distinct.values():
            row = synthetic(example, recipe, iteration)
            if tuple(row["words"]) not in seen and len(rows) < room:
                seen.add(tuple(row["words"]))
                rows.append(row)
    return rows


RECIPES = [
    {},
    {"p_mask": 0.5, "p_pos": 0.0, "p_ngram": 0.0},
    {"p_mask": 0.0, "p_pos": 0.6, "p_ngram": 0.0},
    {"p_mask": 0.0, "p_pos": 0.0, "p_ngram": 1.0},
    {"p_mask": 0.3, "p_pos": 0.7, "p_ngram": 0.5},
    {"p_mask": 0.0, "p_pos": 1.0, "p_ngram": 0.0},
    {"p_mask": 1.0, "p_pos": 0.0, "p_ngram": 0.5, "ngram_max": 3},
    {"p_mask": 0.2, "p_pos": 0.4, "p_ngram": 1.0, "ngram_max": 9},
]


@pytest.mark.parametrize("changes", RECIPES)
@pytest.mark.parametrize("seed", [1, 2])
def test_equals_the_word_by_word_reference(
    block: Any, lexicon: Lexicon, make_recipe: Any, changes: dict[str, float], seed: int
) -> None:
    examples, recipe = block(seed=seed), make_recipe(**changes)
    found = rows_of(examples, lexicon, recipe, 4)[examples.num_rows :]
    expected = reference(examples.to_pylist(), recipe, 4)
    assert len(expected) >= (8 if recipe.p_mask == 1 else 20)
    for row in found:
        key = sequence_keys(word_keys(row["words"]), np.array([0, len(row["words"])]))
        assert row.pop("key") == int(key[0])
    assert found == expected


@pytest.mark.parametrize("cap", [0, 40, 44, 60, 100])
def test_cap_equals_the_reference(block: Any, lexicon: Lexicon, make_recipe: Any, cap: int) -> None:
    examples, recipe = block(), make_recipe()
    everything = rows_of(examples, lexicon, recipe, 4)
    capped = rows_of(examples, lexicon, recipe, 4, cap)
    assert len(capped) == max(cap, examples.num_rows) < len(everything)
    assert capped == everything[: len(capped)]
    expected = reference(examples.to_pylist(), recipe, 4, cap)
    assert [row["words"] for row in capped[examples.num_rows :]] == [r["words"] for r in expected]


def test_originals_and_zeros(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples = block()
    iteration, originals, counts = next(augment_block(examples, lexicon, make_recipe(), 2, None))
    assert iteration == 0 and vars(counts) == {**dict.fromkeys(vars(counts), 0), "rows": examples.num_rows}
    assert originals.schema == transfer_schema(pair=False, label=pa.int32())
    for name in ("key", "label", "text", "words"):
        assert originals[name].to_pylist() == examples[name].to_pylist()
    assert originals["example"].to_pylist() == examples["key"].to_pylist()
    assert {rule for rules in originals["rules"].to_pylist() for rule in rules} == {KEPT}
    for name in ("iteration", "ngram_start", "ngram_length"):
        assert set(originals[name].to_pylist()) == {0}
    # Zeros and no iterations keep the originals alone.
    examples = block()
    zeros = make_recipe(p_mask=0.0, p_pos=0.0, p_ngram=0.0)
    assert len(rows_of(examples, lexicon, zeros, 5)) == examples.num_rows
    assert len(rows_of(examples, lexicon, make_recipe(), 0)) == examples.num_rows
    assert rows_of(examples.slice(0, 0), lexicon, make_recipe(), 3) == []


def test_counts_say_what_was_done(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples, cap = block(longest=4), 110
    total: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    recipe = make_recipe()
    made_in = list(augment_block(examples, lexicon, recipe, 6, cap))
    for _, table, counts in made_in:
        total.update(vars(counts))
        rows += table.to_pylist()
    used = Counter(rule for row in rows for rule in row["rules"])
    assert total["rows"] == len(rows) == cap
    assert (total["masked"], total["replaced"]) == (used[MASKED], used[REPLACED])
    assert total["ngrams"] == sum(row["ngram_length"] > 0 for row in rows)
    assert total["duplicates"] > 0 and total["over_cap"] > 0
    distinct = len(set(examples["key"].to_pylist()))
    made = total["rows"] - examples.num_rows
    iteration = made_in[-1][0]
    assert iteration < 6  # no shard is made once the cap is reached
    assert made + total["duplicates"] + total["over_cap"] == iteration * distinct


def test_blocks_by_hand(
    make_examples: Any, lexicon: Lexicon, make_recipe: Any, block: Any, make_lexicon: Callable[..., Lexicon]
) -> None:
    examples = make_examples([["do", "n't", "run"]], [["VB", "RB", "VB"]], [[False, True, False]])
    recipe = make_recipe(p_mask=0.0, p_pos=0.5, p_ngram=0.0)
    texts = {row["text"] for row in rows_of(examples, lexicon, recipe, 60)}
    assert texts >= {"don't run", "do very run", "runn't run".replace("runn't", "run n't")}
    assert not {"dovery run", "runn't run", "runvery run"} & texts
    # A block is what the lexicon file says.
    one = rows_of(block(), make_lexicon(COUNTS), make_recipe(), 2)
    other = rows_of(block(), make_lexicon(COUNTS | {"NN": {"tree": 1}}), make_recipe(), 2)
    assert one != other
    assert any("tree" in row["words"] for row in other)


def test_an_n_gram_of_a_very_long_sentence_says_where_it_began(
    make_examples: Callable[..., pa.Table], make_lexicon: Callable[..., Lexicon], make_recipe: Callable[..., Recipe]
) -> None:
    words = [[f"w{i}" for i in range(70_000)], [f"w{i}" for i in range(50_000)]]
    examples = make_examples(words, [["X"] * len(sentence) for sentence in words])
    recipe = make_recipe(p_mask=0.0, p_pos=0.0, p_ngram=1.0)
    rows = augment_block(examples, make_lexicon({"X": {"w0": 1}}), recipe, 8, None)
    starts = []
    for _, table, _ in list(rows)[1:]:
        for row in table.to_pylist():
            assert row["words"][0] == f"w{row['ngram_start']}"
            starts.append(row["ngram_start"])
    assert max(starts) > 2**15


def test_rates_of_the_rules(make_examples: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    # No n-grams, and a number to each of 3,000 sentences: only those that no rule changed are duplicates.
    words = [[f"n{i}", *["film", "good", "run", "."] * 3, "film"] for i in range(3000)]
    examples = make_examples(words, [["CD", *["NN", "JJ", "VB", "."] * 3, "NN"]] * 3000)
    recipe = make_recipe(p_mask=0.1, p_pos=0.15, p_ngram=0.0)
    rows = [row for row in rows_of(examples, lexicon, recipe, 1) if row["iteration"]]
    used = Counter(rule for row in rows for rule in row["rules"][1:])
    trials = 3000 * 13
    for rule, p in ((MASKED, 0.1), (REPLACED, 0.15)):
        assert abs(used[rule] - trials * p) <= 4 * np.sqrt(trials * p * (1 - p))
    # The number has a tag that the lexicon lacks: masked, never replaced.
    assert {row["rules"][0] for row in rows} == {KEPT, MASKED}
