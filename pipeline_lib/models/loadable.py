"""Whether the models that params.yaml names can be loaded, and answer a text.

``distill init`` and ``distill check`` load those in local folders, ``fetch_models`` all of them.
"""

from pathlib import Path

from pipeline_lib.base.errors import faults_of
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.teacher import load_classifier, load_pretrained
from pipeline_lib.models.vector_model import load_vector_model
from pipeline_lib.params import Finished, Params, SentenceVectors

CLASSES = ["no", "yes"]
"""Stand for the labels of a task that is not known yet."""


def loading_faults(params: Params, layout: Layout | None = None) -> list[str]:
    """Return one line per model that cannot be loaded as params.yaml uses it.

    :param layout: where all models and finished teachers were fetched to; None: just those in local
        folders are loaded, from there.
    """
    inputs, faults = Path(params.inputs), []
    fetched = None if layout is None else {name: layout.model(name) for name in params.models}
    for name, folder in (fetched or params.local_models()).items():
        faults += _faults(f"params.yaml: models.{name}", params, name, folder)
    folders: dict[Path, str] = {}
    for name, teacher in params.teachers.items():
        for task in (task for task in params.tasks if teacher.knows(task)):
            if isinstance(teacher.tuning, Finished):
                local = inputs / teacher.tuning.path(task)
                folder = local if layout is None else layout.checkpoint(name, task)
                folders.setdefault(folder, f"params.yaml: teachers.{name}.tuning.checkpoint")
    for folder, key in folders.items():
        faults += [f"{key}: {fault}" for fault in finished_faults(folder)]
    return faults


def finished_faults(folder: Path) -> list[str]:
    """Return why a fine-tuned teacher cannot be run, if it cannot: one line, or none."""
    return faults_of(load_classifier, folder)


def base_faults(folder: Path) -> list[str]:
    """Return why a model cannot be tuned as a teacher, if it cannot: one line, or none."""
    return faults_of(load_classifier, folder, CLASSES)


def _faults(key: str, params: Params, name: str, folder: Path) -> list[str]:
    """Load a row of ``models`` in each way in which it is used."""
    vectors, faults = params.sentence_vectors, []
    if any(teacher.model == name for teacher in params.teachers.values()):
        faults += base_faults(folder)
    elif isinstance(vectors, SentenceVectors) and vectors.model == name:
        faults += faults_of(load_vector_model, folder, "cpu", "float32", vectors.pooling)
    else:
        faults += faults_of(load_pretrained, folder, "AutoModel", {})
    return [f"{key}: {fault}" for fault in faults]
