"""``distill store``: entries are listed, checked, cleared and refilled, and the run finds them."""

import json
import re

import pyarrow as pa
import pytest

from pipeline_lib.shards.columns import list_column, matrix
from pipeline_lib.shards.shard_sets import read_shard, write_shard

from .conftest import Finished
from .workspace import BLOCKS, BOTH, N_ITER, OUTPUTS, SHARDS, STORE, TASK, Workspace, flip_byte

PRECOMPUTE = f"precompute@{TASK}"


def test_what_is_stored_is_listed_and_whole(finished: Finished) -> None:
    text = finished.workspace.distill("store", "ls").sound().text
    kinds = {row.split()[0] for row in text.splitlines() if re.search(r" \d{4}-\d\d-\d\d", row)}
    assert {"logits", "tags", "transfer", "students", "teachers"} <= kinds
    assert finished.workspace.distill("store", "verify").sound().text.endswith(" 0 damaged\n")


def test_a_damaged_entry_is_named(workspace: Workspace) -> None:
    entry = next((workspace / STORE / "logits").glob("*/*.arrow"))
    flip_byte(entry)
    run = workspace.distill("store", "verify")
    assert run.status == 1
    assert f"{entry.relative_to(workspace.folder)}: damaged" in run.text
    assert run.text.count("damaged;") == 1


def test_only_what_nothing_refers_to_is_cleared(workspace: Workspace) -> None:
    before = workspace.entries("logits")
    assert "logits" not in workspace.distill("store", "gc", "--days", "0").sound().text
    workspace.iterate(N_ITER + 1)
    workspace.iterate(N_ITER)
    more = workspace.entries("logits") - before
    assert len(more) == BLOCKS
    shown = workspace.distill("store", "gc", "--days", "0").sound().text
    assert f"unused     logits: {BLOCKS} entries" in shown and "Nothing was deleted" in shown
    assert workspace.entries("logits") == before | more
    assert "logits" not in workspace.distill("store", "gc").sound().text
    workspace.distill("store", "gc", "--days", "0", "--yes").sound()
    assert workspace.entries("logits") == before
    assert workspace.stage("precompute").sound().tally == (0, BOTH)


@pytest.mark.slow
def test_what_a_tag_refers_to_is_kept(workspace: Workspace) -> None:
    more = lambda number: lambda params: params["tasks"][TASK]["augment"].update(n_iter=number)  # noqa: E731
    workspace.params(more(N_ITER + 1))
    workspace.dvc("repro", PRECOMPUTE).sound()
    workspace.command("git", "add", "dvc.lock").sound()
    name = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    workspace.command("git", *name, "commit", "--quiet", "-m", "more").sound()
    workspace.command("git", "tag", "more").sound()
    workspace.params(more(N_ITER))
    workspace.dvc("repro", PRECOMPUTE).sound()
    text = workspace.distill("store", "gc", "--days", "0").sound().text
    assert "more" in text and "logits" not in text


def test_data_refill_an_empty_store(workspace: Workspace) -> None:
    workspace.forget(".potstill")
    text = workspace.distill("store", "import").sound().text
    # The originals are in both transfer sets, and were taken with the first.
    assert f"{OUTPUTS}: {SHARDS - BLOCKS} shards taken, {BLOCKS} known" in text
    again = workspace.distill("store", "import").sound().text
    assert "0 shards taken" in again and not re.search(r"[1-9]\d* shards taken", again)
    assert workspace.iterate(N_ITER + 1).tally == (BLOCKS, BOTH)


@pytest.mark.parametrize("part", ["code", "precision", "inputs"])
def test_data_made_in_another_way_are_left_out(part: str, workspace: Workspace) -> None:
    workspace.forget(".potstill")
    path = workspace / OUTPUTS / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["made_from"][part] = "other"
    path.write_text(json.dumps(manifest))
    text = workspace.distill("store", "import").sound().text
    assert f"{OUTPUTS}: made from other {part}" in text


def made_by_other_code(workspace: Workspace) -> None:
    workspace.forget(".potstill")
    for path in (workspace / "data/outputs").rglob("manifest.json"):
        manifest = json.loads(path.read_text())
        manifest["made_from"]["code"] = "other"
        path.write_text(json.dumps(manifest))


def test_outputs_of_other_code_are_adopted_if_rows_come_out_alike(workspace: Workspace) -> None:
    made_by_other_code(workspace)
    assert "--adopt takes it" in workspace.distill("store", "import").sound().text
    text = workspace.distill("store", "import", "--adopt").sound().text
    assert f"{OUTPUTS}: " in text and "shards taken" in text and "differ by" in text
    assert workspace.iterate(N_ITER + 1).tally == (BLOCKS, BOTH)
    manifest = json.loads((workspace / OUTPUTS / "manifest.json").read_text())
    adopted = ["adopted: rows computed again" in one["computed_on"] for one in manifest["shards"]]
    assert sum(adopted) == len(adopted) - BLOCKS


def test_other_answers_are_not_adopted(workspace: Workspace) -> None:
    made_by_other_code(workspace)
    path = workspace / OUTPUTS / "manifest.json"
    manifest = json.loads(path.read_text())
    name = manifest["shards"][-1]["name"]
    table = read_shard(workspace / OUTPUTS / name)
    logits = matrix(table["logits"])[:, ::-1] * 0.5
    other = pa.table({"key": table["key"], "logits": list_column(logits.copy())})
    shard = write_shard(workspace / OUTPUTS / name, other)
    manifest["shards"][-1] |= {"sha256": shard.sha256, "bytes": shard.bytes}
    path.write_text(json.dumps(manifest))
    text = workspace.distill("store", "import", "--adopt").sound().text
    [line] = [line for line in text.splitlines() if str(OUTPUTS) in line]
    assert "shards taken" not in line and "--adopt takes it" not in line, line
    # The set beside it, whose rows do come out alike, is taken.
    assert f"{OUTPUTS.with_name('original')}: {BLOCKS} shards taken" in text


def test_an_altered_file_is_left_out(workspace: Workspace) -> None:
    workspace.forget(".potstill")
    flip_byte(workspace / OUTPUTS / "b000-i001.arrow")
    text = workspace.distill("store", "import").sound().text
    assert f"{OUTPUTS / 'b000-i001.arrow'}: missing or altered" in text
