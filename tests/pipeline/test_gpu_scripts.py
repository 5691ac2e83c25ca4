"""benchmarks/gpu.sh and benchmarks/gpu_papers.sh, tiny and on a CPU: each part succeeds and leaves its results."""

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline_lib.base.files import write_json
from pipeline_lib.params import Task, load_params
from pipeline_lib.params.profiles import read_values
from tests.kit.hub_folders import WORDS, write_classifier

from .conftest import Finished
from .workspace import ROOT, SHARDS, TASK, Workspace

pytestmark = pytest.mark.slow
PARTS = {"mkd": ["stsb", "sst2"], "dse": ["qnli"], "pkd": ["rte", "qnli"]}
"""Some tasks of each part of gpu_papers.sh."""
ROWS = {"train": 40, "test": 20}


def _run(script: str, workspace: Workspace, folder: Path, **variables: str) -> Callable[[str], Any]:
    """Run a script, whose parts must all succeed; return what reads its results."""
    out = folder / "out"
    environment = workspace.env(fast=False) | {"DEVICE": "cpu"} | variables
    command = [ROOT / "benchmarks" / script, out]
    run = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    logs = "".join(path.read_text() for path in sorted(out.glob("*.log")))
    assert run.returncode == 0, run.stdout + run.stderr + logs
    return lambda name: json.loads((out / f"{name}.json").read_text("utf-8"))


def test_every_part_leaves_its_results(finished: Finished, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    workspace, usual = finished.workspace, ROOT / "benchmarks/mtl.yaml"
    # Fewer values for a word than the tiny encoder's.
    students = {name: student.model_dump(mode="json") for name, student in load_params(usual).students.items()}
    for student in students.values():
        student |= {"embedding_size": 16} if "embedding_size" in student else {}
    write_json(tmp_path / "sizes.yaml", {"extends": str(usual), "students": students})
    sizes = {"TEXTS": "60", "GRID_TEXTS": "20", "SHARD_ROWS": "20", "STEPS": "3", "PAIRS": "239"}
    inputs = {"PROFILE": str(workspace / "params.yaml"), "INPUT": str(workspace / "data/input")}
    inputs |= {"SIZES": str(tmp_path / "sizes.yaml"), "PATIENCE": "4", "REPEATS": "1"}
    result = _run("gpu.sh", workspace, tmp_path, **inputs, **sizes)
    parts = ("repro", "teacher_pass", "training_rates")
    assert {name: part["status"] for name, part in result("summary").items()} == dict.fromkeys(parts, 0)
    [precompute] = [run for run in result("account")["runs"] if run["stage"] == f"precompute@{TASK}"]
    assert precompute["counts"]["shards"]["computed"] == SHARDS + 2
    assert result("metrics") == json.loads((workspace / "metrics.json").read_text("utf-8"))
    ours = result("teacher_pass")["ours"]
    assert (ours["device"], ours["packs"], ours["shards"] * 20 >= 60) == ("cpu", True, True)
    rates = result("training_rates")["contestants"]
    assert all(one["tokens_per_second"]["median"] > 0 for one in rates.values())


def _cut(part: str) -> dict[str, Any]:
    values = read_values(ROOT / f"benchmarks/gpu_{part}.yaml") | {"seeds": [1]}
    values["tasks"] = {task: values["tasks"][task] for task in PARTS[part]}
    for teacher in values["teachers"].values():
        if teacher.get("tasks") is not None:
            teacher["tasks"] = [task for task in teacher["tasks"] if task in PARTS[part]]
    for joint in values["joint"].values():
        joint["tasks"] = {task: joint["tasks"][task] for task in PARTS[part]}
    return values


def _write_task(folder: Path, task: Task) -> None:
    """Write a task's files: the columns that the parameters name, random texts and labels."""
    draw = random.Random(1)
    classes = [raw[0] for raw in task.labels.values()] if task.kind == "classification" else "05"
    folder.mkdir(parents=True, exist_ok=True)
    for split, name in task.source.files.items():
        lines = ["\t".join([*task.text, task.label])]
        for number in range(ROWS[split]):
            texts = [" ".join(draw.sample(WORDS, 5)) for _ in task.text]
            lines.append("\t".join([*texts, classes[number % len(classes)]]))
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_every_part_of_the_papers_leaves_its_scores(tmp_path: Path) -> None:
    for part in PARTS:
        profile = tmp_path / f"tiny_{part}.yaml"
        YAML().dump(_cut(part), profile)
        for task in load_params(profile).tasks.values():
            _write_task(tmp_path / "input" / task.source.folder, task)
    # Twelve layers, as the teacher has whose states are learnt.
    model = write_classifier(tmp_path / "bert", "bert", num_hidden_layers=12, max_position_embeddings=512)
    inputs = {"PROFILE": "tiny_PART.yaml", "INPUT": "input", "MODEL": str(model), "AT_ONCE": "2", "PATIENCE": "10"}
    result = _run("gpu_papers.sh", Workspace(tmp_path, tmp_path, tmp_path), tmp_path, **inputs)
    assert {name: part["status"] for name, part in result("summary").items()} == dict.fromkeys(PARTS, 0)
    for part, tasks in PARTS.items():
        params = load_params(ROOT / f"benchmarks/gpu_{part}.yaml")
        scored = result(f"gpu_{part}")["tasks"]
        expected = {task: {*params.methods_of(task)} for task in tasks}
        assert {task: {*scored[task]["methods"]} for task in scored} == expected
        stages = {one["stage"] for one in result(f"{part}.account")["runs"]}
        assert {f"evaluate@{task}" for task in tasks} <= stages
