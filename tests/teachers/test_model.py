"""A teacher of any family: its positions, tokens, number format and digest."""

from pathlib import Path

import pytest

from pipeline_lib.errors import DistilleryError
from pipeline_lib.teachers.model import load_teacher
from pipeline_lib.teachers.vectors import load_vector_model
from tests.pipeline.corpus import write_encoder


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the tiny random classifier of 64 positions."""
    folder = tmp_path_factory.mktemp("classifier")
    write_encoder(folder, labels=2)
    return folder


def test_more_tokens_than_positions_are_refused(classifier: Path) -> None:
    teacher = load_teacher(classifier, "cpu", "float32")
    encoder = load_vector_model(classifier, "cpu", "float32", "mean")
    long = "film " * 100
    for model in (teacher, encoder):
        assert model.predict([long], 64, 256).shape[0] == 1
        with pytest.raises(DistilleryError, match="max_length: 65, but the teacher has 64 pos"):
            model.predict([long], 65, 256)
