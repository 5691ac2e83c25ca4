"""Times a task's teachers and students on one core, on all, and on the accelerator.

Each has a process of its own: libraries decide how many threads they use when they start, and a
thread keeps its cores.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from pipeline_lib.base.devices import resolve_device
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import fresh_folder, sha256_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import cpu_name
from pipeline_lib.base.text import Text
from pipeline_lib.base.threads import usable_cores
from pipeline_lib.evaluation.timing import latency, same_answers, spread, time_in_turns, use_cores
from pipeline_lib.exports.contestants import INT8, Contestant, System, add_onnx, students_of, teachers_of
from pipeline_lib.params import Params
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.results.speed import ColdStart, Form, Place, Rate, TaskSpeed, Timed, folder_bytes
from pipeline_lib.shards.columns import texts
from pipeline_lib.shards.fingerprint import code_fingerprint
from pipeline_lib.shards.kept import kept_together
from pipeline_lib.shards.shard_sets import ShardSet

SECONDS, REPEATS = 1.0, 3
"""The least duration of a turn, and how many turns each form has."""
MAX_SENTENCES = 4096
"""How many different sentences are read at most."""
ANSWERS = 256
"""On how many sentences the answers of a system's forms are compared."""


@dataclass(frozen=True)
class Job:
    """What one process measures.

    :ivar systems: the forms of each, the one in torch first; :ivar sentences: sorted by length.
    :ivar latency, agreement: whether these are measured too.
    """

    systems: list[list[Contestant]]
    device: str
    sentences: list[Text]
    latency: bool = False
    agreement: bool = False


@dataclass(frozen=True)
class Measured:
    """What one process measured of a contestant, as in :class:`Form`."""

    rate: Rate
    latency_ms: float | None
    agreement: float | None


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
            timings = _in_processes(timed, sentences, device)
            return {
                name: _timed(system, timings, settings.is_pair).model_dump(mode="json")
                for name, system in zip(names, timed, strict=True)
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
    rows = ShardSet.open(layout.split(task, split)).table().slice(0, MAX_SENTENCES)
    return split, sorted(texts(rows), key=_length)


def _length(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _in_processes(systems: Sequence[System], sentences: list[Text], device: str) -> Timings:
    """Time all systems on one core, on all, and on the accelerator if there is one."""
    cores = usable_cores()
    forms = [system.forms for system in systems]
    jobs: dict[Place, tuple[int, Job]] = {
        "one_core": (1, Job(forms, "cpu", sentences, latency=True, agreement=cores == 1))
    }
    if cores > 1:
        jobs["all_cores"] = cores, Job(forms, "cpu", sentences, agreement=True)
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
    agreements: dict[Contestant, float] = {}
    some = spread(job.sentences, ANSWERS)
    for in_torch, *others in job.systems if job.agreement else []:
        answers = systems[in_torch](some) if others else None
        agreements |= {one: same_answers(answers, systems[one](some), in_torch.kind) for one in others}
    return {
        one: Measured(
            rates[one], latency(predict, job.sentences, SECONDS) if job.latency else None, agreements.get(one)
        )
        for one, predict in systems.items()
    }


def cold_start(folder: Path, pair: bool) -> ColdStart:
    """Time ``distill predict``, from the start of its process to the end, with one sentence."""
    text = "A quiet triumph.\tIt is a joy." if pair else "A quiet triumph."
    command = [sys.executable, "-m", "pipeline_lib.cli", "predict", str(folder), text]
    processor, wall = _processor_seconds(), time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise PotstillError(f"{folder}: `distill predict` fails on it: {run.stderr.strip()}")
    return ColdStart(wall=time.perf_counter() - wall, processor=_processor_seconds() - processor)


def _processor_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _timed(system: System, timings: Timings, pair: bool) -> Timed:
    forms = {
        one.form: _form(one, timings, pair, system.method is not None and one.form == INT8)
        for one in [*system.forms, *system.accelerated]
    }
    return Timed(method=system.method, forms=forms, not_timed=system.not_timed)


def _form(one: Contestant, timings: Timings, pair: bool, cold: bool) -> Form:
    measured = {hardware: part[one] for hardware, part in timings.items() if one in part}
    return Form(
        bytes=folder_bytes(one.folder),
        rates={hardware: result.rate for hardware, result in measured.items()},
        latency_ms=_known(result.latency_ms for result in measured.values()),
        agreement=_known(result.agreement for result in measured.values()),
        cold_start=cold_start(one.folder, pair) if cold else None,
    )


def _known(values: Iterable[float | None]) -> float | None:
    """Return the first value that was measured."""
    return next((value for value in values if value is not None), None)
