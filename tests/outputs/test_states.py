"""The states of a teacher's layers: transformers' own, proven row for row, read as batches ask."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.models.teacher import digest_model, load_classifier
from pipeline_lib.outputs.alignment import prove_vectors
from pipeline_lib.outputs.teacher_pass import LogitPass, StatePass
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.vectors import StoredVectors
from tests.kit.pretrained import FAMILIES, write_model
from tests.kit.shard_files import write_set

pytestmark = pytest.mark.usefixtures("store_home")
PAIRS = [
    ("A good film.", "the plots"),
    ("dull", "The plot is not good. a a a"),
    ("film", "film"),
    ("the film is a good film is a good film", "dull plot"),
]


@pytest.fixture(scope="module", params=FAMILIES)
def teacher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_model(tmp_path_factory.mktemp(request.param), request.param)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model, _ = load_classifier(folder, ["no", "yes"])
    model.save_pretrained(folder)
    return folder


def state_pass(folder: Path, layers: tuple[int, ...], storage: str = "float16") -> StatePass:
    return StatePass(folder, digest_model(folder), "cpu", "float32", 14, 64, layers, storage)


def table_of(pairs: list[tuple[str, str]]) -> pa.Table:
    first, second = (list(side) for side in zip(*pairs, strict=True))
    keys = string_keys([f"{a}\t{b}" for a, b in pairs])
    return pa.table({"key": pa.array(keys), "text": first, "text_2": second})


def write_inputs(folder: Path, tables: list[pa.Table]) -> ShardSet:
    return write_set(folder, "sentences", {f"s{i}.arrow": t for i, t in enumerate(tables)})


@pytest.mark.parametrize(("storage", "error"), [("float32", 1e-5), ("float16", 2e-3)])
def test_states_are_those_of_transformers(teacher: Path, storage: str, error: float) -> None:
    own, rows = state_pass(teacher, (3, 1), storage), table_of(PAIRS)
    found = own.compute(rows)
    assert found.column_names == ["key", "states"] and found["key"].equals(rows["key"])
    states = matrix(found["states"])
    assert states.shape == (4, 2, 16) and states.dtype == storage
    model, tokenizer = load_classifier(teacher)
    for pair, row in zip(PAIRS, states, strict=True):
        limit = {"truncation": True, "max_length": 14}
        inputs = tokenizer(*pair, return_tensors="pt", **limit)
        with torch.inference_mode():
            hidden = model.eval()(**inputs, output_hidden_states=True).hidden_states
        assert len(hidden) == 4  # the embeddings, and three layers
        for layer, state in zip((3, 1), row, strict=True):
            np.testing.assert_allclose(state, hidden[layer][0, 0].numpy(), atol=error)


def test_other_layers_are_other_entries_and_logits_stay(teacher: Path) -> None:
    logit_pass = LogitPass(teacher, digest_model(teacher), "cpu", "float32", 14, 64)
    passes = [
        logit_pass,
        state_pass(teacher, (1, 2)),
        state_pass(teacher, (2, 1)),
        state_pass(teacher, (1, 2), "float32"),
    ]
    assert len({own.key("of the input") for own in passes}) == 4
    # The teacher is loaded once for both; that it answers with states changes no logit.
    before = logit_pass.compute(table_of(PAIRS))
    passes[1].compute(table_of(PAIRS))
    assert logit_pass.compute(table_of(PAIRS)).equals(before)


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_slipped_states_are_refused(teacher: Path, tmp_path: Path, storage: str) -> None:
    words = ["film", "plot", "good film", "dull plot", "not good", "the films", "a plot is dull"]
    pairs = [(first, second) for first in words for second in words]
    tables = [table_of(pairs[:20]), table_of(pairs[20:])]
    inputs, own = write_inputs(tmp_path / "in", tables), state_pass(teacher, (1, 2), storage)
    manifest, _ = run_pass(own, inputs, tmp_path / "out", LocalEngine(1))
    assert (manifest.kind, manifest.rows) == ("states", 49)
    outputs = ShardSet.open(tmp_path / "out")
    figures = prove_vectors(inputs, outputs, own)
    assert figures["rows_with_equal_key"] == 49
    # Drawn with its own spread of 0.02, DistilBERT's states are blurred by float16: the shards are
    # computed again whole, as they were.
    blurred = storage == "float16" and "distilbert" in teacher.name
    assert figures["shards_recomputed_whole"] == (2 if blurred else 0)
    stored = StoredVectors([(table, "") for table in outputs.tables()], "states")
    assert stored.shape == (49, 2, 16)
    first, second = outputs.tables()
    slipped = second["states"].take(np.roll(np.arange(29), 1))
    tables = [first, second.set_column(1, "states", slipped)]
    parts = {shard.name: table for shard, table in zip(manifest.shards, tables, strict=True)}
    write_set(tmp_path / "slip", "states", parts, [shard.source for shard in manifest.shards])
    with pytest.raises(PotstillError, match=r"s1\.arrow: .*do not belong to its.*store/states"):
        prove_vectors(inputs, ShardSet.open(tmp_path / "slip"), own)
