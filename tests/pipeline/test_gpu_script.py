"""benchmarks/gpu.sh, tiny and on a CPU: each part succeeds and leaves its results."""

import json
import subprocess
from pathlib import Path

import pytest

from pipeline_lib.base.files import write_json
from pipeline_lib.params import load_params

from .conftest import Finished
from .workspace import ROOT, SHARDS, TASK

pytest.importorskip("sentence_transformers")


def _small(path: Path) -> Path:
    """Write the sizes of what is trained, with fewer values for a word than the tiny encoder's."""
    usual = ROOT / "benchmarks/mtl.yaml"
    students = {name: student.model_dump(mode="json") for name, student in load_params(usual).students.items()}
    for student in students.values():
        if "embedding_size" in student:
            student["embedding_size"] = 16
    write_json(path, {"extends": str(usual), "students": students})
    return path


@pytest.mark.slow
def test_every_part_leaves_its_results(finished: Finished, tmp_path: Path) -> None:
    sizes = {"TEXTS": 60, "GRID_TEXTS": 20, "SHARD_ROWS": 20, "STEPS": 3, "PAIRS": 239}
    workspace = finished.workspace
    environment = workspace.env(fast=False) | {
        "DEVICE": "cpu",
        "PROFILE": str(workspace / "params.yaml"),
        "INPUT": str(workspace / "data/input"),
        "SIZES": str(_small(tmp_path / "sizes.yaml")),
        "PATIENCE": "4",
        "REPEATS": "1",
        **{name: str(size) for name, size in sizes.items()},
    }
    command = [ROOT / "benchmarks/gpu.sh", tmp_path / "out"]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    logs = "".join(path.read_text() for path in sorted((tmp_path / "out").glob("*.log")))
    assert run.returncode == 0, run.stdout + run.stderr + logs

    def result(name: str) -> dict:
        return json.loads((tmp_path / "out" / f"{name}.json").read_text("utf-8"))

    parts = ("repro", "teacher_pass", "training_rates")
    assert {name: part["status"] for name, part in result("summary").items()} == dict.fromkeys(parts, 0)
    [precompute] = [run for run in result("account")["runs"] if run["stage"] == f"precompute@{TASK}"]
    assert precompute["counts"]["shards"]["computed"] == SHARDS + 2
    assert result("metrics") == json.loads((workspace / "metrics.json").read_text("utf-8"))
    ours = result("teacher_pass")["ours"]
    assert (ours["device"], ours["packs"], ours["shards"] * 20 >= 60) == ("cpu", True, True)
    rates = result("training_rates")["contestants"]
    assert all(one["tokens_per_second"]["median"] > 0 for one in rates.values())
