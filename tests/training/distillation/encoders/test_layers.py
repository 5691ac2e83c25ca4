"""Encoders made of the teacher's own layers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.networks.student import StudentNetwork
from pipeline_lib.models.students.sentence_encoder import SentenceEncoder, load_encoder
from pipeline_lib.models.students.student import Student
from pipeline_lib.training.distillation.encoders import encoder_row
from pipeline_lib.training.distillation.initialisation import start_from_encoder

from .rows import HELD_BACK, LAYER, MakeRow, first_of, ignore, key_of, train_one

pytestmark = pytest.mark.usefixtures("store_home")


def test_a_layer_of_the_teacher_learns_its_vectors(run: MakeRow, tmp_path: Path) -> None:
    own = run({"learning_rates": [3.0e-3]}, LAYER, centre=True)
    record = train_one(own, tmp_path / "leaf", ignore)
    assert record.loss < 0.6 * record.constant_loss
    # It is built again without the model that it was cut out of, and so is a student above it.
    encoder, settings = load_encoder(tmp_path / "leaf"), first_of(own).student
    student = start_from_encoder(tmp_path / "leaf", settings).build(settings, False, ["no", "yes"])
    sentences = student_of(student, encoder).encode(HELD_BACK[:9]).batch(np.arange(9))
    with torch.inference_mode():
        found = student.eval().outputs(sentences)["vector"].numpy()
    np.testing.assert_allclose(found, encoder.encode(HELD_BACK[:9]), atol=1e-5)


def student_of(network: StudentNetwork, encoder: SentenceEncoder) -> Student:
    return Student(network, encoder.tokenizer, encoder.device)


def test_a_models_name_does_not_count_but_its_weights_do(run: MakeRow, data: Path, tmp_path: Path) -> None:
    first = run(student=LAYER)
    layout = Layout(tmp_path / "data")
    for name in ("raw/vectors", "wikipedia", "tasks", "vectors"):
        (layout.data / name).parent.mkdir(parents=True, exist_ok=True)
        (layout.data / name).symlink_to(data / name)
    shutil.copytree(data / "raw/models/minilm", layout.data / "raw/models/other")
    params = first_of(first).params.model_copy(deep=True)
    params.students["bilstm_sra"] = first_of(first).student.model_copy(update={"model": "other"})
    assert key_of(encoder_row(params, "sra", layout, "cpu")) == key_of(first)
    config = layout.data / "raw/models/other/config.json"
    write_json(config, read_json(config) | {"another": 1})
    assert key_of(encoder_row(params, "sra", layout, "cpu")) != key_of(first)
    assert key_of(run(student=LAYER | {"layers": [1]})) != key_of(first)


def test_what_a_model_lacks_is_refused(run: MakeRow) -> None:
    with pytest.raises(PotstillError, match=r"bilstm_sra\.layers: 2, but .* has 2 layers"):
        run(student=LAYER | {"layers": [0, 2]})
    with pytest.raises(PotstillError, match=r"bilstm_sra\.max_words: 65, but"):
        run(student=LAYER | {"max_words": 65})
    with pytest.raises(PotstillError, match=r"no sentence vector of .* or a dse with a `width`"):
        run(student=LAYER | {"width": None})
    with pytest.raises(PotstillError, match=r"students\.bilstm_sra\.model: no 'none'"):
        run(student=LAYER | {"model": "none"})
    with pytest.raises(PotstillError, match="`width`: nothing in a frozen model is trained"):
        run(student=LAYER | {"frozen": True})
