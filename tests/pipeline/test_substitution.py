"""Transfer sets whose words a masked language model substitutes: the stages, from models on."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_lib.shards.columns import KEPT, SUBSTITUTED
from pipeline_lib.shards.shard_sets import ShardSet, read_manifest

from .corpus import write_encoder
from .workspace import BLOCKS, N_ITER, TASK, Workspace

RULE = {"p": 0.4, "candidates": 5, "model": "masked", "max_length": 32}
AUGMENT = f"augment@{TASK}"
SET = Path("data/transfer") / TASK / "similar"


def _add_recipe(params: Any) -> None:
    original = params["transfer"]["original"]
    params["transfer"]["similar"] = {**original, "substitution": dict(RULE)}
    params["models"]["masked"] = {"kind": "path", "path": "masked"}
    params["teachers"]["minilm"]["data"] = ["original", "full"]


@pytest.fixture
def similar(workspace: Workspace) -> Workspace:
    """Return a finished workspace with a further model and a recipe that it predicts words for."""
    write_encoder(workspace / "data/input/masked", masked=1)
    workspace.params(_add_recipe)
    return workspace


def _rows(workspace: Workspace) -> pa.Table:
    return ShardSet.open(workspace / SET).table()


def test_words_are_substituted_and_the_set_says_which(similar: Workspace) -> None:
    similar.stage("fetch_models").sound()
    # Without an iteration nothing is predicted.
    similar.params(lambda params: params["tasks"][TASK]["augment"].update(n_iter=0))
    assert "predictions" not in similar.stage("augment").sound().text
    similar.params(lambda params: params["tasks"][TASK]["augment"].update(n_iter=N_ITER))
    text = similar.stage("augment").sound().text
    for kind in ("nearest_words", "predictions"):
        assert f"{TASK} similar, {kind}: computed {BLOCKS} blocks, reused 0" in text
    rows = [row for row in _rows(similar).to_pylist() if row["iteration"]]
    rules = [rule for row in rows for rule in row["rules"]]
    assert {*rules} == {KEPT, SUBSTITUTED}
    # Of the words drawn, 0.4 of all, some are kept: punctuation, and those that are drawn again.
    assert 0.2 < rules.count(SUBSTITUTED) / len(rules) < 0.4
    assert read_manifest(similar / SET).counts["substituted"] == rules.count(SUBSTITUTED)
    pairs = [pair for row in rows for pair in zip(row["words"], row["rules"], strict=True)]
    words = {word for word, rule in pairs if rule == SUBSTITUTED}
    assert all(word.isalnum() for word in words)
    assert not words & {"UNK", "CLS", "SEP", "PAD", "MASK"}


@pytest.mark.slow
def test_neither_workers_nor_iterations_move_a_byte(similar: Workspace, tmp_path: Path) -> None:
    other = similar.copy(tmp_path / "other")
    similar.dvc("repro", AUGMENT).sound()
    other.params(lambda params: params.update(workers=2))
    other.dvc("repro", AUGMENT).sound()
    assert other.digests(SET) == similar.digests(SET)
    # A further iteration reads what the store has of the words' candidates.
    similar.params(lambda params: params["tasks"][TASK]["augment"].update(n_iter=3))
    run = similar.dvc("repro", AUGMENT).sound()
    assert f"{TASK} similar, predictions: computed 0 blocks, reused {BLOCKS}" in run.text
    before = {name: digest for name, digest in other.digests(SET).items() if "arrow" in name}
    assert before.items() <= similar.digests(SET).items()


@pytest.mark.slow
def test_another_model_reruns_the_tasks_that_read_it_alone(similar: Workspace) -> None:
    similar.dvc("repro", AUGMENT).sound()
    first = similar.digests(SET)
    assert similar.dvc("repro", AUGMENT).sound().stages == ["fingerprint"]
    write_encoder(similar / "data/input/masked", masked=2)
    run = similar.dvc("repro", AUGMENT).sound()
    assert run.stages == ["fingerprint", "fetch_models", AUGMENT]
    assert f"{TASK} similar, predictions: computed {BLOCKS} blocks, reused 0" in run.text
    assert "nearest_words: computed 0 blocks" in run.text
    assert similar.digests(SET) != first
    # Without the recipe no model is read.
    similar.params(lambda params: params["transfer"].pop("similar"))
    similar.dvc("repro", AUGMENT).sound()
    write_encoder(similar / "data/input/masked", masked=3)
    assert similar.dvc("repro", AUGMENT).sound().stages == ["fingerprint", "fetch_models"]


@pytest.mark.slow
def test_the_plan_counts_its_rows(similar: Workspace) -> None:
    similar.dvc("repro", AUGMENT).sound()
    similar.params(lambda params: params["tasks"][TASK]["augment"].update(n_iter=3))
    text = similar.distill("plan").sound().text
    stored = sum(ShardSet.open(similar / SET.with_name(name)).manifest.rows for name in ("original", "full", "similar"))
    assert f"rows: {stored:,} stored, about " in text
    write_encoder(similar / "data/input/masked", masked=2)
    text = similar.distill("plan").sound().text
    without = stored - _rows(similar).num_rows
    assert f"rows: {without:,} stored, about " in text


def test_a_model_that_predicts_no_words_is_refused_before_anything_is_augmented(similar: Workspace) -> None:
    similar.params(lambda params: params["models"]["masked"].update(path="encoder"))
    error = similar.stage("fetch_models").error
    assert "models.masked" in error and "`substitution.model`" in error
