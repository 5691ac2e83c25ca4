"""What rows of params.yaml require of their student, their teacher and their task."""

from collections.abc import Iterable

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.classes import AUPRC
from pipeline_lib.params.encoders import GeneralEncoder
from pipeline_lib.params.methods import RUNNING, Joint, Method
from pipeline_lib.params.retrieval import RankingSystem, Retrieval, StudentSystem, TaskPairs
from pipeline_lib.params.schema import Params
from pipeline_lib.params.tasks import Task


def check_demands(params: Params) -> None:
    """Check that students, teachers and tasks have what the rows' objectives and keys need.

    :raises ValueError: naming the key, what is wrong with it, and the remedy.
    """
    for task, settings in params.tasks.items():
        for name, row in params.methods_of(task).items():
            _check_method(params, f"methods.{name}", row, task, settings)
    for name, row in params.joint.items():
        for task, recipe in row.tasks.items():
            _check_answered(params, f"joint.{name}", row, task, recipe)
    for name, row in params.methods.items():
        if row.objective.needs_running_teacher != (row.teacher_runs is not None):
            raise ValueError(
                f"methods.{name}.teacher_runs: goes with {', '.join(RUNNING)} in the "
                "objective, whose targets are too large to be stored: give both or neither"
            )
        if row.teacher_runs:
            check_layers(params, f"methods.{name}", row)
    _check_of_layers(params)
    for name, row in params.retrieval.items():
        _check_retrieval(params, f"retrieval.{name}", row)
    for name, row in params.similarity.items():
        where, task = f"similarity.{name}", _pair_task(params, f"similarity.{name}", row.task)
        if KINDS[task.kind].one_of and len(task.label_names) != 2:
            raise ValueError(
                f"{where}.task: {row.task} has {len(task.label_names)} classes, and a cosine can "
                "tell only two apart. Name a task of two classes, or a regression"
            )


def _check_method(params: Params, where: str, row: Method, task: str, settings: Task) -> None:
    if "soft_labels" in row.objective.weights and not KINDS[settings.kind].has_probabilities:
        raise ValueError(
            f"{where}.objective.soft_labels: task {task} is a regression, whose one output has no "
            f"probabilities to learn from. Use logits, or name the other tasks in {where}.tasks"
        )
    if settings.is_pair and getattr(params.students[row.student], "ngrams", 0):
        raise ValueError(
            f"{where}.student: {task} has pairs, whose means are compared, but not their n-grams. Use a regression "
            f"with `ngrams: 0`, or name the other tasks in {where}.tasks"
        )
    if params.reads_outputs(row, task):
        _check_answered(params, where, row, task, row.data)
    if row.objective.needs_states:
        _check_states(params, f"{where}.objective", row, task)
    teacher = params.teacher_of(task, row)
    if row.teacher_runs and not params.teachers[teacher].has_layers:
        raise ValueError(
            f"{where}.teacher_runs: {teacher} has answers and no encoder to run. Name another teacher, or leave it out"
        )
    _check_decisions(where, row, task, settings)


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


def _check_states(params: Params, key: str, row: Method, task: str) -> None:
    count = params.students[row.student].state_count
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
            f"{key}: the states of all layers of a student but the last are compared; for the {count} of {row.student} "
            f"name {count - 1} layers in teachers.{teacher}.states.layers (found {len(states.layers)})"
        )


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


def _check_decisions(where: str, row: Method, task: str, settings: Task) -> None:
    kind, remedy = KINDS[settings.kind], "Remove it, or restrict the row by its `tasks`"
    if row.temperature is not None and not kind.has_probabilities:
        raise ValueError(f"{where}.temperature: {task} is a regression, which has no probabilities. {remedy}")
    for key in ("threshold", "temperature"):
        if getattr(row, key) is not None and settings.label_of("dev") is None:
            raise ValueError(f"{where}.{key}: {task} has no labels in dev to choose it on. {remedy}")
    of_two = len(settings.label_names) == 2 or not kind.one_of
    if row.threshold and not (of_two and kind.has_threshold):
        raise ValueError(f"{where}.threshold: {task} does not have two classes. {remedy}")
    if row.threshold and settings.metrics[0] == AUPRC:
        raise ValueError(f"{where}.threshold: {AUPRC}, the first metric of {task}, needs no threshold. {remedy}")


def _check_retrieval(params: Params, where: str, row: Retrieval) -> None:
    _check_pairs(params, f"{where}.source", row.source)
    for name, system in row.systems.items():
        _check_system(params, f"{where}.systems.{name}", system, row)
    if row.teacher is not None:
        at, task = f"{where}.teacher", _pair_task(params, f"{where}.teacher", row.teacher.task)
        _check_names(f"{at}.teacher", [row.teacher.teacher], params.teachers_of(row.teacher.task))
        _check_label(f"{at}.label", row.teacher.label, row.teacher.task, task)
    if len(set(row.at)) < len(row.at):
        raise ValueError(f"{where}.at: each may appear only once")


def _check_pairs(params: Params, where: str, source: TaskPairs) -> None:
    task = _pair_task(params, where, source.task)
    by_score = not KINDS[task.kind].one_of
    if by_score != isinstance(source.relevant, float):
        expected = "the lowest score of an answer" if by_score else "the label of an answer"
        raise ValueError(f"{where}.relevant: for {source.task}, give {expected} (found {source.relevant!r})")
    if isinstance(source.relevant, str):
        _check_names(f"{where}.relevant", [source.relevant], task.label_names)
        if source.graded:
            raise ValueError(f"{where}.graded: classes are not grades; set false for {source.task}")


def _check_system(params: Params, where: str, system: RankingSystem, row: Retrieval) -> None:
    if system.kind == "student":
        _check_student(params, where, system)
    elif system.kind == "reranked":
        others = [name for name, other in row.systems.items() if other.kind != "reranked"]
        _check_names(f"{where}.first", [system.first], others)
        if row.teacher is None:
            raise ValueError(f"{where}.kind: reranked by the row's teacher, which is null. Name a teacher")


def _check_student(params: Params, where: str, system: StudentSystem) -> None:
    task = _pair_task(params, where, system.task)
    methods = params.methods_of(system.task)
    _check_names(f"{where}.method", [system.method], methods)
    student = methods[system.method].student
    if params.students[student].joint:
        raise ValueError(
            f"{where}.method: its student {student} reads both sentences at once, and has no "
            "vector of one. Name a row whose student encodes each by itself, such as a bilstm"
        )
    if system.score == "f":
        _check_label(f"{where}.label", system.label, system.task, task)
    elif system.label is not None:
        raise ValueError(f"{where}.label: goes with `score: f`; with the cosine it is null")


def _check_label(where: str, label: str | None, name: str, task: Task) -> None:
    by_score = not KINDS[task.kind].one_of
    if by_score and label is not None:
        raise ValueError(f"{where}: {name} is a regression, which ranks by its score. Set null")
    if not by_score and label not in task.label_names:
        raise ValueError(f"{where}: {name} ranks by which class? Name one of {', '.join(task.label_names)}")


def _pair_task(params: Params, where: str, name: str) -> Task:
    if not params.tasks[name].is_pair:
        raise ValueError(f"{where}.task: {name} is not a task of sentence pairs. Name one that is")
    if KINDS[params.tasks[name].kind].has_several:
        raise ValueError(
            f"{where}.task: the pairs of {name} may have several labels, which rank "
            "nothing. Name a task of classes or scores"
        )
    return params.tasks[name]


def _check_names(where: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{where}: no {name!r}; there are {', '.join(known)}")
