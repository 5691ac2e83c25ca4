"""What the folders of students and sentence encoders say of them, read without torch."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pipeline_lib.base.files import read_record
from pipeline_lib.base.layout import student_place
from pipeline_lib.base.text import Text
from pipeline_lib.models.checks import check_outputs

MODEL_TYPE = "distillery_student"
ENCODER_TYPE = "distillery_encoder"
TEMPERATURE = "calibration_temperature"
"""The key in the config.json of a student exported for the hub; `temperature` is a generation setting there."""
Predict = Callable[[Sequence[Text]], np.ndarray]
"""Maps texts or pairs to logits, float32 (texts, classes); for an encoder, texts to vectors."""


def temperature_of(folder: Path) -> float:
    """Return the temperature of a student's logits: 1 unless its row asks for one.

    It is kept with the task's scores, since it is chosen after training; a folder exported for the
    hub has it in its own configuration.
    """
    location = student_place(folder)
    if location is None:
        config = folder / "config.json"
        return float(read_record(config).get(TEMPERATURE, 1.0)) if config.exists() else 1.0
    if not location.layout.scores(location.task).exists():
        return 1.0
    scores = read_record(location.layout.scores(location.task))
    # Read without validation: whatever else the file has or lacks is irrelevant here.
    for key in ("methods", location.method, "details", "temperature", str(location.seed)):
        scores = scores.get(key) if isinstance(scores, dict) else None
    return 1.0 if scores is None else float(scores)


def scaled(predict: Predict, temperature: float) -> Predict:
    """Return the function with its logits divided by the temperature."""
    if temperature == 1.0:
        return predict
    return lambda texts: predict(texts) / temperature


def finite(folder: Path, predict: Predict) -> Predict:
    """Return the function of the model in ``folder``, raising an error instead of NaN."""
    return lambda texts: check_outputs(folder, predict(texts))
