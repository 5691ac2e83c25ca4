"""NaN and infinities of a model: one error that names its folder, at every door."""

import shutil
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from pipeline_lib import PotstillError, load_encoder, load_student, load_teacher
from pipeline_lib.cli import app
from pipeline_lib.exports.export_source import read_subject
from pipeline_lib.exports.hub import export_hub
from pipeline_lib.exports.numpy_export import export_numpy
from pipeline_lib.exports.onnx.exporter import export_onnx
from pipeline_lib.exports.sentence_transformers import export_sentence_transformers
from pipeline_lib.retrieval.embedders import EncoderReference

STUDENT, TEACHER = "data/students/movies/bilstm_kd_ts/1", "data/teachers/movies/minilm"
ENCODER = "data/encoders/sra"
DOORS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "predict": (STUDENT, load_student),
    "command": (STUDENT, lambda _: CliRunner().invoke(app, ["explain", STUDENT, "a"], catch_exceptions=False)),
    "encode": (ENCODER, load_encoder),
    "encode by a student": (STUDENT, load_encoder),
    "teacher": (TEACHER, load_teacher),
    "onnx": (STUDENT, lambda folder: export_onnx(folder, Path("out"))),
    "numpy": (STUDENT, lambda folder: export_numpy(folder, Path("out"))),
    "hub": (STUDENT, lambda folder: export_hub(folder, Path("out"))),
    "sentence-transformers": (ENCODER, lambda folder: export_sentence_transformers(folder, Path("out"))),
    "index": (ENCODER, lambda folder: EncoderReference.to(folder).load()),
    "index by a model": (TEACHER, lambda folder: EncoderReference.to(folder, "mean").load()),
}
"""What opens a model, and one to open."""


@pytest.fixture
def workspace(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(shutil.copytree(workspace, tmp_path / "workspace"))
    return Path()


def put(folder: Path, value: float, all_of: bool = False) -> None:
    """Put a value in the middle of a model's first tensor, or of all of them."""
    weights = load_file(folder / "model.safetensors")
    for name in [*sorted(weights)][: None if all_of else 1]:
        changed = weights[name].copy()
        changed.flat[slice(None) if all_of else changed.size // 2] = value
        weights[name] = changed
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(("door", "value"), [*zip(DOORS, cycle([np.nan, np.inf, -np.inf]))])
def test_a_weight_that_is_not_finite_is_refused(workspace: Path, door: str, value: float) -> None:
    folder, opens = DOORS[door]
    put(workspace / folder, value)
    with pytest.raises(PotstillError, match=rf"{folder}: its weights have NaN or infinite"):
        opens(workspace / folder)
    assert not Path("out").exists()


def test_outputs_that_are_not_finite_are_refused(workspace: Path) -> None:
    for folder in (STUDENT, ENCODER, TEACHER):
        put(workspace / folder, 3e38, all_of=True)
    texts = ["a quiet triumph", "dull"]
    with pytest.raises(PotstillError, match=rf"{STUDENT}: its outputs are NaN"):
        load_student(workspace / STUDENT).predict(texts)
    with pytest.raises(PotstillError, match=rf"{STUDENT}: its outputs are NaN"):
        read = read_subject(workspace / STUDENT)
        read.outputs(read.reader.encode(texts))
    # A teacher answers a text as it is loaded.
    with pytest.raises(PotstillError, match=rf"{TEACHER}: the model's answer .* no finite"):
        load_teacher(workspace / TEACHER)
    with pytest.raises(PotstillError, match=rf"{TEACHER}: the model's answer .* no finite"):
        EncoderReference.to(workspace / TEACHER, "mean").load()


def test_a_damaged_export_is_refused(workspace: Path) -> None:
    export_numpy(workspace / STUDENT, Path("out"))
    put(Path("out"), np.nan)
    with pytest.raises(PotstillError, match="out: its weights have NaN"):
        load_student("out")
