"""Opening a teacher's folder, whatever kind of model is in it."""

from pathlib import Path

import torch

from pipeline_lib.models.scored import ScoredTeacher
from pipeline_lib.models.teacher import PROMPT, Teacher, load_classifier


def load_teacher(folder: Path, device: torch.device | str, precision: str) -> Teacher:
    """Load a classifier, or a language model with its prompt, from a folder of transformers; safetensors only."""
    if (folder / PROMPT).exists():
        return ScoredTeacher.read(folder, device, precision)
    return Teacher.of(folder, *load_classifier(folder), device, precision)
