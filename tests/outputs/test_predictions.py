"""The pass over a masked language model: a column of words for each word, row for row."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lib.models.masked_lm import load_masked_lm
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.outputs.predictions import PredictionPass
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet
from tests.kit.pretrained import write_model
from tests.kit.shard_files import write_set

pytestmark = pytest.mark.usefixtures("store_home")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model", "bert", "AutoModelForMaskedLM")


def prediction_pass(model: Path, count: int = 2) -> PredictionPass:
    return PredictionPass(model, digest_model(model), "cpu", "float32", 16, 64, count)


def test_rows_of_pairs_have_the_predictions_of_each_of_their_sentences(
    model: Path, tmp_path: Path, make_examples: Callable[..., pa.Table]
) -> None:
    # A sentence that repeats, one that has no prediction, and one of other words.
    words = [["the", "film", "."], ["lamp"], ["the", "film", "."], ["a", "dull", "plot"]]
    pairs = make_examples(words, [["X"] * len(ws) for ws in words])
    for name in ("text", "words", "spaces", "tags"):
        pairs = pairs.append_column(f"{name}_2", pairs[name].take(pa.array([3, 2, 1, 0])))
    blocks = {"b000.arrow": pairs.slice(0, 3), "b001.arrow": pairs.slice(3)}
    inputs = write_set(tmp_path / "in", "prepared", blocks, [None, None])
    manifest, _ = run_pass(prediction_pass(model), inputs, tmp_path / "out", LocalEngine(1))
    outputs = ShardSet.open(tmp_path / "out").table()
    assert outputs["key"].equals(pairs["key"])
    loaded = load_masked_lm(model, "cpu", "float32", 2)
    for side in column_suffixes(pairs):
        columns = [pairs[f"{name}{side}"].to_pylist() for name in ("words", "spaces")]
        wanted = [
            [None if n[0] < 0 else [loaded.words[i] for i in n] for n in numbers.tolist()]
            for numbers in (loaded.predict_words([row], 16, 64)[0] for row in zip(*columns, strict=True))
        ]
        assert outputs[f"predicted{side}"].to_pylist() == wanted
    assert [[one is None for one in row] for row in wanted][2] == [True]
    # Each distinct sentence of a block's side is read once per predicted word.
    the_film, a_plot = 2 * 5, 3 * 5
    assert manifest.counts["tokens"] == the_film + (a_plot + the_film) + a_plot + the_film


def test_an_empty_block(model: Path, make_examples: Callable[..., pa.Table]) -> None:
    empty = make_examples([["a"]], [["X"]]).slice(0, 0)
    [(table, counts)] = prediction_pass(model).outputs(empty)
    assert table.num_rows == 0 and counts == {"tokens": 0}
    assert table.schema.field("predicted").type == pa.list_(pa.list_(pa.string()))


def test_the_key_has_the_count_and_the_model(model: Path) -> None:
    keys = {prediction_pass(model, count).key("block") for count in (2, 3)}
    (model / "config.json").write_text((model / "config.json").read_text() + "\n")
    assert len(keys | {prediction_pass(model).key("block")}) == 3
