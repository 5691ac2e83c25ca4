"""benchmarks/gpu_papers.sh on a CPU, tiny, on some of its tasks: each part leaves its scores."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline_lib.params import Task, load_params
from pipeline_lib.params.profiles import read_values
from tests.kit.hub_folders import WORDS, write_classifier

from .workspace import ROOT, Workspace

PARTS = {"mkd": ["stsb", "sst2"], "dse": ["qnli"], "pkd": ["rte", "qnli"]}
"""Some tasks of each part."""
ROWS = {"train": 40, "test": 20}


def _cut(part: str) -> dict[str, Any]:
    """Return a part's parameters, cut to some of its tasks and one seed."""
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


@pytest.mark.slow
def test_every_part_leaves_its_scores(tmp_path: Path) -> None:
    for part in PARTS:
        profile = tmp_path / f"tiny_{part}.yaml"
        YAML().dump(_cut(part), profile)
        for task in load_params(profile).tasks.values():
            _write_task(tmp_path / "input" / task.source.folder, task)
    # Twelve layers, as the teacher has whose states are learnt.
    sizes = {"num_hidden_layers": 12, "max_position_embeddings": 512}
    environment = Workspace(tmp_path, tmp_path, tmp_path).env(fast=False) | {
        "DEVICE": "cpu",
        "PROFILE": "tiny_PART.yaml",
        "INPUT": "input",
        "MODEL": str(write_classifier(tmp_path / "bert", "bert", **sizes)),
        "AT_ONCE": "2",
        "PATIENCE": "10",
    }
    command = [ROOT / "benchmarks/gpu_papers.sh", "out"]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    out = tmp_path / "out"
    logs = "".join(path.read_text() for path in sorted(out.glob("*.log")))
    assert run.returncode == 0, run.stdout + run.stderr + logs

    def result(name: str) -> dict:
        return json.loads((out / f"{name}.json").read_text("utf-8"))

    assert {name: part["status"] for name, part in result("summary").items()} == dict.fromkeys(PARTS, 0)
    for part, tasks in PARTS.items():
        methods = {*load_params(ROOT / f"benchmarks/gpu_{part}.yaml").methods}
        scored = result(f"gpu_{part}")["tasks"]
        assert {task: {*scored[task]["methods"]} for task in scored} == dict.fromkeys(tasks, methods)
        stages = {one["stage"] for one in result(f"{part}.account")["runs"]}
        assert {f"evaluate@{task}" for task in tasks} <= stages
