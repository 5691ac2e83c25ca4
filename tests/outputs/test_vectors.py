"""Sentence vectors: what pooling means, and the pass through the store."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.processor import computed_on
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.models.vector_model import load_vector_model
from pipeline_lib.outputs.alignment import prove_vectors
from pipeline_lib.outputs.vectors import VectorPass
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.vectors import StoredVectors
from tests.kit.shard_files import write_set
from tests.pipeline.corpus import sentences, write_encoder

ALONE = LocalEngine(1)

pytestmark = pytest.mark.usefixtures("store_home")
TEXTS = [text for _, text in sentences()["train"][:60]]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    write_encoder(folder)
    return folder


def vector_pass(encoder: Path, storage: str = "float32", pooling: str = "cls") -> VectorPass:
    digest = digest_model(encoder)
    return VectorPass(encoder, digest, "cpu", "float32", 32, 256, pooling, storage)


def write_texts(folder: Path, shards: list[list[str]], pair: bool = False) -> ShardSet:
    tables = {}
    for number, texts in enumerate(shards):
        second = {"text_2": texts[::-1]} if pair else {}
        tables[f"s{number}.arrow"] = pa.table({"key": string_keys(texts), "text": texts, **second})
    return write_set(folder, "sentences", tables)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_pooling_is_what_transformers_gives(encoder: Path, pooling: str) -> None:
    model = load_vector_model(encoder, "cpu", "float32", pooling)
    found = model.predict(TEXTS, 32, 256)
    for text, vector in zip(TEXTS[:20], found, strict=False):
        inputs = model.tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            states = model.model(**inputs).last_hidden_state[0]
        wanted = {"cls": states[0], "mean": states.mean(0)}
        np.testing.assert_allclose(vector, wanted[pooling].numpy(), atol=1e-5)


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_vectors_are_read_by_row_over_shards(encoder: Path, tmp_path: Path, storage: str) -> None:
    inputs = write_texts(tmp_path / "in", [TEXTS[:25], TEXTS[25:30], TEXTS[30:]])
    own = vector_pass(encoder, storage)
    manifest, report = run_pass(own, inputs, tmp_path / "out", ALONE)
    assert (manifest.kind, manifest.rows, report.computed) == ("vectors", 60, 3)
    assert {shard.computed_on for shard in manifest.shards} == {computed_on("cpu")}
    outputs = ShardSet.open(tmp_path / "out")
    stored = StoredVectors([(table, "") for table in outputs.tables()])
    rows = np.array([59, 0, 24, 25, 29, 30, 0])
    found = stored[rows]
    for row, vector in zip(rows, found, strict=True):
        alone = own.teacher().predict([TEXTS[row]], 32, 256)[0]
        assert alone @ vector > 0.999 * np.linalg.norm(alone) * np.linalg.norm(vector)
    assert found.dtype == np.float32
    assert stored.shape == (60, 32)
    figures = prove_vectors(inputs, outputs, own)
    assert figures["rows_with_equal_key"] == 60
    assert figures["recomputed_rows"] > 30
    assert figures["nearest_to_their_own"] > 0.95


def test_pairs_have_a_vector_for_each_sentence(encoder: Path, tmp_path: Path) -> None:
    inputs = write_texts(tmp_path / "in", [TEXTS[:8]], pair=True)
    run_pass(vector_pass(encoder), inputs, tmp_path / "out", ALONE)
    table = ShardSet.open(tmp_path / "out").to_table()
    assert table.column_names == ["key", "vector", "vector_2"]
    first, second = (StoredVectors([(table, side)])[np.arange(8)] for side in ("", "_2"))
    np.testing.assert_array_equal(first, second[::-1])


def test_other_settings_are_other_entries(encoder: Path) -> None:
    passes = [vector_pass(encoder, **changes) for changes in ({}, {"storage": "float16"}, {"pooling": "mean"})]
    assert len({one.key("of the input") for one in passes}) == 3
