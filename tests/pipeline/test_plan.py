"""``distill plan``: what it says before a run, beside what the run then does."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.shards.shard_sets import read_manifest

from .conftest import Finished
from .workspace import BLOCKS, BOTH, N_ITER, TASK, Workspace

Edit = Callable[[Any], None]
FIRST = "fingerprint"


def setting(*keys: str, value: Any) -> Edit:
    def edit(params: Any) -> None:
        for key in keys[:-1]:
            params = params[key]
        params[keys[-1]] = value

    return edit


def more_masking(params: Any) -> None:
    params["transfer"]["full"]["p_mask"] = 0.3


def new_row(params: Any) -> None:
    params["methods"]["again"] = {**params["methods"]["bilstm_kd"], "baseline": None}


def planned(workspace: Workspace) -> tuple[str, set[str], set[str]]:
    text = workspace.distill("plan").sound().text
    lines = dict(re.findall(r"^(\w+(?:@\w+)?) +\d+ \S+(?: \d+ s)?  (.+)$", text, re.MULTILINE))
    may = {name for name, reason in lines.items() if reason.startswith("if ")}
    return text, lines.keys() - may, may


def check(workspace: Workspace, kept: bool = False) -> str:
    """Check a plan against the run; return what was printed.

    :param kept: whether DVC has the outputs of the stages that run.
    """
    text, certain, may = planned(workspace)
    ran = {*workspace.dvc("repro").sound().stages} - {FIRST}
    assert ran <= certain | may
    assert kept == ("from an earlier run with the same values" in text)
    assert certain <= ran or kept
    return text


def test_nothing_changed(finished: Finished) -> None:
    before = finished.workspace.digests("data")
    assert "up to date" in finished.workspace.distill("plan").sound().text
    assert finished.workspace.digests("data") == before


@pytest.mark.slow
def test_more_iterations_need_the_new_ones_only(workspace: Workspace) -> None:
    before = workspace.digests("data")
    workspace.params(setting("tasks", TASK, "augment", "n_iter", value=N_ITER + 1))
    text, certain, _ = planned(workspace)
    assert workspace.digests("data") == before
    assert certain == {f"augment@{TASK}", "report"}
    assert f"tasks.{TASK}.augment.n_iter: {N_ITER} → {N_ITER + 1}" in text
    said = re.findall(r"rows: ([\d,]+) stored, about ([\d,]+) new", text)
    (stored, new), (answered, to_answer) = [[int(n.replace(",", "")) for n in pair] for pair in said]
    full, original = (rows_of(workspace, recipe) for recipe in ("full", "original"))
    held_out = sum(read_manifest(path).rows for path in heldout_sets(workspace))
    assert (stored, answered) == (full + original, full + original + held_out)
    run = workspace.dvc("repro").sound()
    assert {*run.stages} - {FIRST} <= planned_names(text)
    assert run.tally == (BLOCKS, BOTH)
    made = rows_of(workspace, "full") - full
    assert new == to_answer and 0.5 * made < new < 2 * made


def rows_of(workspace: Workspace, recipe: str) -> int:
    return read_manifest(workspace / "data/transfer" / TASK / recipe).rows


def heldout_sets(workspace: Workspace) -> list[Path]:
    return [workspace / "data/tasks" / TASK / split for split in ("dev", "test")]


def planned_names(text: str) -> set[str]:
    return {*re.findall(r"^(\w+(?:@\w+)?) +\d", text, re.MULTILINE)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (more_masking, "full.p_mask: 0.1 → 0.3"),
        (new_row, "+ methods.again"),
        (setting("optimisers", "long", "max_steps", value=60), "max_steps: 140 → 60"),
        (setting("tasks", TASK, "train_fraction", value=0.5), "train_fraction: 1.0 → 0.5"),
        (setting("seeds", value=[1, 2, 3]), "seeds: [1, 2] → [1, 2, 3]"),
    ],
    ids=["recipe", "row", "steps", "fraction", "seeds"],
)
def test_changed_parameters(edit: Edit, reason: str, workspace: Workspace) -> None:
    workspace.params(edit)
    text = check(workspace)
    assert reason in text and "{" not in text and ("seeds" not in reason or "trainings: 6 stored, 3 new" in text)
    assert "up to date" in workspace.distill("plan").sound().text


@pytest.mark.slow
def test_an_edited_file_is_named(workspace: Workspace) -> None:
    path = workspace / "data/input/train.tsv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    assert "train.tsv: edited" in check(workspace)


@pytest.mark.slow
def test_old_values_are_found_again(workspace: Workspace) -> None:
    workspace.params(setting("tasks", TASK, "metrics", value=["f1"]))
    workspace.dvc("repro").sound()
    workspace.params(setting("tasks", TASK, "metrics", value=["accuracy"]))
    check(workspace, kept=True)


@pytest.mark.slow
def test_lost_outputs_come_back_from_the_cache_or_are_made_again(workspace: Workspace) -> None:
    results = f"data/results/{TASK}"
    workspace.forget(results)
    text, certain, may = planned(workspace)
    assert (certain, may) == ({f"evaluate@{TASK}"}, set())
    assert f"{results}: not here" in text and "from an earlier run" in text
    assert workspace.dvc("repro").sound().stages == [FIRST]
    workspace.forget(results, ".dvc/cache")
    assert {f"evaluate@{TASK}", f"train@{TASK}"} <= planned(workspace)[1]


def test_what_the_data_hold_is_offered_to_an_empty_store(workspace: Workspace) -> None:
    workspace.params(setting("tasks", TASK, "augment", "n_iter", value=N_ITER + 1))
    assert "store import" not in planned(workspace)[0]
    workspace.forget(".potstill")
    assert "data/ has outputs that the store lacks: distill store import takes them." in planned(workspace)[0]
    workspace.distill("store", "import").sound()
    assert "store import" not in planned(workspace)[0]


@pytest.mark.slow
def test_changed_code_is_named_and_answers_of_former_code_are_offered(workspace: Workspace) -> None:
    edited = workspace.with_own_code()
    path = edited / "pipeline_lib/outputs/health.py"
    path.write_text(path.read_text() + "\nEXTRA = 1\n")
    text = edited.distill("plan").sound().text
    assert "code: pipeline_lib/outputs/health.py" in text
    [line] = [line for line in text.splitlines() if "store import" in line]
    command = "distill store import --adopt"
    assert line == f"data/ has outputs of other code or libraries: {command} checks and takes them."
    taken = edited.distill("store", "import", "--adopt").sound().text
    assert "shards taken" in taken and "made from other" not in taken
    assert "store import" not in edited.distill("plan").sound().text


def test_a_folder_that_is_no_workspace_is_refused(workspace: Workspace) -> None:
    (workspace / "dvc.yaml").unlink()
    run = workspace.distill("plan")
    assert run.status == 1
    assert "dvc.yaml" in run.error
