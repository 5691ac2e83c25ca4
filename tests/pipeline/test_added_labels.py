"""Labels added between two runs: which texts to label is asked of a student, and what runs again.

A finished teacher stands for every one whose answers to a text do not change with the labels.
"""

import csv
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.shards.shard_sets import ShardSet, read_manifest

from .corpus import GOOD, sentences
from .workspace import BLOCKS, N_ITER, OUTPUTS, SHARDS, TASK, TEACHER, TRANSFER, Workspace

pytestmark = pytest.mark.slow

UNLABELLED = 45
ASKED = 6
FILE = f"data/input/{TASK}/added_labels.jsonl"
PRECOMPUTE = f"precompute@{TASK}"


def _with_more_texts(params: Any) -> None:
    tuning = {"kind": "finished", "checkpoint": "teacher_{task}"}
    params["teachers"][TEACHER] |= {"model": None, "tuning": tuning}
    params["tasks"][TASK]["source"]["files"]["unlabelled"] = "more.tsv"
    params["transfer"]["full"]["unlabelled"] = True


@pytest.fixture
def asked(workspace: Workspace) -> Workspace:
    """Return the finished run with unlabelled texts, which a teacher tuned elsewhere answered."""
    texts = [f"{text} once more" for _, text in sentences()["train"][:UNLABELLED]]
    path = workspace / "data/input/more.tsv"
    path.write_text("\n".join(["sentence", *texts]) + "\n", encoding="utf-8")
    (workspace / f"data/teachers/{TASK}/{TEACHER}").rename(workspace / f"data/input/teacher_{TASK}")
    workspace.params(_with_more_texts)
    workspace.dvc("repro", PRECOMPUTE).sound()
    return workspace


def _label_next(workspace: Workspace, name: str, rows: int) -> list[str]:
    """Ask which texts to label, label them, give them back; return the texts."""
    shown = workspace.distill("shards", "worklist", TASK, "--kind", "label-next", "--rows", str(rows), "--to", name)
    assert f"distill init --add-labels {name}" in shown.sound().text
    path = workspace / name
    with path.open(newline="", encoding="utf-8") as file:
        records = [*csv.DictReader(file)]
    assert [*records[0]] == ["sentence", "label", "student", "teacher", "uncertainty"]
    assert not any(record["label"] for record in records)
    for record in records:
        record["label"] = str(int(any(f" {word}" in record["sentence"] for word in GOOD)))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*records[0]])
        writer.writeheader()
        writer.writerows(records)
    said = workspace.distill("init", "--add-labels", name).sound().text
    assert f"{rows} of {rows} rows are new to the training set of {TASK}" in said
    return [record["sentence"] for record in records]


def _blocks(workspace: Workspace, folder: str | Path, letter: str) -> dict[str, str]:
    """Return the digests of a set's blocks of one kind."""
    shards = read_manifest(workspace / folder).shards
    return {shard.name: shard.sha256 for shard in shards if shard.name.startswith(letter)}


def test_labels_rerun_what_they_touch_round_after_round(asked: Workspace) -> None:
    folders = (TRANSFER, OUTPUTS)
    before = {folder: _blocks(asked, folder, "u") for folder in folders}
    assert len(before[TRANSFER]) == SHARDS
    heldout = asked.digests(f"data/outputs/{TASK}/heldout")
    lexicon = asked.digests(f"data/lexicons/{TASK}")
    splits = {split: asked.digests(f"data/tasks/{TASK}/{split}") for split in ("dev", "test")}
    first = _label_next(asked, "first.csv", ASKED)
    shards_before = _blocks(asked, TRANSFER, "b")
    run = asked.dvc("repro", PRECOMPUTE).sound()
    assert run.stages == [
        "fingerprint",
        *(f"{stage}@{TASK}" for stage in ("fetch_data", "prepare", "augment")),
        *(f"{stage}@{TASK}" for stage in ("finetune_teacher", "precompute")),
    ]
    shards_after = _blocks(asked, TRANSFER, "b")
    changed = sum(shards_after[name] != shards_before[name] for name in shards_after)
    # Only blocks of labelled rows that have new ones are answered; both sets share the originals.
    assert 0 < changed <= SHARDS and run.tally == (changed, 2 * SHARDS + BLOCKS - changed)
    assert {folder: _blocks(asked, folder, "u") for folder in folders} == before
    assert asked.digests(f"data/lexicons/{TASK}") == lexicon
    shards = {name: sha for name, sha in heldout.items() if name.endswith(".arrow")}
    assert shards.items() <= asked.digests(f"data/outputs/{TASK}/heldout").items()
    for split, files in splits.items():
        found = asked.digests(f"data/tasks/{TASK}/{split}")
        assert [found[name] == files[name] for name in files if name.endswith(".arrow")] == [True]
    train = ShardSet.open(asked / f"data/tasks/{TASK}/train").table()
    assert {*first} <= {*train["text"].to_pylist()}
    # A second round asks for others, and finds the first one's labels in their place.
    second = _label_next(asked, "second.csv", 1)
    assert not {*first} & {*second}
    assert len((asked / FILE).read_text().splitlines()) == ASKED + 1
    run = asked.dvc("repro", PRECOMPUTE).sound()
    assert 0 < run.tally[0] <= 1 + N_ITER and sum(run.tally) == 2 * SHARDS + BLOCKS
    # And back again: nothing is computed.
    (asked / FILE).unlink()
    asked.params(lambda params: params["tasks"][TASK].pop("added_labels"))
    assert asked.dvc("repro", PRECOMPUTE).sound().status == 0
    assert {folder: _blocks(asked, folder, "u") for folder in folders} == before
    assert _blocks(asked, TRANSFER, "b") == shards_before


def test_students_are_trained_with_the_labels_and_asked_again(asked: Workspace) -> None:
    texts = _label_next(asked, "next.csv", ASKED)
    folder = asked.only("bilstm_kd_ts")
    asked.dvc("repro", f"evaluate@{TASK}").sound()
    assert (asked / folder / "1").is_dir()
    transfer = ShardSet.open(asked / TRANSFER).table().to_pylist()
    rows = [row for row in transfer if row["text"] in texts and not row["iteration"]]
    assert sorted(row["label"] is None for row in rows) == [False] * ASKED + [True] * ASKED
    again = _label_next(asked, "again.csv", 2)
    assert not {*again} & {*texts}
