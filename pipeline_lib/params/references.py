"""What rows of params.yaml name in each other, and what cannot go together."""

from collections.abc import Mapping
from typing import Any

from pipeline_lib.base.layout import HELDOUT
from pipeline_lib.params.base import Section
from pipeline_lib.params.encoders import STARTS, GeneralEncoder, SentenceVectors
from pipeline_lib.params.joint import Joint
from pipeline_lib.params.measured import check_measured
from pipeline_lib.params.methods import BESIDE, RUNNING, Method
from pipeline_lib.params.models import Average, Teacher
from pipeline_lib.params.schema import Params


def check_references(params: Params) -> None:
    """Check that what rows name is there, and that they go together.

    :raises ValueError: naming the key, what is wrong with it, and the remedy.
    """
    _check_restrictions(params)
    _check_teachers(params)
    _check_encoders(params)
    _check_joint(params)
    _check_methods(params)
    _check_objectives(params)
    _check_outputs(params)
    _check_states(params)
    _check_running(params)
    _check_of_layers(params)
    _check_jointly_started(params)
    for name, task in params.tasks.items():
        if task.source.kind == "neighbours" and params.wikipedia is None:
            raise ValueError(
                f"tasks.{name}.source: neighbours are sentences of Wikipedia, and `wikipedia` "
                "is null. Describe a source there, as the embedded params.yaml does"
            )
    for name, task in ((m, t) for m in params.methods for t in params.tasks):
        baseline = params.methods[name].baseline
        rows = params.methods_of(task)
        if name in rows and baseline is not None and baseline not in rows:
            raise ValueError(
                f"methods.{name}.baseline: {baseline} is no row of task {task}: its "
                f"`tasks`, or those of {params.methods[baseline].data}, leave it out"
            )
    _check_decisions(params)
    check_measured(params)
    if len(set(params.seeds)) < len(params.seeds):
        raise ValueError("seeds: each may stand only once")


def _check_restrictions(params: Params) -> None:
    """Refuse rows that are restricted to tasks that are not there."""
    restricted = {f"transfer.{name}": recipe.tasks for name, recipe in params.transfer.items()}
    restricted |= {f"methods.{name}": method.tasks for name, method in params.methods.items()}
    restricted |= {f"teachers.{name}": own.tasks for name, own in params.teachers.items()}
    for where, tasks in restricted.items():
        for task in tasks or []:
            if task not in params.tasks:
                raise ValueError(
                    f"{where}.tasks: no task {task!r}; there are {', '.join(params.tasks)}. "
                    "Correct it, or set null for all of them"
                )
    for name, recipe in params.transfer.items():
        covered = [task for own, task in params.tasks.items() if recipe.covers(own)]
        if recipe.unlabelled and not any(task.has_unlabelled for task in covered):
            raise ValueError(
                f"transfer.{name}.unlabelled: none of its tasks has unlabelled texts. Name a file "
                "of them in `source.files.unlabelled` of one, or take the key out"
            )


def _check_teachers(params: Params) -> None:
    for name, teacher in params.teachers.items():
        _check_names(f"teachers.{name}", teacher, params.models, "model")
        for recipe in teacher.data or []:
            if recipe not in params.transfer:
                raise ValueError(
                    f"teachers.{name}.data: no transfer set {recipe!r}; there are "
                    f"{', '.join(params.transfer)}"
                )
        if name in params.methods or name == HELDOUT:
            what = "a row of `methods`" if name in params.methods else "a folder of outputs"
            raise ValueError(f"teachers.{name}: {what} has this name. Choose another")
        if isinstance(teacher.tuning, Average):
            _check_average(params, name, teacher)
    for task, settings in params.tasks.items():
        labelled = settings.learns_from_labels and settings.label_of("dev") is not None
        for name in [] if labelled else params.teachers_of(task):
            if params.teachers[name].runs:
                raise ValueError(
                    f"teachers.{name}.tasks: {task} has no labels (`label`) in train and dev to "
                    "tune and score a model on. Leave it out: what it has is a teacher of kind "
                    "answers or average"
                )
        if not params.teachers_of(task):
            raise ValueError(
                f"teachers: none knows {task}. Name it in one's `tasks`, or set that to null"
            )
    if isinstance(params.sentence_vectors, SentenceVectors):
        _check_names("sentence_vectors", params.sentence_vectors, params.models, "model")
    if params.vocabulary.vectors.kind == "model":
        _check_names("vocabulary.vectors", params.vocabulary.vectors, params.models, "model")


def _check_average(params: Params, name: str, teacher: Teacher) -> None:
    """Refuse an average of teachers that are not there, or do not answer all that it answers."""
    for other in teacher.tuning.of:
        key, own = f"teachers.{name}.tuning.of", params.teachers.get(other)
        if own is None or isinstance(own.tuning, Average):
            known = [n for n, t in params.teachers.items() if not isinstance(t.tuning, Average)]
            what = "is an average itself" if own else "is no teacher"
            raise ValueError(f"{key}: {other!r} {what}; there are {', '.join(known)}")
        for task in (task for task in params.tasks if teacher.knows(task)):
            recipes = [r for r in params.recipes_of(task) if teacher.answers(r)]
            if not own.knows(task) or not all(own.answers(recipe) for recipe in recipes):
                raise ValueError(
                    f"{key}: {other} does not answer all of {task} that the average does. Widen "
                    f"its `tasks` and `data`, or narrow those of {name}"
                )


def _check_outputs(params: Params) -> None:
    """Refuse rows whose teacher is not told from others, or does not answer their rows."""
    for task in params.tasks:
        for name, row in params.methods_of(task).items():
            if params.reads_outputs(row, task):
                _check_answered(params, f"methods.{name}", row, task, row.data)
    for name, row in params.joint.items():
        for task, recipe in row.tasks.items():
            original = params.transfer[recipe].changes_nothing
            labelled = original and params.tasks[task].learns_from_labels
            if row.objective.needs_teacher or not labelled:
                _check_answered(params, f"joint.{name}", row, task, recipe)


def _check_answered(
    params: Params, where: str, row: Method | Joint, task: str, recipe: str
) -> None:
    teachers = params.teachers_of(task)
    if row.teacher is None and len(teachers) > 1:
        raise ValueError(
            f"{where}.teacher: missing, and {task} has the teachers {', '.join(teachers)}. "
            "Name one of them"
        )
    name = params.teacher_of(task, row)
    if name not in teachers:
        raise ValueError(
            f"{where}.teacher: {name} does not know {task}. Name one of {', '.join(teachers)}"
        )
    if not teachers[name].answers(recipe):
        raise ValueError(
            f"{where}: teacher {name} does not answer {recipe} of {task}. Add it to the "
            "teacher's `data`, or set that to null"
        )


def _check_states(params: Params) -> None:
    """Refuse rows whose student and teacher do not have as many states to compare."""
    for task in params.tasks:
        for name, row in params.methods_of(task).items():
            if not row.objective.needs_states:
                continue
            count, key = params.students[row.student].state_count, f"methods.{name}.objective"
            if count < 2:
                raise ValueError(
                    f"{key}: the states of a student's layers are compared, less the last, and "
                    f"{row.student} has {count}; use a transformer of two layers or more"
                )
            teacher = params.teacher_of(task, row)
            states = params.teachers[teacher].states
            if states is None:
                raise ValueError(
                    f"{key}: it reads the states of teacher {teacher}, which keeps none. Name "
                    f"the layers in teachers.{teacher}.states"
                )
            if len(states.layers) != count - 1:
                raise ValueError(
                    f"{key}: the states of a student's layers are compared, less the last; "
                    f"for the {count} of {row.student} name {count - 1} layers in "
                    f"teachers.{teacher}.states.layers (found {len(states.layers)})"
                )


def _check_running(params: Params) -> None:
    """Refuse rows whose teacher runs for nothing, or has other layers than their student."""
    for name, row in params.methods.items():
        if row.objective.needs_running_teacher != (row.teacher_runs is not None):
            raise ValueError(
                f"methods.{name}.teacher_runs: goes with {', '.join(RUNNING)} in the "
                "objective, whose targets are too large to be stored: give both or neither"
            )
        for task in params.tasks if row.teacher_runs else ():
            teacher = params.teacher_of(task, row)
            if name in params.methods_of(task) and not params.teachers[teacher].runs:
                raise ValueError(
                    f"methods.{name}.teacher_runs: {teacher} has answers and no model to run. Name "
                    "another teacher, or leave it out"
                )
        if row.teacher_runs:
            _check_layers(params, f"methods.{name}", row)


def _check_layers(params: Params, where: str, row: Method | GeneralEncoder) -> None:
    count, layers = params.students[row.student].state_count, row.teacher_runs.layers
    if len(layers) != count:
        raise ValueError(
            f"{where}.teacher_runs.layers: one for each layer of {row.student}, which must be a "
            f"transformer: it has {count} (found {len(layers)})"
        )


def _check_of_layers(params: Params) -> None:
    """Refuse rows that learn layers alone where answers are needed, or nobody goes on from them."""
    before = {params.row_before(name) for name in params.methods}
    for name, row in params.methods.items():
        base = params.methods.get(row.baseline)
        if base is not None and base.objective.is_of_layers:
            raise ValueError(
                f"methods.{name}.baseline: {row.baseline} learns layers alone and answers nothing. "
                "Name a row that learns answers, or set null"
            )
        if not row.objective.is_of_layers:
            continue
        if name not in before:
            raise ValueError(
                f"methods.{name}.objective: it learns layers alone and answers nothing, and no row "
                f"starts from it. Name it as another's start, or add logits, soft_labels or labels"
            )
        for key in ("baseline", "threshold"):
            if getattr(row, key) is not None:
                raise ValueError(
                    f"methods.{name}.{key}: the row learns layers alone and answers nothing. Set "
                    "null"
                )


def _check_decisions(params: Params) -> None:
    """Refuse keys that mean nothing for a row's task: classes decide, scores do not."""
    for task, settings in params.tasks.items():
        for name, method in params.methods_of(task).items():
            if method.min_confidence is not None and settings.is_regression:
                raise ValueError(
                    f"methods.{name}.min_confidence: {task} is a regression, whose teacher has "
                    "no confidence. Take it out, or restrict the row by its `tasks`"
                )
            if method.temperature is not None and settings.is_regression:
                raise ValueError(
                    f"methods.{name}.temperature: {task} is a regression, which has no "
                    "probabilities. Take it out, or restrict the row by its `tasks`"
                )
            for key in ("threshold", "temperature"):
                if getattr(method, key) is not None and settings.label_of("dev") is None:
                    raise ValueError(
                        f"methods.{name}.{key}: {task} has no labels in dev to choose it on. Take "
                        "it out, or restrict the row by its `tasks`"
                    )
            if method.threshold is not None and len(settings.label_names) != 2:
                raise ValueError(
                    f"methods.{name}.threshold: {task} does not have two classes. Take it "
                    "out, or restrict the row by its `tasks`"
                )


def _check_methods(params: Params) -> None:
    starts = {**dict.fromkeys(STARTS), **params.encoders, **params.joint}
    starts |= {name: row for name, row in params.methods.items() if name not in starts}
    for name, method in params.methods.items():
        _check_names(f"methods.{name}", method, params.students, "student")
        _check_names(f"methods.{name}", method, params.transfer, "data")
        _check_names(f"methods.{name}", method, params.optimisers, "optimiser")
        _check_names(f"methods.{name}", method, params.methods, "baseline")
        _check_names(f"methods.{name}", method, starts, "start")
        _check_names(f"methods.{name}", method, params.teachers, "teacher")
        _check_start(params, f"methods.{name}", method)
        trained = starts[method.start]
        if trained is not None and trained.student != method.student:
            raise ValueError(
                f"methods.{name}.student: {method.student}, but its start {method.start} is "
                f"a {trained.student}. Make them the same"
            )
        if method.optimiser is None:
            _check_taken(params, name, method)
    for name in params.methods:
        _check_baselines_end(params, name)
        if params.row_before(name) and name in (before := params.rows_before(name)):
            circle = " → ".join([name, *before])
            raise ValueError(
                f"methods.{name}.start: {circle} leads back to the row itself. Name another start"
            )


def _check_start(params: Params, where: str, row: Method | Joint) -> None:
    """Refuse a start that the row's student cannot have."""
    student = params.students[row.student]
    _check_model(params, row.student)
    if student.pretrained and row.start in ("vectors", "random"):
        raise ValueError(
            f"{where}.start: a {student.architecture} student is made of a pretrained model's "
            "layers; use model"
        )
    if row.start == "model" and not student.pretrained:
        raise ValueError(
            f"{where}.start: a {student.architecture} student takes no layers of a pretrained "
            "model; use vectors or random"
        )
    if not student.word_vectors and row.start == "vectors":
        raise ValueError(
            f"{where}.start: a {student.architecture} student has no word vectors; use random"
        )


def _check_model(params: Params, name: str) -> None:
    model = params.students[name].source_model
    if model not in (None, *params.models):
        raise ValueError(
            f"students.{name}.model: no {model!r}; there are {', '.join(params.models)}"
        )


def _check_taken(params: Params, name: str, method: Method) -> None:
    """Refuse what means nothing of a student that is taken as it is."""
    joint = params.joint.get(method.start)
    if joint is None:
        raise ValueError(
            f"methods.{name}.optimiser: null takes a joint training's student as it is, and "
            f"{method.start} is none. Name a row of `joint` as its start, or an optimiser"
        )
    for key in ("iterations", "repeat_originals", "min_confidence", "threshold"):
        if getattr(method, key) is not None:
            raise ValueError(
                f"methods.{name}.{key}: without an optimiser the student of {method.start} is "
                "taken as it is. Set null, or name an optimiser"
            )
    if method.objective != joint.objective:
        raise ValueError(
            f"methods.{name}.objective: without an optimiser the student is that of "
            f"{method.start}. Give that row's objective, or name an optimiser"
        )


def _check_jointly_started(params: Params) -> None:
    """Check that joint trainings have the tasks, and the data, that rows take from them."""
    started = {n: m for n, m in params.methods.items() if m.start in params.joint}
    for name, method in started.items():
        joint = params.joint[method.start]
        if method.optimiser is not None:
            continue
        for task in method.tasks or []:
            if task not in joint.tasks:
                raise ValueError(
                    f"methods.{name}.tasks: {method.start} is not trained on task {task}, but "
                    f"on {', '.join(joint.tasks)}. Name some of these, or an optimiser"
                )
        for task in (task for task in params.tasks if name in params.methods_of(task)):
            if method.data != joint.tasks[task]:
                raise ValueError(
                    f"methods.{name}.data: {method.data}, but {method.start} is trained on "
                    f"{joint.tasks[task]} of task {task}, and taken as it is. Name that"
                )


def _check_baselines_end(params: Params, name: str) -> None:
    chain = [name]
    while (baseline := params.methods[chain[-1]].baseline) is not None:
        if baseline == name:
            raise ValueError(
                f"methods.{name}.baseline: {' → '.join([*chain, name])} leads back to the row "
                "itparams. Name an undistilled row, or set null"
            )
        if baseline in chain:
            return  # a circle further on, which its own rows report
        chain.append(baseline)


def _check_objectives(params: Params) -> None:
    for task in (name for name, settings in params.tasks.items() if settings.is_regression):
        rows = {f"methods.{name}": row for name, row in params.methods_of(task).items()}
        rows |= {f"joint.{name}": row for name, row in params.joint.items() if task in row.tasks}
        for where, row in rows.items():
            if "soft_labels" in row.objective.weights:
                raise ValueError(
                    f"{where}.objective.soft_labels: task {task} is a regression, whose "
                    "one output has no probabilities to learn from. Use logits, or name the "
                    f"other tasks in {where}.tasks"
                )


def _check_encoders(params: Params) -> None:
    if params.encoders and params.wikipedia is None:
        raise ValueError(
            "wikipedia: null, but encoders are trained on its sentences. Give a source, or set "
            "`encoders: {}`"
        )
    for name, encoder in params.encoders.items():
        if name in STARTS:
            raise ValueError(f"encoders.{name}: the name has a meaning of its own; take another")
        _check_names(f"encoders.{name}", encoder, params.students, "student")
        _check_names(f"encoders.{name}", encoder, params.optimisers, "optimiser")
        if isinstance(encoder, GeneralEncoder):
            _check_general(params, name, encoder)
        elif params.students[encoder.student].sentence_width is None:
            raise ValueError(
                f"encoders.{name}.student: {encoder.student} has no sentence vector of the "
                "teacher's width; use one of architecture bilstm_sra, or a dse with a `width`"
            )
        _check_model(params, encoder.student)
        if encoder.wikipedia is not None and encoder.wikipedia > params.wikipedia.sentences:
            raise ValueError(
                f"encoders.{name}.wikipedia: {encoder.wikipedia}, but wikipedia.sentences "
                f"splits {params.wikipedia.sentences}. Raise that, or set null for all of them"
            )
        if not isinstance(encoder, GeneralEncoder):
            _check_sets(params, f"encoders.{name}", encoder.tasks)
    for name, catalogue in params.catalogues.items():
        _check_names(f"catalogues.{name}", catalogue, params.encoders, "encoder")
        if isinstance(params.encoders[catalogue.encoder], GeneralEncoder):
            raise ValueError(
                f"catalogues.{name}.encoder: {catalogue.encoder} learns a model's layers and has "
                "no vectors of sentences. Name one that is trained to vectors"
            )


def _check_general(params: Params, name: str, encoder: GeneralEncoder) -> None:
    student = params.students[encoder.student]
    if student.name() != "bert":
        raise ValueError(
            f"encoders.{name}.student: {encoder.student} is a {student.name()}, and general "
            "distillation starts a Transformer at random; use one of architecture bert"
        )
    _check_layers(params, f"encoders.{name}", encoder)


def _check_joint(params: Params) -> None:
    for name, joint in params.joint.items():
        if name in STARTS or name in params.encoders:
            raise ValueError(
                f"joint.{name}: methods that start from {name} mean another one; take another name"
            )
        _check_names(f"joint.{name}", joint, params.students, "student")
        _check_names(f"joint.{name}", joint, params.optimisers, "optimiser")
        _check_names(f"joint.{name}", joint, dict.fromkeys(STARTS), "start")
        _check_start(params, f"joint.{name}", joint)
        _check_sets(params, f"joint.{name}", joint.tasks)
        _check_names(f"joint.{name}", joint, params.teachers, "teacher")
        for task in (task for task in joint.tasks if task in params.tasks):
            if params.tasks[task].label_of("dev") is None:
                raise ValueError(
                    f"joint.{name}.tasks: {task} has no labels (`label`) to choose by on dev. "
                    "Leave it out, or train it by itself"
                )
        if joint.objective.needs_states or joint.objective.needs_running_teacher:
            raise ValueError(
                f"joint.{name}.objective: only a method's row learns from a teacher's layers; "
                f"leave out {', '.join(n for n in joint.objective.weights if n in BESIDE)}"
            )


def _check_sets(params: Params, where: str, tasks: Mapping[str, str | None]) -> None:
    """Check that there are these tasks, with these transfer sets."""
    for task, recipe in tasks.items():
        if task not in params.tasks:
            raise ValueError(
                f"{where}.tasks: no task {task!r}; there are {', '.join(params.tasks)}"
            )
        if recipe is not None and recipe not in params.recipes_of(task):
            raise ValueError(
                f"{where}.tasks.{task}: no transfer set {recipe!r} of this task; "
                f"there are {', '.join(params.recipes_of(task))}"
            )


def _check_names(where: str, row: Section, known: dict[str, Any], key: str) -> None:
    value = getattr(row, key)
    if value is not None and value not in known:
        raise ValueError(f"{where}.{key}: no {value!r}; there are {', '.join(known)}")
