"""Sentences per second, from raw text to logits, tokenisation included.

Teachers and students take turns within one run, so that other load on the machine affects all of
them equally.  Timings are not reproducible, so they are kept apart from the scores and no result
depends on them.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import cpu_name
from pipeline_lib.base.text import Text
from pipeline_lib.evaluation.evaluate import require_model
from pipeline_lib.params import Params
from pipeline_lib.storage.columns import texts
from pipeline_lib.storage.shards import ShardSet

if TYPE_CHECKING:
    import torch

Predict = Callable[[Sequence[Text]], Any]


def measure_task(params: Params, task: str, layout: Layout) -> dict[str, Any]:
    """Time the task's teachers and one student of each architecture; return the stage's JSON."""
    from pipeline_lib.base.devices import resolve_device

    device = resolve_device(params.device)
    sample = sample_texts(layout, task, params.speed.sentences)
    examples = student_examples(params, task)
    teachers = {name: own for name, own in params.teachers_of(task).items() if own.runs}
    contestants: dict[str, Predict] = {
        f"teachers.{name}": _teacher(params, layout.teacher(task, name), own.max_length, device)
        for name, own in teachers.items()
    }
    for student, method in examples.items():
        folder = layout.student(task, method, params.seeds[0])
        contestants[f"students.{student}"] = _student(folder, device)
    timed = time_in_turns(contestants, sample, params.speed.repeats)
    return machine(device) | {
        "sentences": len(sample),
        "repeats": params.speed.repeats,
        "seed": params.seeds[0],
        "methods": examples,
        "sentences_per_second": {
            "teachers": {name: timed[f"teachers.{name}"] for name in teachers},
            "students": {student: timed[f"students.{student}"] for student in examples},
        },
    }


def student_examples(params: Params, task: str) -> dict[str, str]:
    """Return, for each student architecture of the task, the first method that trains it."""
    examples: dict[str, str] = {}
    for name, method in params.scored_methods_of(task).items():
        examples.setdefault(method.student, name)
    return examples


def sample_texts(layout: Layout, task: str, count: int) -> list[Text]:
    """Return the first ``count`` sentences of the task's held-out and training texts."""
    found: list[Text] = []
    for split in ("dev", "test", "train"):
        folder = layout.split(task, split)
        if len(found) < count and folder.exists():
            found += texts(ShardSet.open(folder).table().slice(0, count - len(found)))
    return found


def time_in_turns(
    contestants: dict[str, Predict], sample: Sequence[Text], repeats: int
) -> dict[str, dict[str, float]]:
    """Return each contestant's median, lowest and highest rate, in texts or pairs per second."""
    for predict in contestants.values():
        # The first call pays for kernels, caches and lazy imports, which must not count.
        predict(sample[:64])
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, predict in contestants.items():
            start = time.perf_counter()
            predict(sample)
            rates[name].append(len(sample) / max(time.perf_counter() - start, 1e-9))
    return {name: _summary(values) for name, values in rates.items()}


def _summary(rates: list[float]) -> dict[str, float]:
    numbers = {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}
    return {name: round(value, 1) for name, value in numbers.items()}


def machine(device: "torch.device") -> dict[str, Any]:
    """Return what was measured on: device, processor, threads, torch's version."""
    import torch

    cuda = device.type == "cuda"
    return {
        "device": str(device),
        "accelerator": torch.cuda.get_device_name(device) if cuda else None,
        "cpu": cpu_name(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _teacher(params: Params, folder: Path, max_length: int, device: "torch.device") -> Predict:
    from pipeline_lib.base.devices import resolve_batch_tokens, resolve_precision
    from pipeline_lib.teachers.model import load_teacher

    require_model(folder)
    precision = resolve_precision(params.precompute.precision, device)
    teacher = load_teacher(folder, device, precision)
    batch_tokens = resolve_batch_tokens(params.precompute.batch_tokens, device)
    return lambda texts: teacher.predict(texts, max_length, batch_tokens)


def _student(folder: Path, device: "torch.device") -> Predict:
    from pipeline_lib.students.student import load_student

    require_model(folder)
    return load_student(folder, device=str(device)).logits
