"""Students of several tasks are exported as others are: what they share, and each one's head."""

from pathlib import Path

import numpy as np
import pytest
import torch

import pipeline_lib
from pipeline_lib.exports.numpy_export import export_numpy
from pipeline_lib.exports.onnx.exporter import export_onnx
from pipeline_lib.models.networks.imitation import JointNetwork
from pipeline_lib.models.students.student import Student, save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import student_settings
from pipeline_lib.text.ragged import to_device
from pipeline_lib.training.distillation.initialisation import Start, start_from_sizes
from tests.kit.pretrained import write_model

from .students import VALUES, WIDTH, WORDS, sample

TASKS = {"movies": (False, ["no", "yes"]), "nli": (True, ["a", "b", "c"]), "sick": (True, ["s"])}
"""Whether a task is of pairs, and its classes, or the name of its score."""
CPU = torch.device("cpu")


def trained(folder: Path, name: str) -> dict[str, np.ndarray]:
    """Write tiny students that learned together, as a joint training does; return their answers.

    They lie in ``data/joint/<row>/<seed>/<task>``.
    """
    settings = student_settings(VALUES[name])
    start = Start(build_tokenizer(WORDS, True), len(WORDS) + 2, WIDTH)
    if settings.source_model is not None:
        start = start_from_sizes(write_model(folder / "model", "bert"), settings)
    torch.manual_seed(4)
    network = JointNetwork(start.build(settings, *task) for task in TASKS.values())
    with torch.no_grad():
        for weights in network.parameters():
            weights += 0.2 * torch.randn_like(weights)
    students = [Student(model, start.tokenizer, CPU) for model in network.train().students]
    for student in students:
        # Move all that they have, shared or their own.
        optimiser = torch.optim.SGD(student.model.parameters(), 0.1)
        logits = student.model.outputs(to_device(student.encode(sample(student.is_pair)).batch(np.arange(4, 12)), CPU))
        (logits["logits"] - 1.0).square().mean().backward()
        optimiser.step()
    for task, student in zip(TASKS, students, strict=True):
        save_student(folder / "data/joint/mtl/3" / task, student.model, start.tokenizer)
    return {t: s.logits(sample(s.is_pair)) for t, s in zip(TASKS, students, strict=True)}


@pytest.mark.parametrize("name", ["bilstm", "bert"])
def test_every_tasks_student(tmp_path: Path, name: str) -> None:
    writers = {"onnx": export_onnx} | ({"numpy": export_numpy} if name == "bilstm" else {})
    found = trained(tmp_path, name)
    # Tracing a transformer takes longest: one of its tasks stands for the others.
    for task, wanted in found.items() if name == "bilstm" else [("nli", found["nli"])]:
        is_pair, labels = TASKS[task]
        assert np.ptp(wanted, axis=0).min() > 1e-4
        for form, write in writers.items():
            write(tmp_path / "data/joint/mtl/3" / task, tmp_path / form / task)
            opened = pipeline_lib.load_student(tmp_path / form / task)
            assert (opened.labels, opened.is_pair) == (labels, is_pair)
            np.testing.assert_allclose(opened.predict(sample(is_pair)).logits, wanted, atol=4e-6)
