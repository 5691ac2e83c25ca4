"""What rows of params.yaml require of their student, their teacher and their task."""

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.params.encoders import GeneralEncoder
from pipeline_lib.params.methods import RUNNING, Joint, Method
from pipeline_lib.params.schema import Params


def check_demands(params: Params) -> None:
    """Check that students, teachers and tasks have what the rows' objectives and keys need.

    :raises ValueError: naming the key, what is wrong with it, and the remedy.
    """
    _check_objectives(params)
    _check_outputs(params)
    _check_states(params)
    _check_running(params)
    _check_of_layers(params)
    _check_decisions(params)


def _check_objectives(params: Params) -> None:
    for task in (name for name, settings in params.tasks.items() if not KINDS[settings.kind].has_probabilities):
        for name, row in params.methods_of(task).items():
            if "soft_labels" in row.objective.weights:
                raise ValueError(
                    f"methods.{name}.objective.soft_labels: task {task} is a regression, whose one output has no "
                    f"probabilities to learn from. Use logits, or name the other tasks in methods.{name}.tasks"
                )


def _check_outputs(params: Params) -> None:
    """Reject rows whose teacher is ambiguous, or does not answer their transfer set."""
    for task in params.tasks:
        for name, row in params.methods_of(task).items():
            if params.reads_outputs(row, task):
                _check_answered(params, f"methods.{name}", row, task, row.data)
    for name, row in params.joint.items():
        for task, recipe in row.tasks.items():
            _check_answered(params, f"joint.{name}", row, task, recipe)


def _check_answered(params: Params, where: str, row: Method | Joint, task: str, recipe: str) -> None:
    teachers = params.teachers_of(task)
    if row.teacher is None and len(teachers) > 1:
        raise ValueError(
            f"{where}.teacher: missing, and {task} has the teachers {', '.join(teachers)}. Name one of them"
        )
    name = params.teacher_of(task, row)
    if name not in teachers:
        raise ValueError(f"{where}.teacher: {name} does not know {task}. Name one of {', '.join(teachers)}")
    if not teachers[name].answers(recipe):
        raise ValueError(
            f"{where}: teacher {name} does not answer {recipe} of {task}. Add it to the "
            "teacher's `data`, or set that to null"
        )


def _check_states(params: Params) -> None:
    """Reject rows whose student and teacher differ in the number of states to compare."""
    for task in params.tasks:
        for name, row in params.methods_of(task).items():
            if not row.objective.needs_states:
                continue
            count, key = params.students[row.student].state_count, f"methods.{name}.objective"
            if count < 2:
                raise ValueError(
                    f"{key}: the states of all layers of a student but the last are compared, and "
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
                    f"{key}: the states of all layers of a student but the last are compared; "
                    f"for the {count} of {row.student} name {count - 1} layers in "
                    f"teachers.{teacher}.states.layers (found {len(states.layers)})"
                )


def _check_running(params: Params) -> None:
    """Reject rows whose teacher runs for nothing, or whose layers do not match their student's."""
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
            check_layers(params, f"methods.{name}", row)


def check_layers(params: Params, where: str, row: Method | GeneralEncoder) -> None:
    """Check that a row names one layer of its running teacher for each layer of its student.

    :raises ValueError: naming the key, what is wrong with it, and the remedy.
    """
    count, layers = params.students[row.student].state_count, row.teacher_runs.layers
    if len(layers) != count:
        raise ValueError(
            f"{where}.teacher_runs.layers: one for each layer of {row.student}, which must be a "
            f"transformer: it has {count} (found {len(layers)})"
        )


def _check_of_layers(params: Params) -> None:
    """Reject rows that learn layers alone where answers are needed, or that no row starts from."""
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
                raise ValueError(f"methods.{name}.{key}: the row learns layers alone and answers nothing. Set null")


def _check_decisions(params: Params) -> None:
    """Reject keys that make no sense for a row's task: scores involve no decision, classes do."""
    for task, settings in params.tasks.items():
        kind = KINDS[settings.kind]
        for name, method in params.methods_of(task).items():
            if method.temperature is not None and not kind.has_probabilities:
                raise ValueError(
                    f"methods.{name}.temperature: {task} is a regression, which has no "
                    "probabilities. Remove it, or restrict the row by its `tasks`"
                )
            for key in ("threshold", "temperature"):
                if getattr(method, key) is not None and settings.label_of("dev") is None:
                    raise ValueError(
                        f"methods.{name}.{key}: {task} has no labels in dev to choose it on. Take "
                        "it out, or restrict the row by its `tasks`"
                    )
            if method.threshold == "likelihood" and method.threshold not in kind.thresholds:
                raise ValueError(
                    f"methods.{name}.threshold: likelihood is for classes, and {task} is a "
                    f"{settings.kind}. Remove it, or restrict the row by its `tasks`"
                )
            two = len(settings.label_names) == 2 or not kind.one_of
            if method.threshold == "dev" and not (two and method.threshold in kind.thresholds):
                raise ValueError(
                    f"methods.{name}.threshold: {task} does not have two classes. Take it "
                    "out, or restrict the row by its `tasks`"
                )
