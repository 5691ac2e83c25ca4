"""The unit of a regression's labels moves no score: teacher, students, and what they answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.shard_sets import read_shard

from .corpus import BAD, GOOD, sentences
from .workspace import Workspace

pytestmark = pytest.mark.slow

UNITS = {"unit": (-1.0, 1.0), "percent": (0.0, 100.0)}


def _warmth(text: str) -> float:
    """Return what the sentence's one word of judgement says, from -1 to 1."""
    word = next(word for word in text.rstrip(".").split() if word in GOOD + BAD)
    sign, words = (1, GOOD) if word in GOOD else (-1, BAD)
    return sign * (1 + words.index(word)) / len(words)


def _write(folder: Path) -> None:
    for split, rows in sentences().items():
        lines = ["\t".join(["sentence", *UNITS])]
        for _, text in rows:
            values = (low + (_warmth(text) + 1) / 2 * (high - low) for low, high in UNITS.values())
            lines.append("\t".join([text, *(f"{value:.6f}" for value in values)]))
        (folder / f"warmth-{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def finished_units(new_workspace: Callable[[Path], Workspace], tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Run a task once for each unit of the same labels."""
    workspace = new_workspace(tmp_path_factory.mktemp("units") / "workspace")
    _write(workspace / "data/input")

    def edit(values: Any) -> None:
        task = dict(next(iter(values["tasks"].values())))
        files = {split: f"warmth-{split}.tsv" for split in ("train", "dev", "test")}
        task["source"] = dict(task["source"]) | {"files": files}
        task |= {"kind": "regression", "metrics": ["pearson"], "blocks": 1}
        task["augment"] = {"n_iter": 1, "cap": None}
        values["tasks"] = {
            name: task | {"label": name, "labels": {"min": low, "max": high}} for name, (low, high) in UNITS.items()
        }
        values["seeds"] = [1]
        names = ("bilstm", "bilstm_kd_ts")
        values["methods"] = {name: values["methods"][name] for name in names}

    workspace.params(edit)
    workspace.run_stages()
    return workspace


def test_every_score_is_the_same_in_every_unit(finished_units: Workspace) -> None:
    metrics = json.loads((finished_units / "metrics.json").read_text())
    for split in ("dev", "test"):
        teacher = [metrics[unit]["teachers"]["minilm"][split]["pearson"] for unit in UNITS]
        assert teacher == pytest.approx([teacher[0]] * len(UNITS), abs=0.005)
        assert teacher[0] > 0.6
        for method in ("bilstm", "bilstm_kd_ts"):
            found = [metrics[u]["methods"][method][split]["pearson"]["mean"] for u in UNITS]
            assert found == pytest.approx([found[0]] * len(UNITS), abs=0.02)
            assert found[0] > 0.6


def test_answers_are_in_the_labels_unit(finished_units: Workspace) -> None:
    for unit, (low, high) in UNITS.items():
        table = read_shard(finished_units / f"data/results/{unit}/predictions.arrow")
        labels = table["label"].to_numpy()
        for system in ("minilm", "bilstm-1", "bilstm_kd_ts-1"):
            outputs = matrix(table[system])[:, 0]
            assert np.abs(outputs - labels).mean() < 0.25 * (high - low)
            assert 0.3 < outputs.std() / labels.std() < 1.3
    text = "The film is very superb."
    folder = finished_units / "data/students/percent/bilstm_kd_ts/1"
    answer = finished_units.distill("predict", str(folder), text).sound().text
    assert 40.0 < float(answer.split("\t")[0]) < 130.0
