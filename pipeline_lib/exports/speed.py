"""Times a task's teachers and students on one core, on all, and on the accelerator.

Each has a process of its own: libraries decide how many threads they use when they start, and a thread keeps its cores.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
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
from pipeline_lib.exports.folders import CONFIG
from pipeline_lib.exports.timing import latency, spread, time_in_turns, use_cores
from pipeline_lib.params import Params
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.results.speed import Form, Place, Rate, TaskSpeed, Timed, folder_bytes
from pipeline_lib.shards.columns import texts
from pipeline_lib.shards.fingerprint import code_fingerprint
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.store import kept_together

SECONDS, REPEATS = 0.5, 3
"""The least duration of a turn, and how many turns each form has."""
MAX_SENTENCES = 4096
ANSWERS = 256
"""On how many sentences a system's forms must answer alike."""


Measured = Mapping[Contestant, tuple[Rate, float | None]]
"""Rate and latency, in milliseconds, of what one process has timed."""


def measure_task(params: Params, task: str, layout: Layout) -> TaskSpeed:
    """Export the task's best student to ``exports/<task>``, time all systems, return the timings.

    What was timed before, under the same conditions, is in the store.  If the student cannot be exported, the folder
    has a README that says why, and so do the timings.
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
    systems = {f"teacher {name}": system for name, system in teachers.items()}
    systems |= {f"student {name}": system for name, system in students.items()}

    def time_systems(names: list[str]) -> dict[str, Any]:
        timed = [systems[name] for name in names]
        with TemporaryDirectory() as scratch:
            for number, system in enumerate(timed):
                if system.method is None:
                    add_onnx(system, settings.is_pair, Path(scratch, str(number)))
                leave_out_deviating(system, spread(sentences, ANSWERS))
            timings = _in_processes(timed, sentences, device)
            return {name: _timed(systems[name], timings).model_dump(mode="json") for name in names}

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
        exported=best if (exported / CONFIG).exists() else None,
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
    return split, sorted(texts(rows), key=lambda text: len("".join(text)))


def _in_processes(systems: Sequence[System], sentences: list[Text], device: str) -> dict[Place, Measured]:
    """Time all systems on one core, on all, and on the accelerator if there is one."""
    cores, forms = usable_cores(), [form for system in systems for form in system.forms]
    jobs: dict[Place, tuple[int, list[Contestant], str]] = {"one_core": (1, forms, "cpu")}
    if cores > 1:
        jobs["all_cores"] = cores, forms, "cpu"
    if device != "cpu":
        jobs["accelerator"] = cores, [form for system in systems for form in system.accelerated], device
    timings = {}
    for hardware, (count, contestants, where) in jobs.items():
        # A forked process would share the threads and the settings of this one.
        context = get_context("spawn")
        with ProcessPoolExecutor(1, context, initializer=use_cores, initargs=(count,)) as pool:
            job = pool.submit(measure, contestants, where, sentences, hardware == "one_core")
            timings[hardware] = job.result()
    return timings


def measure(contestants: Sequence[Contestant], device: str, sentences: list[Text], with_latency: bool) -> Measured:
    """Time contestants in turns, in this process."""
    systems = {contestant: contestant.load(device) for contestant in contestants}
    rates = time_in_turns(systems, sentences, SECONDS, REPEATS)
    return {
        contestant: (rates[contestant], latency(predict, sentences, SECONDS) if with_latency else None)
        for contestant, predict in systems.items()
    }


def _timed(system: System, timings: Mapping[Place, Measured]) -> Timed:
    forms = {each.form: _form(each, timings) for each in [*system.forms, *system.accelerated]}
    return Timed(method=system.method, forms=forms, not_timed=system.not_timed)


def _form(contestant: Contestant, timings: Mapping[Place, Measured]) -> Form:
    measured = {hardware: by_form[contestant] for hardware, by_form in timings.items() if contestant in by_form}
    return Form(
        bytes=folder_bytes(contestant.folder),
        rates={hardware: rate for hardware, (rate, _) in measured.items()},
        latency_ms=next((duration for _, duration in measured.values() if duration is not None), None),
    )
