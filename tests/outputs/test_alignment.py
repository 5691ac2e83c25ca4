"""The proof of alignment: sound outputs pass in every format, and rows that slipped do not."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.outputs.alignment import (
    TOLERANCE,
    different_rows,
    mean_distance,
    prove_alignment,
    prove_vectors,
    telling_rows,
)
from pipeline_lib.outputs.teacher_pass import LogitPass
from pipeline_lib.outputs.vectors import VectorPass
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet, write_manifest, write_shard
from pipeline_lib.shards.store import Store
from tests.kit.shard_files import write_set
from tests.pipeline.corpus import sentences, write_encoder

pytestmark = pytest.mark.usefixtures("store_home")
TEXTS = [text for rows in sentences().values() for _, text in rows][:320]
SHARDS = 20
"""Of sixteen rows each: eight of them are run again."""
PRECISIONS = ["float32", "bfloat16"]


@pytest.fixture(scope="module")
def teachers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write teachers: as drawn at random (chance), with clear answers, and one that is constant."""
    found = {}
    for name, factor in (("chance", 1.0), ("clear", 100.0), ("constant", 0.0)):
        folder = found[name] = tmp_path_factory.mktemp(name)
        write_encoder(folder, labels=2)
        weights = load_file(folder / "model.safetensors")
        weights["classifier.weight"] *= factor
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return found


def logit_pass(folder: Path, precision: str = "float32") -> LogitPass:
    return LogitPass(folder, digest_model(folder), "cpu", precision, 32, 256)


def vector_pass(folder: Path, precision: str, storage: str = "float16") -> VectorPass:
    return VectorPass(folder, digest_model(folder), "cpu", precision, 32, 256, "mean", storage)


def write_inputs(folder: Path, shards: int = SHARDS, labelled: bool = False) -> ShardSet:
    tables = {}
    for number, texts in enumerate(np.array_split(np.array(TEXTS, object), shards)):
        # Only the first is of originals; the labels of held-out rows can all be hidden.
        known = labelled and number == 0
        label = [row % 2 if known else None for row in range(len(texts))]
        columns = {"key": string_keys(texts.tolist()), "label": pa.array(label, pa.int32())}
        table = pa.table(columns | {"text": texts.tolist()})
        tables[f"s{number:03d}.arrow"] = table
    return write_set(folder, "sentences", tables)


def computed(inputs: ShardSet, own: LogitPass, folder: Path) -> ShardSet:
    with torch.random.fork_rng():
        run_pass(own, inputs, folder, LocalEngine(1))
    return ShardSet.open(folder)


Passed = tuple[ShardSet, LogitPass, ShardSet]
"""Inputs, a pass over them, and its outputs."""


@pytest.fixture(scope="module")
def passed(teachers: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Passed]:
    """Return the maker of a teacher's pass by its name, run once for all tests."""

    @cache
    def make(name: str, precision: str = "float32") -> Passed:
        folder = tmp_path_factory.mktemp(f"{name}-{precision}")
        inputs, own = write_inputs(folder / "in"), logit_pass(teachers[name], precision)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("POTSTILL_HOME", str(folder / "home"))
            return inputs, own, computed(inputs, own, folder / "out")

    return make


def slipped(outputs: ShardSet, folder: Path, shards: set[int], order: Callable) -> ShardSet:
    """Write a copy in which the outputs of some shards changed places; the keys did not."""
    written = []
    for number, table in enumerate(outputs.tables()):
        if number in shards:
            moved = table.take(order(np.arange(table.num_rows)))
            table = moved.set_column(0, "key", table["key"])
        shard = outputs.manifest.shards[number]
        written.append(write_shard(folder / shard.name, table, shard.source))
    write_manifest(folder, replace(outputs.manifest, shards=written))
    return ShardSet.open(folder)


ORDERS = {
    "by one": lambda rows: np.roll(rows, 1),
    "by one, back": lambda rows: np.roll(rows, -1),
    "reversed": lambda rows: rows[::-1],
    "at random": lambda rows: np.random.default_rng(1).permutation(rows),
}


def test_outputs_that_cannot_be_right_are_not_stored(teachers: dict[str, Path], tmp_path: Path) -> None:
    inputs, broken = write_inputs(tmp_path / "in", 4, labelled=True), tmp_path / "broken"
    shutil.copytree(teachers["clear"], broken)
    weights = load_file(broken / "model.safetensors")
    # Every text has a full stop; those that a model is tried with as it is loaded have none.
    stop = Tokenizer.from_file(str(broken / "tokenizer.json")).token_to_id(".")
    weights["bert.embeddings.word_embeddings.weight"][stop] = 3e38
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    sound = logit_pass(teachers["clear"])
    for own, message in (
        (logit_pass(broken), r"logits of s000\.arrow: not a finite number in the outputs of 80 of"),
        (logit_pass(teachers["constant"]), r"logits of s000\.arrow: constant: the same output for 80"),
        (replace(sound, agreement=1.0), r"s000\.arrow: the agreement of 80 labelled rows"),
    ):
        with pytest.raises(PotstillError, match=message):
            computed(inputs, own, tmp_path / "out")
        # Neither this shard, nor a manifest.
        assert Store("logits").find(own.key(inputs.manifest.shards[0].sha256)) is None
        assert not (tmp_path / "out/manifest.json").exists()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["chance", "clear", "constant"])
def test_sound_logits_pass(passed: Callable[..., Passed], name: str, precision: str) -> None:
    inputs, own, outputs = passed(name, precision)
    figures = prove_alignment(inputs, outputs, own)
    assert figures["rows_with_equal_key"] == figures["rows"] == 320
    assert figures["recomputed_rows"] >= 2 * SHARDS
    assert figures["shards_recomputed_whole"] == 0
    assert "agreement_with_labels" not in figures


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["chance", "clear"])
def test_one_slipped_shard_of_many_is_refused(
    passed: Callable[..., Passed], tmp_path: Path, name: str, precision: str, order: str
) -> None:
    inputs, own, outputs = passed(name, precision)
    wrong = slipped(outputs, tmp_path / "slip", {13}, ORDERS[order])
    with pytest.raises(PotstillError, match=r"s013\.arrow: .*do not belong to its.*store/logi"):
        prove_alignment(inputs, wrong, own)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_another_teachers_logits_are_refused(
    passed: Callable[..., Passed], teachers: dict[str, Path], precision: str
) -> None:
    inputs, _, outputs = passed("chance", precision)
    with pytest.raises(PotstillError, match="do not belong to its rows"):
        prove_alignment(inputs, outputs, logit_pass(teachers["clear"], precision))


def test_rows_that_rounding_blurs_are_computed_again_as_they_were(
    teachers: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TOLERANCE, "bfloat16", -1.0)
    inputs, own = write_inputs(tmp_path / "in", 4), logit_pass(teachers["chance"], "bfloat16")
    outputs = computed(inputs, own, tmp_path / "out")
    assert prove_alignment(inputs, outputs, own)["shards_recomputed_whole"] > 0
    wrong = slipped(outputs, tmp_path / "slip", {2}, ORDERS["by one"])
    with pytest.raises(PotstillError, match="s002"):
        prove_alignment(inputs, wrong, own)


def test_agreement_with_the_labels_is_asked_for_where_it_is_known(teachers: dict[str, Path], tmp_path: Path) -> None:
    inputs, own = write_inputs(tmp_path / "in", labelled=True), logit_pass(teachers["clear"])
    outputs = computed(inputs, own, tmp_path / "out")
    figures = prove_alignment(inputs, outputs, own, 0.0)
    assert figures["labelled_rows"] == 16
    with pytest.raises(PotstillError, match="teacher's own is 100"):
        prove_alignment(inputs, outputs, own, 1.0)


def test_keys_in_another_order_are_refused(passed: Callable[..., Passed], tmp_path: Path) -> None:
    inputs, own, outputs = passed("clear")
    written = []
    for shard, table in zip(outputs.manifest.shards, outputs.tables(), strict=True):
        table = table.take(np.arange(table.num_rows)[::-1])
        written.append(write_shard(tmp_path / "keys" / shard.name, table, shard.source))
    write_manifest(tmp_path / "keys", replace(outputs.manifest, shards=written))
    with pytest.raises(PotstillError, match="different keys"):
        prove_alignment(inputs, ShardSet.open(tmp_path / "keys"), own)


@pytest.mark.parametrize(
    ("precision", "storage"), [("float32", "float32"), ("float32", "float16"), ("bfloat16", "float16")]
)
def test_every_slipped_shard_of_vectors_is_refused(
    teachers: dict[str, Path], tmp_path: Path, precision: str, storage: str
) -> None:
    inputs, own = write_inputs(tmp_path / "in"), vector_pass(teachers["clear"], precision, storage)
    outputs = computed(inputs, own, tmp_path / "out")
    figures = prove_vectors(inputs, outputs, own)
    assert figures["nearest_to_their_own"] == 1.0
    assert figures["shards_recomputed_whole"] == 0
    for number, order in enumerate(ORDERS.values()):
        wrong = slipped(outputs, tmp_path / f"slip{number}", {3, 11}, order)
        with pytest.raises(PotstillError, match=r"s003\.arrow: .*do not belong.*store/vectors"):
            prove_vectors(inputs, wrong, own)


def test_two_clusters_sorted_by_label_show_a_slip_by_one() -> None:
    # Within a cluster neighbours are alike; only at its border a slip can be seen.
    draw = np.random.default_rng(1).normal(scale=0.01, size=(1000, 2))
    logits = draw + np.repeat([[3.0, -3.0], [-3.0, 3.0]], 500, axis=0)
    chosen = telling_rows(logits, 8)
    assert {499, 500} <= set(chosen) and len(chosen) <= 8
    for slip in (1, -1):
        error = np.linalg.norm(np.roll(logits, slip, axis=0)[chosen] - logits[chosen], axis=1)
        assert error.max() > 0.25 * mean_distance(logits[chosen])


def test_different_rows_differ_and_small_shards_are_taken_whole() -> None:
    values = np.array([[0.0], [0.1], [5.0], [5.0], [9.0]])
    assert different_rows(values, 3).tolist() == [4, 0, 2]
    assert sorted(different_rows(values, 9)) == [0, 1, 2, 3, 4]
    assert telling_rows(values[:1], 8).tolist() == [0]
    assert mean_distance(values[:1]) == 0.0
    assert mean_distance(np.array([[0.0], [1.0]])) == 1.0


def test_a_shard_of_one_row_is_proven(teachers: dict[str, Path], tmp_path: Path) -> None:
    table = pa.table({"key": string_keys(TEXTS[:1]), "text": TEXTS[:1]})
    inputs = write_set(tmp_path / "in", "sentences", {"s0.arrow": table})
    own = logit_pass(teachers["clear"])
    outputs = computed(inputs, own, tmp_path / "out")
    assert prove_alignment(inputs, outputs, own)["recomputed_rows"] == 1
    assert matrix(outputs.to_table()["logits"]).shape == (1, 2)
