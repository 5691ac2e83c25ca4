"""What each stage reads of params.yaml: its rows, with what they refer to filled in.

DVC can make a stage depend on a key, but neither on "the methods of this task" nor on "the student that this row
names".  So the first stage writes them into a file per stage and item, and the stage depends on that: it runs again
exactly when something that it reads has changed.  Keys that a stage reads just as they are stand in dvc.yaml.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pipeline_lib.params.base import Section
from pipeline_lib.params.methods import Method
from pipeline_lib.params.schema import Params
from pipeline_lib.params.tasks import Task

Settings = dict[str | None, Any]
"""A stage's settings by item of its matrix; by None for a stage without one."""


def stage_settings(params: Params) -> dict[str, Settings]:
    """Return what each stage reads of params.yaml, for every item, as JSON."""
    tasks = params.tasks
    return {
        "fetch_models": {None: _fetched_models(params)},
        "fetch_data": {task: {} for task in tasks},
        "digest_wikipedia": {None: {name: reads_wikipedia(task) for name, task in tasks.items()}},
        "augment": {task: _augmented(params, task) for task in tasks},
        "refine_teacher": {name: _refined(params, name) for name in params.refined},
        "finetune_teacher": {task: _tuned(params, task) for task in tasks},
        "precompute": {task: _answered(params, task) for task in tasks},
        "precompute_vectors": {None: _vector_sets(params)},
        "pretrain": {name: _encoder(params, name) for name in params.encoders},
        "digest_starts": {None: {task: starts_of(params, task) for task in tasks}},
        "train_joint": {name: _joint(params, name) for name in params.joint},
        "train": {task: _trained(params, task) for task in tasks},
        "evaluate": {task: _scored(params, task) for task in tasks},
        "retrieve": {name: _retrieved(params, name) for name in params.retrieval},
        "similarity": {name: _read_columns(params, row.task) for name, row in params.similarity.items()},
    }


def _dump(row: Section, *without: str) -> dict[str, Any]:
    return row.model_dump(mode="json", exclude=set(without))


def _rows(rows: Mapping[str, Section], *without: str) -> list[dict[str, Any]]:
    """Return rows in their order, which can matter, without the keys that have selected them."""
    return [{"name": name} | _dump(row, "tasks", *without) for name, row in rows.items()]


def _labels(params: Params, task: str) -> dict[str, Any]:
    """Return what a training on a task knows of its labels; classes are in their order."""
    settings = params.task(task)
    return {
        "labels": settings.label_names,
        "metrics": settings.metrics,
        "positive": settings.positive_class,
        "pair": settings.is_pair,
        "labelled": [settings.learns_from_labels, settings.label_of("dev") is not None],
    }


def reads_wikipedia(task: Task) -> bool:
    """Whether a task's texts are sentences of Wikipedia."""
    return task.source.kind == "neighbours"


class Starts(NamedTuple):
    """What a task's words and students start from: rows of params.yaml; whether also a file of word vectors."""

    models: list[str]
    encoders: list[str]
    joint: list[str]
    file: bool


def starts_of(params: Params, task: str) -> Starts:
    """Return what a task's words and students start from."""
    words, rows = params.vocabulary.vectors, params.methods_of(task).values()
    models = {params.students[row.student].source_model for row in rows} - {None}
    models |= {words.model} if words.kind == "model" else set()
    started = {row.start for row in rows}
    encoders, joint = sorted(started & {*params.encoders}), sorted(started & {*params.joint} - {*params.encoders})
    return Starts(sorted(models), encoders, joint, words.kind == "file")


def _augmented(params: Params, task: str) -> dict[str, Any]:
    recipes = {row.tasks[task] for row in params.sentence_encoders().values() if task in row.tasks}
    return {"recipes": _recipes(params, params.recipes_of(task)), "encoders": sorted(map(str, recipes))}


def _recipes(params: Params, names: list[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "unlabelled": recipe.unlabelled} | _dump(recipe, "tasks")
        for name, recipe in ((name, params.recipe(name)) for name in names)
    ]


def _fetched_models(params: Params) -> dict[str, Any]:
    fetched = {
        name: {"tuning": _dump(row.tuning), "tasks": [t for t in params.tasks if row.knows(t)]}
        for name, row in params.teachers.items()
        if row.tuning.kind in ("finished", "answers", "scored")
    }
    return {
        "models": {name: _dump(source) for name, source in params.models.items()},
        "teachers": fetched,
        "labels": {
            t: [params.tasks[t].kind, params.tasks[t].label_names] for row in fetched.values() for t in row["tasks"]
        },
        "lengths": params.lengths(),
        "layers": {
            name: [row.model, row.max_length, row.states.layers if row.states else None]
            for name, row in params.teachers.items()
        },
        "vectors": _dump(params.vocabulary.vectors),
    }


def _refined(params: Params, name: str) -> dict[str, Any]:
    row = params.teachers[name]
    return {
        "teacher": _dump(row, "data", "states"),
        "tasks": [{"name": t} | _labels(params, t) for t in params.tasks if row.knows(t)],
        "precision": params.precompute.precision,
    }


def _tuned(params: Params, task: str) -> dict[str, Any]:
    return {"teachers": _rows(params.teachers_of(task), "data", "states"), "precision": params.precompute.precision}


def _answered(params: Params, task: str) -> dict[str, Any]:
    """Return which sets a task's teachers answer, and what their passes depend on besides them."""
    recipes = params.recipes_of(task)
    return {
        "teachers": [
            {
                "name": name,
                "kind": row.tuning.kind,
                "max_length": row.max_length,
                "states": row.states and _dump(row.states),
                "sets": [recipe for recipe in recipes if row.answers(recipe)],
            }
            for name, row in params.teachers_of(task).items()
        ],
        "states": params.states_of(task),
        "joint": sorted(params.read_by_joint(task)),
    }


def _vector_sets(params: Params) -> dict[str, Any]:
    rows = params.sentence_encoders()
    sets = {(task, recipe) for row in rows.values() for task, recipe in row.tasks.items() if recipe}
    return {"wikipedia": bool(rows), "tasks": sorted(sets)}


def _encoder(params: Params, name: str) -> dict[str, Any]:
    row = params.encoders[name]
    return {
        "encoder": _dump(row),
        "student": _dump(params.students[row.student]),
        "optimiser": _dump(params.optimisers[row.optimiser]),
    }


def _joint(params: Params, name: str) -> dict[str, Any]:
    row = params.joint[name]
    return {
        "row": _dump(row, "tasks"),
        "student": _dump(params.students[row.student]),
        "optimiser": _dump(params.optimisers[row.optimiser]),
        "tasks": [
            _labels(params, task) | {"task": task, "recipe": recipe, "teacher": params.teacher_of(task, row)}
            for task, recipe in row.tasks.items()
        ],
    }


def _trained(params: Params, task: str) -> dict[str, Any]:
    return {
        "task": _labels(params, task),
        "methods": [
            {"name": name} | _trained_method(params, task, row) for name, row in params.methods_of(task).items()
        ],
    }


def _trained_method(params: Params, task: str, row: Method) -> dict[str, Any]:
    joint = params.joint.get(row.start)
    return {
        # What it is compared with, and how its probabilities are scaled, comes after training.
        "row": _dump(row, "tasks", "baseline", "temperature"),
        "student": _dump(params.students[row.student]),
        "optimiser": row.optimiser and _dump(params.optimisers[row.optimiser]),
        "teacher": params.teacher_of(task, row),
        "reads_outputs": params.reads_outputs(row, task),
        "encoder": row.start in params.encoders,
        "joint": joint and sorted(joint.tasks),
    }


def _scored(params: Params, task: str) -> dict[str, Any]:
    """Return the task's methods in their order, by which each finds the step before it."""
    methods = params.methods_of(task)
    return {
        "task": _labels(params, task),
        "methods": _rows(methods),
        "transfer": _recipes(params, sorted({row.data for row in methods.values()})),
        "teachers": _rows(params.teachers_of(task)),
        "pretrained": [n for n, row in methods.items() if params.students[row.student].pretrained],
    }


def _retrieved(params: Params, name: str) -> dict[str, Any]:
    row = params.retrieval_row(name)
    tasks = {row.source.task}
    tasks |= {system.task for system in row.systems.values() if system.kind == "student"}
    tasks |= {row.teacher.task} if row.teacher else set()
    return {
        "tasks": {task: _read_columns(params, task) for task in sorted(tasks)},
        "max_length": params.teachers[row.teacher.teacher].max_length if row.teacher else None,
    }


def _read_columns(params: Params, task: str) -> dict[str, Any]:
    settings = params.task(task)
    return _labels(params, task) | {"range": settings.score_range and _dump(settings.score_range)}
