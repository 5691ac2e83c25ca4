"""The three rules: against a word-by-word reference, as a pure function, and as text."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.hashing import salt, sequence_keys, string_keys, uniform
from pipeline_lib.base.text import MASK
from pipeline_lib.corpora.augmentation.lexicon import Lexicon
from pipeline_lib.corpora.augmentation.rules import SEED, Counts, augment_block, transfer_schema
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
        key = sequence_keys(string_keys(row["words"]), np.array([0, len(row["words"])]))
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


def test_originals_come_first_and_untouched(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples = block()
    iteration, originals, counts = next(augment_block(examples, lexicon, make_recipe(), 2, None))
    assert iteration == 0 and counts == Counts(rows=examples.num_rows)
    assert originals.schema == transfer_schema(pair=False, label=pa.int32())
    for name in ("key", "label", "text", "words"):
        assert originals[name].to_pylist() == examples[name].to_pylist()
    assert originals["example"].to_pylist() == examples["key"].to_pylist()
    assert {rule for rules in originals["rules"].to_pylist() for rule in rules} == {KEPT}
    for name in ("iteration", "ngram_start", "ngram_length"):
        assert set(originals[name].to_pylist()) == {0}


def test_three_iterations_are_a_prefix_of_six(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples = block()
    short = list(augment_block(examples, lexicon, make_recipe(), 3, None))
    long = list(augment_block(examples, lexicon, make_recipe(), 6, None))
    assert [i for i, _, _ in long] == [0, 1, 2, 3, 4, 5, 6]
    assert len(short) == 4
    for (i, rows, counts), (j, more, counted) in zip(short, long, strict=False):
        assert i == j and counts == counted and rows.equals(more)


def test_no_row_stands_twice(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples = block(longest=3)
    rows = rows_of(examples, lexicon, make_recipe(p_mask=0.3, p_pos=0.3), 8)
    made = [tuple(row["words"]) for row in rows if row["iteration"]]
    assert len(made) > 30
    assert len(set(made)) == len(made)
    assert not set(made) & {tuple(words) for words in examples["words"].to_pylist()}
    assert len({row["key"] for row in rows if row["iteration"]}) == len(made)


def test_counts_say_what_was_done(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples, cap = block(longest=4), 110
    total = Counts()
    rows: list[dict[str, Any]] = []
    recipe = make_recipe()
    made_in = list(augment_block(examples, lexicon, recipe, 6, cap))
    for _, table, counts in made_in:
        total.add(counts)
        rows += table.to_pylist()
    used = Counter(rule for row in rows for rule in row["rules"])
    assert total.rows == len(rows) == cap
    assert (total.masked, total.replaced) == (used[MASKED], used[REPLACED])
    assert total.ngrams == sum(row["ngram_length"] > 0 for row in rows)
    assert total.duplicates > 0 and total.over_cap > 0
    distinct = len(set(examples["key"].to_pylist()))
    made = total.rows - examples.num_rows
    iteration = made_in[-1][0]
    assert iteration < 6  # no shard is made once the cap is reached
    assert made + total.duplicates + total.over_cap == iteration * distinct


def by_origin(rows: list[dict[str, Any]]) -> dict[tuple[int, int], dict[str, Any]]:
    return {(row["example"], row["iteration"]): row for row in rows if row["iteration"]}


def assert_same_but_for_duplicates(
    found: list[dict[str, Any]], wanted: list[dict[str, Any]], examples: set[int]
) -> None:
    """Rows of ``examples`` are equal; one absent on a side stands there under another example."""
    one, other = by_origin(found), by_origin(wanted)
    ours = {origin for origin in one | other if origin[0] in examples}
    assert len(ours) > 20
    for origin in ours:
        if origin in one and origin in other:
            assert one[origin] == other[origin]
        else:
            row, rest = (one[origin], wanted) if origin in one else (other[origin], found)
            assert row["key"] in {r["key"] for r in rest}


def test_the_order_of_examples_changes_no_row(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples = block(count=60)
    shuffled = examples.take(np.random.default_rng(3).permutation(examples.num_rows))
    one, other = (rows_of(rows, lexicon, make_recipe(), 4) for rows in (examples, shuffled))
    assert one != other
    assert_same_but_for_duplicates(one, other, set(examples["key"].to_pylist()))
    assert {row["key"] for row in one} == {row["key"] for row in other}


def test_examples_do_not_see_each_other(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples = block(count=60)
    whole = rows_of(examples, lexicon, make_recipe(), 4)
    for part in (examples.slice(0, 30), examples.slice(30), examples.slice(1)):
        alone = rows_of(part, lexicon, make_recipe(), 4)
        assert_same_but_for_duplicates(alone, whole, set(part["key"].to_pylist()))


def test_an_iteration_changes_the_rows(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    one = by_origin(rows_of(block(longest=12), lexicon, make_recipe(), 2))
    second = [o for o in one if o[1] == 2 and (o[0], 1) in one]
    assert second and all(one[o]["words"] != one[o[0], 1]["words"] for o in second)


def test_zeros_and_no_iterations_keep_the_originals_alone(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples = block()
    zeros = make_recipe(p_mask=0.0, p_pos=0.0, p_ngram=0.0)
    assert len(rows_of(examples, lexicon, zeros, 5)) == examples.num_rows
    assert len(rows_of(examples, lexicon, make_recipe(), 0)) == examples.num_rows
    assert rows_of(examples.slice(0, 0), lexicon, make_recipe(), 3) == []


def test_ones_change_every_word(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    masked = rows_of(block(), lexicon, make_recipe(p_mask=1.0, p_pos=0.0, p_ngram=0.0), 2)
    masked = [row for row in masked if row["iteration"]]
    assert masked and all(set(row["words"]) == {MASK} for row in masked)
    # All masked, sentences of one length are equal: one of each is left.
    assert len({len(row["words"]) for row in masked}) == len(masked)
    replaced = rows_of(block(), lexicon, make_recipe(p_mask=0.0, p_pos=1.0, p_ngram=0.0), 1)
    words = block().to_pylist()
    tags = {row["key"]: row["tags"] for row in words}
    originals = {row["key"]: row["words"] for row in words}
    checked = Counter()
    for row in (row for row in replaced if row["iteration"]):
        for word, rule, tag, before in zip(
            row["words"], row["rules"], tags[row["example"]], originals[row["example"]], strict=True
        ):
            possible = bool(set(COUNTS.get(tag, {})) - {before})
            assert rule == (REPLACED if possible else KEPT)
            assert (word == before) == (not possible)
            assert not possible or word in COUNTS[tag]
            checked[possible] += 1
    assert checked[True] > 50 and checked[False] > 5


def blanks_between(row: dict[str, Any]) -> list[str]:
    """Return what stands between each word and the next in the row's text."""
    place, blanks = len(row["words"][0]), []
    assert row["text"].startswith(row["words"][0])
    for word in row["words"][1:]:
        start = row["text"].index(word, place)
        blanks.append(row["text"][place:start])
        place = start + len(word)
    assert place == len(row["text"])
    return blanks


def test_a_changed_word_is_never_glued_to_its_neighbour(block: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    rows = rows_of(block(count=80), lexicon, make_recipe(p_mask=0.2, p_pos=0.4), 3)
    glued = Counter()
    for row in rows:
        for i, blank in enumerate(blanks_between(row)):
            assert blank in ("", " ")
            letters = row["words"][i][-1].isalnum() and row["words"][i + 1][0].isalnum()
            changed = row["rules"][i] != KEPT or row["rules"][i + 1] != KEPT
            if letters and changed:
                assert blank == " "
            glued[changed, blank] += 1
    # Blanks are added there alone: elsewhere words stay as they were written.
    assert glued[False, ""] > 20 and glued[True, ""] > 5


def test_contractions_by_hand(make_examples: Any, lexicon: Lexicon, make_recipe: Any) -> None:
    examples = make_examples([["do", "n't", "run"]], [["VB", "RB", "VB"]], [[False, True, False]])
    recipe = make_recipe(p_mask=0.0, p_pos=0.5, p_ngram=0.0)
    texts = {row["text"] for row in rows_of(examples, lexicon, recipe, 60)}
    assert texts >= {"don't run", "do very run", "runn't run".replace("runn't", "run n't")}
    assert not {"dovery run", "runn't run", "runvery run"} & texts


def test_a_block_is_what_the_lexicon_file_says(
    block: Any, make_lexicon: Callable[..., Lexicon], make_recipe: Any
) -> None:
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
