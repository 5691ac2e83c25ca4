"""Checks of ``retrieval`` and ``similarity``: names that do not exist, settings that conflict."""

from collections.abc import Iterable

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.params.encoders import SentenceVectorFiles
from pipeline_lib.params.retrieval import RankingSystem, Retrieval, StudentSystem, TaskPairs, TeacherOrder
from pipeline_lib.params.schema import Params
from pipeline_lib.params.tasks import Task


def check_measured(params: Params) -> None:
    """Check that what the rows name exists, and that it is compatible.

    :raises ValueError: naming the key, what is wrong with it, and the remedy.
    """
    for name, row in params.retrieval.items():
        _check_retrieval(params, f"retrieval.{name}", row)
    for name, row in params.similarity.items():
        where = f"similarity.{name}"
        task = _pair_task(params, where, row.task)
        if KINDS[task.kind].one_of and len(task.label_names) != 2:
            raise ValueError(
                f"{where}.task: {row.task} has {len(task.label_names)} classes, and a cosine can "
                "tell only two apart. Name a task of two classes, or a regression"
            )
        if row.poolings and isinstance(params.sentence_vectors, SentenceVectorFiles):
            raise ValueError(
                f"{where}.poolings: a model reads up to sentence_vectors.max_length word pieces per sentence, but "
                "`sentence_vectors` are read from files. Set [] to compare the encoders alone"
            )


def _check_retrieval(params: Params, where: str, row: Retrieval) -> None:
    _check_pairs(params, f"{where}.source", row.source)
    for name, system in row.systems.items():
        _check_system(params, f"{where}.systems.{name}", system, row)
    if row.teacher is not None:
        _check_teacher(params, f"{where}.teacher", row.teacher)
    if len(set(row.at)) < len(row.at):
        raise ValueError(f"{where}.at: each may appear only once")


def _check_pairs(params: Params, where: str, source: TaskPairs) -> None:
    task = _pair_task(params, where, source.task)
    by_score = not KINDS[task.kind].one_of
    if by_score != isinstance(source.relevant, float):
        wanted = "the lowest score of an answer" if by_score else "the label of an answer"
        raise ValueError(f"{where}.relevant: for {source.task}, give {wanted} (found {source.relevant!r})")
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


def _check_teacher(params: Params, where: str, row: TeacherOrder) -> None:
    task = _pair_task(params, where, row.task)
    _check_names(f"{where}.teacher", [row.teacher], params.teachers_of(row.task))
    _check_label(f"{where}.label", row.label, row.task, task)


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
