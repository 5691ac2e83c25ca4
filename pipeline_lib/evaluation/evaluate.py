"""Evaluating one task: runs every student over the held-out splits and scores the results."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record, sha256_folder, sha256_json
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.model_config import output_names
from pipeline_lib.base.seals import SEAL
from pipeline_lib.base.text import Text
from pipeline_lib.evaluation.heldout import Heldout, System, read_heldout, shared_texts, training_labels
from pipeline_lib.evaluation.scores import task_scores
from pipeline_lib.models.folders import check_names, require_model
from pipeline_lib.params import Method, Params
from pipeline_lib.results.schema import ParameterCounts, Source, TaskScores, Training
from pipeline_lib.shards.columns import list_column, matrix
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.engine.protocol import Report
from pipeline_lib.shards.fingerprint import training_code
from pipeline_lib.shards.shard_sets import read_manifest, write_shard
from pipeline_lib.shards.store import kept_json, kept_table
from pipeline_lib.shards.training_records import LabelsRecord, ModelRecord, SearchRecord, StudentRecord, TeacherRecord

if TYPE_CHECKING:
    from pipeline_lib.models.students.student import Student


def evaluate_task(params: Params, task: str, layout: Layout) -> TaskScores:
    """Write and return the scores of one task, and write its predictions."""
    settings, teachers = params.task(task), params.teachers_of(task)
    heldout = read_heldout(layout, task, teachers, settings.label_of("dev") is not None)
    systems = run_methods(params, task, heldout, layout.students(task))
    scores = task_scores(
        settings,
        heldout,
        read_manifest(layout.split(task, "train")).rows,
        training_labels(layout, task),
        {
            name: teacher_parameters(layout.teacher(task, name), settings.label_names, teacher.runs)
            for name, teacher in teachers.items()
        },
        systems,
        shared_texts(layout, task),
        {name: ModelRecord.read(layout.teacher(task, name) / "training.json") for name in teachers},
    )
    table = predictions_table(heldout, systems, KINDS[settings.kind].label_type(len(settings.label_names)))
    # A seal of before is not theirs; the stage seals the folder when it has written all of it.
    (layout.results(task) / SEAL).unlink(missing_ok=True)
    write_shard(layout.predictions(task), table)
    scores.write(layout.scores(task))
    return scores


@dataclass(frozen=True)
class StudentRun:
    """A trained student to run on the ``texts`` of each split; ``names``: its classes."""

    folder: Path
    device: str
    texts: dict[str, list[Text]]
    names: list[str]


def run_methods(params: Params, task: str, heldout: dict[str, Heldout], folder: Path) -> dict[str, System]:
    """Run every seed of every method of the task over the held-out splits, in parallel."""
    texts = {name: split.texts for name, split in heldout.items()}
    names, rows = params.task(task).label_names, params.scored_methods_of(task)
    devices = {method: answering_device(params, row) for method, row in rows.items()}
    results = {}
    for device in sorted(set(devices.values())):
        keys = [(name, seed) for name in rows if devices[name] == device for seed in params.seeds]
        jobs = [StudentRun(folder / name / str(seed), device, texts, names) for name, seed in keys]
        done = make_engine(params, device).run(run_student, jobs, preload=_import_students)
        results |= {keys[number]: result for number, result in done}
    return {
        method: System(
            row,
            params.teacher_of(task, row),
            learned_from(params, row, task),
            {s: {seed: results[method, seed][0][s] for seed in params.seeds} for s in heldout},
            results[method, params.seeds[-1]][1],
            read_training(folder / method, params.seeds),
            params.students[row.student].fitted and not row.objective.needs_teacher,
        )
        for method, row in rows.items()
    }


def answering_device(params: Params, row: Method) -> str:
    """Return where a row's students answer: those of a pretrained model's layers on ``device``.

    All others on the CPU: they are small, and their scores should be the same everywhere.
    """
    if not params.students[row.student].pretrained:
        return "cpu"
    from pipeline_lib.base.devices import resolve_device

    return str(resolve_device(params.device))


def learned_from(params: Params, row: Method, task: str) -> Source:
    """Return whose answers a row learns from in a task.

    Synthetic rows have no label: for them, a labels objective uses the teacher's answers.
    """
    if not params.reads_outputs(row, task):
        return "gold"
    labelled = params.task(task).learns_from_labels and "labels" in row.objective.weights
    return "both" if labelled else "teacher"


def _import_students() -> None:
    # So that forked workers have the modules already.
    import pipeline_lib.models.students.student  # noqa: F401


def read_training(folder: Path, seeds: Sequence[int]) -> Training:
    """Return how one method was trained: its rate and the rates tried, rows, steps."""
    search = SearchRecord.read(folder / "search.json")
    records = {str(seed): StudentRecord.read(folder / str(seed) / "training.json") for seed in seeds}
    first = records[str(seeds[0])]
    return Training(
        learning_rate=search.learning_rate,
        best_dev_by_rate=search.best_dev_by_rate,
        dev_loss_by_rate=search.dev_loss_by_rate,
        rows=first.rows,
        steps=first.steps,
        batch_size=first.settings.batch_size,
        best_step={seed: record.best_step for seed, record in records.items()},
    )


def run_student(run: StudentRun, report: Report) -> tuple[dict[str, np.ndarray], ParameterCounts]:
    """Return a student's logits by split, float32, (rows, classes), and its parameter counts.

    Answers to the same texts are found if neither the student nor the code has changed.
    """
    from pipeline_lib.models.weights import parameter_counts

    require_model(run.folder)
    content = [sha256_folder(run.folder), run.device.split(":")[0], run.names]
    made_from = [*content, sha256_json(run.texts), training_code("pipeline_lib.models.students.student")]
    student = cache(partial(_load, run))
    table = kept_table("answers", made_from, lambda: _answers(run, student()))
    counts = kept_json("parameter_counts", made_from, lambda: parameter_counts(student()))
    split = table["split"].to_numpy(zero_copy_only=False)
    logits = matrix(table["logits"])
    return {name: logits[split == name] for name in run.texts}, ParameterCounts(**counts)


def _load(run: StudentRun) -> "Student":
    from pipeline_lib.models.students.student import load_student

    student = load_student(run.folder, run.device)
    check_names(run.folder, student.label_names, run.names)
    return student


def _answers(run: StudentRun, student: "Student") -> pa.Table:
    """Return a student's logits for all texts, below one another."""
    tables = []
    for split, texts in run.texts.items():
        logits = student.logits(texts)
        _check_answers(run.folder, split, logits, (len(texts), len(run.names)))
        tables.append(pa.table({"split": [split] * len(texts), "logits": list_column(logits)}))
    return pa.concat_tables(tables).combine_chunks()


def teacher_parameters(folder: Path, names: list[str], runs: bool = True) -> ParameterCounts | None:
    """Return the parameter counts of one of the task's teachers, from its fine-tuning record.

    :param runs: whether it is a model run here; otherwise its parameters are unknown.
    """
    record = folder / "training.json"
    if not runs:
        check_names(folder, LabelsRecord.read(record).labels, names)
        return None
    require_model(folder)
    check_names(folder, output_names(read_record(folder / "config.json", "id2label"), folder), names)
    return ParameterCounts(**TeacherRecord.read(record).parameters)


def predictions_table(heldout: dict[str, Heldout], systems: dict[str, System], label: pa.DataType) -> pa.Table:
    """Return a row per held-out example: split, row, label (null if hidden), and all logits.

    The columns after ``label`` are named by the teachers, and ``<method>-<seed>`` by the students.
    """
    tables = []
    for name, split in heldout.items():
        rows = len(split.texts)
        columns = {
            "split": pa.array([name] * rows, pa.string()),
            "row": pa.array(np.arange(rows, dtype=np.int32)),
            "label": pa.nulls(rows, label) if split.labels is None else _label_column(split.labels, label),
        }
        columns |= {teacher: list_column(logits) for teacher, logits in split.teachers.items()}
        for method, system in systems.items():
            columns |= {f"{method}-{seed}": list_column(logits) for seed, logits in system.logits[name].items()}
        tables.append(pa.table(columns))
    return pa.concat_tables(tables).combine_chunks()


def _label_column(labels: np.ndarray, label: pa.DataType) -> pa.Array:
    return list_column(labels) if labels.ndim == 2 else pa.array(labels, label)


def _check_answers(folder: Path, split: str, logits: np.ndarray, shape: tuple[int, int]) -> None:
    if logits.shape != shape:
        raise PotstillError(
            f"{folder}: logits of shape {logits.shape} for the {split} split, {shape} expected. "
            "Train it again: delete the folder and run `distill run`."
        )
    if not np.isfinite(logits).all():
        row = int(np.flatnonzero(~np.isfinite(logits).all(axis=1))[0])
        raise PotstillError(
            f"{folder}: not a number in the logits of row {row} of {split}. Its training diverged: "
            "lower the learning rate or set `clip_norm`, and run `distill run`."
        )
