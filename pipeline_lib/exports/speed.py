"""Times a task's teachers and students on one core, on all, and on the accelerator.

Each has a process of its own: libraries decide how many threads they use when they start, and a
thread keeps its cores.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from pipeline_lib.base.devices import resolve_device
from pipeline_lib.base.files import fresh_folder, sha256_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import cpu_name, usable_cores
from pipeline_lib.base.text import Text
from pipeline_lib.exports.contestants import Contestant, System, add_onnx, leave_out_deviating, students_of, teachers_of
from pipeline_lib.exports.timing import latency, spread, time_in_turns, use_cores
from pipeline_lib.params import Params
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.results.speed import Form, Place, Rate, TaskSpeed, Timed, folder_bytes
from pipeline_lib.shards.columns import texts
from pipeline_lib.shards.fingerprint import code_fingerprint
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.store import kept_together

SECONDS, REPEATS = 1.0, 3
"""The least duration of a turn, and how many turns each form has."""
MAX_SENTENCES = 4096
"""How many different sentences are read at most."""
ANSWERS = 256
"""On how many sentences a system's forms must answer alike."""


@dataclass(frozen=True)
class Job:
    """What one process measures.

    :ivar systems: the forms of each, the one in torch first; :ivar sentences: sorted by length.
    :ivar latency: whether it is measured too.
    """

    systems: list[list[Contestant]]
    device: str
    sentences: list[Text]
    latency: bool = False


@dataclass(frozen=True)
class Measured:
    """What one process measured of a contestant, as in :class:`Form`."""

    rate: Rate
    latency_ms: float | None


Timings = Mapping[Place, Mapping[Contestant, Measured]]


def measure_task(params: Params, task: str, layout: Layout) -> TaskSpeed:
    """Export the task's best student to ``exports/<task>``, time all systems, return the timings.

    What was timed before, under the same conditions, is found in the store.  If the student cannot
    be exported, the folder is empty and the timings say why.
    """
    settings, device = params.task(task), str(resolve_device(params.device))
    rows, scores = params.scored_methods_of(task), TaskScores.read(layout.scores(task))
    best = scores.best_on_dev(name for name in scores.methods if name in rows)
    exported = fresh_folder(layout.exported(task))
    students = students_of(params, task, layout, device, best)
    teachers = teachers_of(params, task, layout, device)
    split, sentences = sample_texts(layout, task)
    conditions = {
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "accelerator": _accelerator(device),
        "torch": torch.__version__,
        "onnxruntime": _installed("onnxruntime"),
        "seconds": SECONDS,
        "repeats": REPEATS,
    }
    systems = {f"teacher {name}": one for name, one in teachers.items()}
    systems |= {f"student {name}": one for name, one in students.items()}

    def time_systems(names: list[str]) -> dict[str, Any]:
        timed = [systems[name] for name in names]
        with TemporaryDirectory() as scratch:
            for number, system in enumerate(timed):
                if system.method is None:
                    add_onnx(system, settings.is_pair, Path(scratch, str(number)))
                leave_out_deviating(system, spread(sentences, ANSWERS))
            timings = _in_processes(timed, sentences, device)
            return {
                name: _timed(system, timings).model_dump(mode="json") for name, system in zip(names, timed, strict=True)
            }

    # Without onnx a teacher has no ONNX form; once it is installed, there is one to time.
    exporter = _installed("onnx")
    shared = [conditions, exporter, sha256_json(sentences), code_fingerprint(__name__)]
    made_from = {name: [*shared, system.digest()] for name, system in systems.items()}
    timings = kept_together("timings", made_from, time_systems)
    return TaskSpeed(
        **conditions,
        split=split,
        pair=settings.is_pair,
        sentences=len(sentences),
        seed=params.seeds[0],
        exported=best if any(exported.iterdir()) else None,
        teachers={name: Timed(**timings[f"teacher {name}"]) for name in teachers},
        students={name: Timed(**timings[f"student {name}"]) for name in students},
    )


def _accelerator(device: str) -> str | None:
    if device == "cpu":
        return None
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _installed(distribution: str) -> str | None:
    """Return its version, or None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def sample_texts(layout: Layout, task: str) -> tuple[str, list[Text]]:
    """Return the task's test split, or dev if there is none, and its first texts by length."""
    split = "test" if layout.split(task, "test").exists() else "dev"
    rows = ShardSet.open(layout.split(task, split)).to_table().slice(0, MAX_SENTENCES)
    return split, sorted(texts(rows), key=_length)


def _length(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _in_processes(systems: Sequence[System], sentences: list[Text], device: str) -> Timings:
    """Time all systems on one core, on all, and on the accelerator if there is one."""
    cores = usable_cores()
    forms = [system.forms for system in systems]
    jobs: dict[Place, tuple[int, Job]] = {"one_core": (1, Job(forms, "cpu", sentences, latency=True))}
    if cores > 1:
        jobs["all_cores"] = cores, Job(forms, "cpu", sentences)
    if device != "cpu":
        accelerated = [system.accelerated for system in systems]
        jobs["accelerator"] = cores, Job(accelerated, device, sentences)
    timings = {}
    for hardware, (count, job) in jobs.items():
        # A forked process would share the threads and the settings of this one.
        context = get_context("spawn")
        with ProcessPoolExecutor(1, context, initializer=use_cores, initargs=(count,)) as pool:
            timings[hardware] = pool.submit(measure, job).result()
    return timings


def measure(job: Job) -> dict[Contestant, Measured]:
    """Time contestants in turns, in this process."""
    systems = {one: one.load(job.device) for forms in job.systems for one in forms}
    rates = time_in_turns(systems, job.sentences, SECONDS, REPEATS)
    return {
        one: Measured(rates[one], latency(predict, job.sentences, SECONDS) if job.latency else None)
        for one, predict in systems.items()
    }


def _timed(system: System, timings: Timings) -> Timed:
    forms = {one.form: _form(one, timings) for one in [*system.forms, *system.accelerated]}
    return Timed(method=system.method, forms=forms, not_timed=system.not_timed)


def _form(one: Contestant, timings: Timings) -> Form:
    measured = {hardware: by_form[one] for hardware, by_form in timings.items() if one in by_form}
    latencies = [result.latency_ms for result in measured.values() if result.latency_ms is not None]
    return Form(
        bytes=folder_bytes(one.folder),
        rates={hardware: result.rate for hardware, result in measured.items()},
        latency_ms=latencies[0] if latencies else None,
    )
