"""Distilling BERT-class teachers into small students.

The rooms, from the lowest to the highest; each imports from those before it only: ``base`` (errors,
files, layout, devices), ``params`` (what params.yaml says), ``storage`` (shards and the store),
``engine`` (who computes), ``text`` (words, tokens, lexicon), ``sources`` (pinned bytes from
somewhere), ``cpu`` (faster versions of what torch does too), ``networks`` (the students' layers),
``training`` (the one loop), ``tasks`` (labelled rows, their tags and metrics), ``wikipedia``
(sentences without labels), ``augmentation`` (transfer sets), ``students``, ``teachers``,
``distillation`` (params.yaml's rows made into trainings), ``retrieval`` (vectors compared with
many others), ``evaluation``, ``inspection`` (stored rows, looked into), ``report``, ``exports``
(students in other people's formats), ``studies``, ``onboarding`` (from files to parameters),
``commands``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline_lib.base.errors import DistilleryError
    from pipeline_lib.exports.numpy_student import Predictions
    from pipeline_lib.exports.opening import load_encoder, load_student, load_teacher, open_shards

__version__ = "0.1.0"
__all__ = [
    "DistilleryError",
    "Predictions",
    "load_encoder",
    "load_student",
    "load_teacher",
    "open_shards",
]
_MODULES = {
    "DistilleryError": "base.errors",
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
