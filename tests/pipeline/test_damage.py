"""Damaged files are found, named, and made again; nothing else is; and workers change no byte."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.commands.verify import verify
from pipeline_lib.shards.shard_sets import read_manifest

from .conftest import Finished
from .test_kills import TELL_RESUMED
from .workspace import BLOCKS, BOTH, OUTPUTS, SHARDS, STORE, TASK, TRANSFER, Workspace, flip_byte

STUDENTS = Path(f"data/students/{TASK}")
STUDENT = STUDENTS / "bilstm_kd_ts"
# Workers as forks import nothing; that interpreters of their own do as well is shown for one stage.
FORKED_WORKERS = """
import multiprocessing
from pipeline_lib.shards.engine import local as engine
forking = multiprocessing.get_context("fork")
multiprocessing.get_context = lambda method: forking
pool = engine.ProcessPoolExecutor
def told(workers, *arguments):
    print(workers, "workers", flush=True)
    return pool(workers, *arguments)
engine.ProcessPoolExecutor = told
"""


def test_a_damaged_store_entry_is_set_aside_and_computed_again(finished: Finished, workspace: Workspace) -> None:
    shard = read_manifest(workspace / OUTPUTS).shards[4]
    entries = {path.name: path for path in (workspace / STORE / "logits").glob("*/*.arrow")}
    digests = finished.workspace.digests(STORE / "logits")
    [name] = [Path(path).name for path, digest in digests.items() if digest == shard.sha256]
    flip_byte(entries[name])
    workspace.forget(OUTPUTS)
    run = workspace.stage("precompute").sound()
    assert run.tally == (1, BOTH - 1)
    aside = {path.name for path in (workspace / STORE / "quarantine").glob("[!.]*")}
    assert aside == {name, Path(name).with_suffix(".json").name}
    assert workspace.digests(OUTPUTS) == finished.workspace.digests(OUTPUTS)
    assert workspace.entries("logits") == finished.workspace.entries("logits")


@pytest.mark.parametrize("folder", [TRANSFER, OUTPUTS], ids=["inputs", "outputs"])
def test_a_damaged_shard_is_not_trained_on(workspace: Workspace, folder: Path) -> None:
    flip_byte(workspace / folder / "b001-i002.arrow")
    # A student that is there already is found by its key and needs no training data.
    workspace.only("bilstm_kd_ts")
    error = workspace.stage("train").error
    fault = f"{folder}/b001-i002.arrow: altered (its SHA-256 is not the manifest's)"
    assert f"error: {fault} (1 of {SHARDS} shards damaged)" in error
    assert f"Delete {folder} and run `distill run`" in error
    verified = workspace.distill("verify", str(folder))
    assert verified.status == 1
    *_, named, remedy = verified.text.splitlines()
    assert named == f"error: {fault}" and remedy.startswith("Delete the folders named and run `distill run`")


def test_what_the_messages_say_to_do_helps(finished: Finished, workspace: Workspace) -> None:
    flip_byte(workspace / STUDENT / "1/model.safetensors")
    error = workspace.distill("predict", str(STUDENT / "1"), "good").error
    assert f"Delete {STUDENT}/1 and run `distill run` to make it again." in error
    workspace.forget(TRANSFER, STUDENT / "1")
    run = workspace.dvc("repro", f"train@{TASK}").sound()
    assert f"precompute@{TASK}" not in run.stages
    for folder in (TRANSFER, STUDENTS):
        assert workspace.digests(folder) == finished.workspace.digests(folder)


@pytest.mark.parametrize(
    ("file", "stage"),
    [
        (f"raw/tasks/{TASK}/test.tsv", "prepare"),
        ("raw/models/minilm/model.safetensors", "finetune_teacher"),
        (f"teachers/{TASK}/minilm/model.safetensors", "precompute"),
        (f"vocabularies/{TASK}/tokenizer.json", None),
        (f"lexicons/{TASK}/lexicon.arrow", None),
        (f"students/{TASK}/bilstm_kd_ts/1/model.safetensors", "evaluate"),
        (f"results/{TASK}/predictions.arrow", "report"),
        (f"results/{TASK}/scores.json", "report"),
    ],
)
def test_a_damaged_file_is_refused_where_it_is_read(workspace: Workspace, file: str, stage: str | None) -> None:
    path = Path("data") / file
    (workspace / path).chmod(0o644)
    flip_byte(workspace / path)
    # What is there already is found by its key, and reads nothing.
    workspace.forget(Path(".potstill/teachers"), STORE / "logits", STORE / "tags")
    if stage is not None:
        error = workspace.stage(stage).error
        assert error.startswith(f"error: {path}: altered since it was written (")
        assert f"Delete data/{'/'.join(file.split('/')[:2])}" in error
    verified = workspace.distill("verify")
    assert verified.status == 1
    assert [line for line in verified.text.splitlines() if str(path) in line] == [
        line for line in verified.text.splitlines() if "altered" in line
    ]


def test_a_damaged_finished_student_is_not_handed_out(finished: Finished, workspace: Workspace) -> None:
    key = min(workspace.trained())
    flip_byte(workspace / ".potstill/students" / key / "model.safetensors")
    run = workspace.stage("train", prelude=TELL_RESUMED).sound()
    # That one alone is trained again, from its start, to the same bytes.
    assert re.findall(r"went on from step (\d+)", run.text) == ["0"]
    aside = {path.name for path in (workspace / ".potstill/quarantine").glob("[!.]*")}
    assert aside == {key}
    assert workspace.digests(STUDENTS) == finished.workspace.digests(STUDENTS)
    assert workspace.trained() == finished.workspace.trained()


def _two_workers(params: Any) -> None:
    params["workers"] = 2


@pytest.mark.slow
def test_two_workers_compute_the_same_outputs(finished: Finished, workspace: Workspace) -> None:
    workspace.params(_two_workers)
    workspace.forget(OUTPUTS, STORE / "logits")
    # In interpreters of their own, as users run them: that must show as little as the workers do.
    stage = ("python", "-m", "pipeline_lib.stages.precompute", "--task", TASK)
    assert workspace.command(*stage, fast=False).sound().tally == (SHARDS, BLOCKS)
    assert workspace.digests(OUTPUTS) == finished.workspace.digests(OUTPUTS)


def test_two_workers_train_the_same_students(finished: Finished, workspace: Workspace) -> None:
    workspace.params(_two_workers)
    workspace.only("bilstm_kd_ts")
    run = workspace.stage("train", prelude=FORKED_WORKERS).sound()
    assert "2 workers" in run.text
    assert workspace.digests(STUDENT) == finished.workspace.digests(STUDENT)


WITHOUT_DIGESTS = {"settings", "stages", "report", "speed", "fingerprints", "digests"}
"""Folders of settings, and of results that no stage computes from."""
DESCRIPTIONS = {"manifest.json", "alignment.json", "search.json", "rows.json", "source.json"}
"""Of how files were made: a flip in what these say of digests, rows and columns is found too."""


@contextmanager
def flipped(path: Path) -> Iterator[None]:
    """Flip a bit in a copy of the file, which may be a link, and put the file back."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    flip_byte(path)
    yield
    path.write_bytes(content)


@pytest.mark.slow
def test_every_flip_is_found(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.folder)
    folders = [path for path in Path("data").iterdir() if path.name not in WITHOUT_DIGESTS]
    files = [path for above in folders for path in above.rglob("*") if path.is_file()]
    files = [path for path in files if path.stat().st_size and path.parts[1] != "input"]
    missed = []
    for path in sorted(files):
        with flipped(path):
            try:
                verify()
            except PotstillError as error:
                assert path.parent.as_posix() in str(error)
            else:
                missed.append(path.name)
    assert len(files) > 70
    assert {*missed} <= DESCRIPTIONS


def test_a_stage_in_a_process_of_its_own_ends_with_status_1(workspace: Workspace) -> None:
    stage = ("python", "-m", "pipeline_lib.stages.fetch_data", "--task", "other")
    assert f"tasks: no 'other' in params.yaml; there are {TASK}." in workspace.command(*stage, fast=False).error
