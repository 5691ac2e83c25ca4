"""What the folders of models must hold, and what they say of them, read without torch."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record
from pipeline_lib.base.layout import student_place
from pipeline_lib.base.text import Text
from pipeline_lib.models import networks


def require_model(folder: Path) -> None:
    """Check that there is a model in ``folder``."""
    if not (folder / "config.json").exists():
        raise PotstillError(f"{folder}: no model here. Run `distill run` to train it.")


def check_outputs(folder: Path | str, outputs: np.ndarray) -> np.ndarray:
    """Return the outputs of the model in a folder, float (texts, values), unless one is NaN or infinite."""
    broken = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    if broken.size:
        raise PotstillError(
            f"{folder}: its outputs are NaN or infinite (for {broken.size:,} of {len(outputs):,} "
            f"texts, the first is number {broken[0] + 1}). Its weights are damaged or too large: "
            "put others there, or train it again, with a lower learning rate."
        )
    return outputs


def check_names(folder: Path, names: list[str], wanted: list[str]) -> None:
    """Check that a model's classes are the task's, in the same order."""
    if list(names) != list(wanted):
        raise PotstillError(
            f"{folder}: its classes are {', '.join(names)}; the task's {', '.join(wanted)}. Put "
            "the task's `labels` in params.yaml into the model's order, or train it again."
        )


def is_of_library(encoder: object) -> bool:
    """Whether the library has the code of an encoder."""
    return type(encoder).__module__.rpartition(".")[0] == networks.__name__


MODEL_TYPE = "distillery_student"
ENCODER_TYPE = "distillery_encoder"
TEMPERATURE = "calibration_temperature"
"""The key in the config.json of a student exported for the hub; `temperature` is a generation setting there."""
STRETCHES = "agreement_with_teacher"
"""The key in the config.json of an exported student."""
Predict = Callable[[Sequence[Text]], np.ndarray]
"""Maps texts or pairs to logits, float32 (texts, classes); for an encoder, texts to vectors."""


def temperature_of(folder: Path) -> float:
    """Return the temperature of a student's logits: 1 unless its row asks for one."""
    temperature = _scored(folder, TEMPERATURE, "details", "temperature")
    return 1.0 if temperature is None else float(temperature)


def stretches_of(folder: Path) -> list[dict[str, Any]]:
    """Return how often a student agreed with its teacher on dev, as :class:`~pipeline_lib.base.promises.Stretch`.

    Empty: it has not been evaluated, or has no teacher that runs.
    """
    return _scored(folder, STRETCHES, "routing", "stretches") or []


def _scored(folder: Path, exported: str, *keys: str) -> Any:
    """Return what the scores say of a student's row and seed, or if it was exported, its own configuration.

    It is kept with the task's scores, since it is chosen after training.
    """
    location = student_place(folder)
    if location is None:
        config = folder / "config.json"
        return read_record(config).get(exported) if config.exists() else None
    path = location.layout.scores(location.task)
    scores = read_record(path) if path.exists() else None
    # Read without validation: whatever else the file has or lacks is irrelevant here.
    for key in ("methods", location.method, *keys, str(location.seed)):
        scores = scores.get(key) if isinstance(scores, dict) else None
    return scores


def served(folder: Path, predict: Predict, temperature: float = 1.0) -> Predict:
    """Return the function of the model in ``folder``, divided by a temperature, with an error instead of NaN."""
    return lambda texts: check_outputs(folder, predict(texts) / temperature)
