"""What words can be substituted by: predictions before nearest words, in a block of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from pipeline_lib.corpora.augmentation.candidates import with_candidates
from pipeline_lib.corpora.augmentation.lexicon import Lexicon
from pipeline_lib.corpora.augmentation.rules import augment_block
from pipeline_lib.corpora.augmentation.transfer_sets import AugmentationPass
from pipeline_lib.params import Recipe
from pipeline_lib.shards.columns import KEPT, SUBSTITUTED
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import Piece, ShardPass, run_pass, run_pieces
from pipeline_lib.shards.shard_sets import ShardSet
from tests.kit.made_up import made_up_task
from tests.kit.shard_files import write_set

LISTS = pa.list_(pa.list_(pa.string()))
RULE = {"p": 1.0, "candidates": 2, "model": "bert", "max_length": 8}
ALWAYS = {"p_mask": 0.0, "p_pos": 0.0, "p_ngram": 0.0, "substitution": RULE}
NEAREST = {"film": ["movie", "plot"], "lamp": ["light"]}


def nearest_table() -> pa.Table:
    kind = pa.list_(pa.string())
    return pa.table({"word": [*NEAREST], "nearest": pa.array([*NEAREST.values()], kind)})


def test_predictions_come_before_the_nearest_words(make_examples: Callable[..., pa.Table]) -> None:
    words = [["a", "film", "."], ["lamp"]]
    examples = make_examples(words, [["X"] * 3, ["X"]])
    predicted = pa.table({"predicted": pa.array([[["the"], None, None], [["bulb", "fire"]]], LISTS)})
    nearest, both = (
        with_candidates(examples, nearest_table(), *others)["candidates"].to_pylist() for others in ((), (predicted,))
    )
    assert nearest == [[None, ["movie", "plot"], None], [["light"]]]
    assert both == [[["the"], ["movie", "plot"], None], [["bulb", "fire"]]]


def test_every_word_with_candidates_becomes_one_of_them(
    make_examples: Callable[..., pa.Table], make_lexicon: Callable[..., Lexicon], make_recipe: Callable[..., Recipe]
) -> None:
    examples = make_examples([["the", "film", "lamp"]], [["X"] * 3])
    examples = with_candidates(examples, nearest_table())
    lexicon, recipe = make_lexicon({"X": {"the": 1}}), make_recipe(**ALWAYS)
    tables = [table for _, table, _ in augment_block(examples, lexicon, recipe, 30, None)]
    rows = pa.concat_tables(tables[1:]).to_pylist()
    # Each candidate has its turn; later repetitions are duplicates.
    assert {row["text"] for row in rows} == {"the movie light", "the plot light"}
    assert all(row["rules"] == [KEPT, SUBSTITUTED, SUBSTITUTED] for row in rows)


def test_each_sentence_of_a_pair_has_its_own(
    make_examples: Callable[..., pa.Table], make_lexicon: Callable[..., Lexicon], make_recipe: Callable[..., Recipe]
) -> None:
    pairs = make_examples([["film"], ["lamp"]], [["X"], ["X"]])
    for name in ("text", "words", "spaces", "tags"):
        pairs = pairs.append_column(f"{name}_2", pairs[name].take(pa.array([1, 0])))
    # Of a pair the first sentence is changed, then the second, then both.
    predicted = pa.table({n: pa.array([[None], [["oh"]]], LISTS) for n in ("predicted", "predicted_2")})
    examples = with_candidates(pairs, nearest_table(), predicted)
    lexicon, recipe = make_lexicon({"X": {"the": 1}}), make_recipe(**ALWAYS)
    tables = {n: table for n, table, _ in augment_block(examples, lexicon, recipe, 2, None)}
    first, second = ([(row["words"], row["words_2"]) for row in tables[n].to_pylist()] for n in (1, 2))
    assert [two for _, two in first] == [["lamp"], ["film"]]
    assert [one for one, _ in first] in ([["movie"], ["oh"]], [["plot"], ["oh"]])
    assert [one for one, _ in second] == [["film"], ["lamp"]]
    assert second[0][1] == ["light"] and second[1][1] == ["oh"]


@dataclass(frozen=True)
class _Nearest(ShardPass):
    """Finds the words of ``NEAREST``."""

    kind: ClassVar[str] = "nearest_words"
    row_for_row: ClassVar[bool] = False
    version: int = 1

    @property
    def settings(self) -> dict[str, Any]:
        return {"version": self.version}

    def compute(self, rows: pa.Table) -> pa.Table:
        return nearest_table()


@pytest.fixture
def examples(tmp_path: Path, make_examples: Callable[..., pa.Table]) -> ShardSet:
    blocks = [[["film", "one"], ["a", "lamp"]], [["lamp", "two"]]]
    tables = [make_examples(rows, [["X", "X"]] * len(rows)) for rows in blocks]
    files = {f"b{number:03d}.arrow": table for number, table in enumerate(tables)}
    return write_set(tmp_path / "in", "prepared", files, [None, None])


@pytest.fixture
def lexicon(make_lexicon: Callable[..., Lexicon], tmp_path: Path) -> Path:
    make_lexicon({"X": {"a": 2}})
    return next(tmp_path.rglob("lexicon*.arrow"))


@pytest.mark.usefixtures("store_home")
def test_the_augmentation_reads_what_the_store_has_for_its_block(
    examples: ShardSet, lexicon: Path, make_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    task = made_up_task(blocks=2, augment={"n_iter": 1, "cap": None})
    engine, nearest = LocalEngine(1), _Nearest()
    augmentation = AugmentationPass.of(make_recipe(**ALWAYS), task, lexicon, nearest)
    shards = examples.manifest.shards
    run_pieces(nearest, [Piece(s.sha256, examples.path(s), s.name) for s in shards], engine)
    manifest, _ = run_pass(augmentation, examples, tmp_path / "out", engine)
    rows = ShardSet.open(tmp_path / "out").table().to_pylist()
    made = {row["text"] for row in rows if row["iteration"]}
    assert made in ({f"{film} one", "a light", "light two"} for film in NEAREST["film"])
    assert manifest.counts["substituted"] == 3
    assert manifest.made_from["nearest_words"]["version"] == 1


def test_what_candidates_depend_on_is_in_the_key_and_the_models_name_is_not(
    lexicon: Path, make_recipe: Callable[..., Recipe]
) -> None:
    task = made_up_task(augment={"n_iter": 1, "cap": None})

    def key(nearest: ShardPass, **rule: Any) -> str:
        recipe = make_recipe(**ALWAYS | {"substitution": RULE | rule})
        return AugmentationPass.of(recipe, task, lexicon, nearest).key("digest")

    first = key(_Nearest())
    assert key(_Nearest(), model="other", max_length=9) == first
    assert len({first, key(_Nearest(version=2)), key(_Nearest(), p=0.5)}) == 3
    # Recipes without it are stored as before.
    task, recipe = made_up_task(), make_recipe()
    settings = AugmentationPass.of(recipe, task, lexicon).settings
    assert {*settings} == {"lexicon", "recipe", "block_cap"}
    assert {*settings["recipe"]} == {"p_mask", "p_pos", "p_ngram", "ngram_min", "ngram_max", "seed"}
    assert "substitution" not in recipe.model_dump()
