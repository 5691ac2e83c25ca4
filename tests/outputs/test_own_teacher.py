"""A teacher of the user's own, from its folder to evaluation: known by the task's names."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.evaluation.evaluate import teacher_parameters
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.params import Params, Task, Teacher, load_params
from pipeline_lib.results.schema import ParameterCounts
from pipeline_lib.shards.training_records import TeacherRecord
from pipeline_lib.sources.models import fetch_finished
from pipeline_lib.training.teachers.finetuning import Data, import_teacher
from tests.kit.made_up import made_up_teacher
from tests.pipeline.corpus import sentences, write_encoder
from tests.tour import TOUR

ROWS = sentences()["dev"][:20]
RUN = 32, torch.device("cpu"), "float32"
"""Longest text, device, number format."""


def own_teacher(inputs: Path, labels: int, names: dict[str, str] | None, name: str, task: Task) -> Params:
    """Write a finished teacher with these names and return the parameters that take it."""
    write_encoder(inputs / "done", labels=labels)
    config = read_json(inputs / "done/config.json")
    for key in ("id2label", "label2id"):
        config.pop(key, None)
    if names:
        config |= {"id2label": names, "label2id": {v: int(k) for k, v in names.items()}}
    else:
        config["num_labels"] = labels
    (inputs / "done/config.json").write_text(json.dumps(config))
    tuning = {"kind": "finished", "checkpoint": "done"}
    shipped = load_params(TOUR)
    values = shipped.teachers["minilm"].model_dump() | {"max_length": 32, "model": None}
    teachers = {"mine": Teacher.model_validate(values | {"tuning": tuning})}
    changes = {"teachers": teachers, "inputs": str(inputs), "tasks": {name: task}}
    return shipped.model_copy(update=changes)


@pytest.mark.parametrize("names", [None, {"0": "LABEL_0", "1": "LABEL_1"}, {"0": "NO", "1": " Yes"}])
def test_later_stages_know_it_by_the_tasks_names(
    tmp_path: Path, make_task: Callable, names: dict[str, str] | None
) -> None:
    task = make_task()
    params = own_teacher(tmp_path / "in", 2, names, "movies", task)
    before = (tmp_path / "in/done/config.json").read_bytes()
    fetch_finished(params, "mine", "movies", tmp_path / "raw")
    dev = Data([text for _, text in ROWS], np.array([label for label, _ in ROWS]))
    folder = tmp_path / "teachers"
    import_teacher(tmp_path / "raw", folder, (dev, dev), task, *RUN, force=False)
    counts = {"without_embeddings": 1, "with_embeddings": 2}
    write_json(folder / "training.json", made_up_teacher(parameters=counts))
    assert teacher_parameters(folder, task.label_names) == ParameterCounts(**counts)
    assert load_teacher(folder, "cpu", "float32").label_names == ["no", "yes"]
    assert (tmp_path / "in/done/config.json").read_bytes() == before


def test_a_regression_in_another_unit_is_refused(tmp_path: Path, make_task: Callable) -> None:
    given = make_task().model_dump() | {"kind": "regression", "metrics": ["pearson"]}
    task = Task.model_validate(given | {"labels": {"min": 0.0, "max": 100.0}})
    params = own_teacher(tmp_path / "in", 1, {"0": "score"}, "stars", task)
    fetch_finished(params, "mine", "stars", tmp_path / "raw")
    texts = [text for _, text in ROWS]
    finished = tmp_path / "raw"
    scores = load_teacher(finished, "cpu", "float32").predict(texts, 32, 256)[:, 0]
    own = Data(texts, scores)
    record = import_teacher(finished, tmp_path / "a", (own, own), task, *RUN, force=False)
    assert record.best_dev > 0.9
    other = Data(texts, 1000 * scores - 300)
    with pytest.raises(PotstillError, match=r"another unit than the labels.* set `force: true` in its `tuning`"):
        import_teacher(finished, tmp_path / "b", (other, other), task, *RUN, force=False)
    [fault] = import_teacher(finished, tmp_path / "c", (other, other), task, *RUN, force=True).faults
    assert "another unit" in fault and not record.faults
    assert TeacherRecord.read(tmp_path / "c/training.json").faults == [fault]
