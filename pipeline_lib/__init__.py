"""Distilling BERT-class teachers into small students.

The rooms, from the lowest to the highest; each imports from those before it only:

- ``base``: errors, files, layout, devices; what a word is, and what the kinds of tasks are.
- ``params``: what params.yaml may say.
- ``shards``: bytes that are never computed twice: shard sets, passes, engines, the store.
- ``tables``: users' files in, users' files out.
- ``sources``: pinned bytes and their licences.
- ``text``: numbered words and pieces, ragged batches.
- ``results``: scores, their measures and comparisons, as data and as tables.
- ``corpora``: what is learned from: tasks, Wikipedia, transfer sets.
- ``models``: everything with a forward pass: built, loaded, saved and served.
- ``outputs``: every pass over a teacher, answers and vectors in files, the proof that rows align.
- ``training``: every training spec and the one loop.
- ``evaluation``: labels and logits become scores.
- ``inspection``: looking into shards.
- ``exports``: students in other people's formats.
- ``retrieval``: vectors against vectors, and how well they find.
- ``onboarding``: from files to parameters.
- ``report``: the page.
- ``commands``: what ``distill`` can do; ``stages``: what ``dvc repro`` runs.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline_lib.base.errors import PotstillError
    from pipeline_lib.exports.numpy_student import Predictions
    from pipeline_lib.exports.opening import load_encoder, load_student, load_teacher, open_shards

# onnxruntime sends statistics from its first import on, unless this is set.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"
__all__ = ["PotstillError", "Predictions", "load_encoder", "load_student", "load_teacher", "open_shards"]
_MODULES = {
    "PotstillError": "base.errors",
    "Predictions": "exports.numpy_student",
    "load_encoder": "exports.opening",
    "load_student": "exports.opening",
    "load_teacher": "exports.opening",
    "open_shards": "exports.opening",
}
"""Where the public names are."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
