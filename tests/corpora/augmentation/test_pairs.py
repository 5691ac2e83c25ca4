"""Augmentation of sentence pairs: which sentence changes when, purity, and the prefix property."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.corpora.augmentation.lexicon import Lexicon
from pipeline_lib.corpora.augmentation.rules import KEPT
from pipeline_lib.corpora.tasks.labelled import Example
from pipeline_lib.corpora.tasks.preparation import prepare_task, prepared_schema
from pipeline_lib.params import Recipe, Tagger
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import ShardSet
from tests.kit.made_up import made_up_task

from .corpus import rows_of

ALONE = LocalEngine(1)

COUNTS = {"N": {f"noun{i}": i + 1 for i in range(9)}, "V": {f"verb{i}": i + 1 for i in range(5)}}
SIDES = ("", "_2")


@pytest.fixture
def lexicon(make_lexicon: Callable[..., Lexicon]) -> Lexicon:
    return make_lexicon(COUNTS)


def pairs(count: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        row: dict[str, Any] = {"key": int(generator.integers(2**63)), "label": 0.5 * number}
        for side in SIDES:
            tags = ["N", "V"] * int(generator.integers(1, 5))
            words = [str(generator.choice(sorted(COUNTS[tag]))) for tag in tags]
            spaces = [True] * (len(words) - 1) + [False]
            row |= {f"text{side}": " ".join(words), f"words{side}": words}
            row |= {f"spaces{side}": spaces, f"tags{side}": tags}
        rows.append(row)
    schema = prepared_schema(pair=True, label=pa.float32(), tagged=True)
    return pa.Table.from_pylist(rows, schema=schema)


def test_sentences_change_in_turn_and_say_so(lexicon: Lexicon, make_recipe: Callable[..., Recipe]) -> None:
    examples = pairs(60)
    originals = {row["key"]: row for row in examples.to_pylist()}
    seen: dict[int, set[str]] = {}
    for row in rows_of(examples, lexicon, make_recipe(), 6):
        assert (row["label"] is None) == (row["iteration"] > 0)
        for side in SIDES:
            original = originals[row["example"]]
            same = row[f"words{side}"] == original[f"words{side}"]
            untouched = set(row[f"rules{side}"]) == {KEPT} and not row[f"ngram_length{side}"]
            assert untouched <= same
            if not same:
                seen.setdefault(row["iteration"], set()).add(side)
            assert row[f"text{side}"] == " ".join(row[f"words{side}"])
    assert seen == {1: {""}, 2: {"_2"}, 3: {"", "_2"}, 4: {""}, 5: {"_2"}, 6: {"", "_2"}}


def test_order_and_neighbours_change_no_row(lexicon: Lexicon, make_recipe: Callable[..., Recipe]) -> None:
    def by_key(rows: list[Any]) -> list[Any]:
        return sorted(rows, key=lambda row: (row["iteration"], row["key"]))

    examples = pairs(30)
    whole = by_key(rows_of(examples, lexicon, make_recipe(), 3))
    turned = examples.take(pa.array(np.arange(30)[::-1]))
    assert by_key(rows_of(turned, lexicon, make_recipe(), 3)) == whole
    first = by_key(rows_of(examples.slice(0, 10), lexicon, make_recipe(), 3))
    keys = set(examples["key"].to_pylist()[:10])
    assert [row for row in whole if row["example"] in keys] == first
    few = rows_of(pairs(20), lexicon, make_recipe(), 3)
    more = rows_of(pairs(20), lexicon, make_recipe(), 7)
    assert more[: len(few)] == few and len(more) > len(few)
    # The sentences of a pair draw apart.
    examples = pairs(40)
    for name in ("text", "words", "spaces", "tags"):
        place = examples.schema.get_field_index(f"{name}_2")
        examples = examples.set_column(place, f"{name}_2", examples[name])
    rows = [r for r in rows_of(examples, lexicon, make_recipe(), 3) if r["iteration"] == 3]
    assert sum(row["words"] != row["words_2"] for row in rows) > len(rows) / 2


def test_a_pairs_key_knows_the_order_of_its_sentences(tmp_path: Path, store_home: Path) -> None:
    scored = {"kind": "regression", "metrics": ["pearson"], "labels": {"min": 0.0, "max": 5.0}}
    task = made_up_task(**{"text": ["a", "b"], "blocks": 1} | scored)
    texts = [("a b", "c"), ("c", "a b"), ("a", "b c"), ("a b c", "a")]
    examples = [Example(text, 1.0) for text in texts]
    splits = {"train": examples, "dev": examples[:1]}
    prepare_task(splits, {}, task, Tagger(engine="none", model=None), tmp_path / "out", ALONE)
    table = ShardSet.open(tmp_path / "out/train").to_table()
    assert len(set(table["key"].to_pylist())) == 4
    assert table.schema.names[-4:] == ["text_2", "words_2", "spaces_2", "tags_2"]
