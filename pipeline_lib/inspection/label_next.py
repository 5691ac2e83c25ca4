"""Which unlabelled texts to label next: the student is unsure of them, and no two are alike.

Of the texts that the student is least sure of, each one listed is the furthest from those above it, by what the
student's output layer reads (greedy k-center; Sener and Savarese 2018, algorithm 1): each stands for a cluster.
A score has no probabilities: there, the spread over the seeds of a row says how unsure they are (query by
committee; Seung et al. 1992).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import softmax
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.answers import ChosenStudent, chosen_student
from pipeline_lib.inspection.captions import CLASSES, NEXT, SCORES
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.rows import DIGITS, Features, InspectedRow, Names, answer, read_row
from pipeline_lib.inspection.work_lists import WorkList, teacher_beside
from pipeline_lib.params import Params, Task
from pipeline_lib.shards.training_texts import is_unlabelled, unlabelled_folder
from pipeline_lib.shards.vectors import unit

CANDIDATES = 10
"""How many uncertain texts there are to choose from for each one that is listed."""
Open = Callable[[Path, JoinedRows, Names], Features]
"""Opens a student's folder to answer rows of a set with these classes."""


def label_next(
    layout: Layout, params: Params, task: str, limit: int, open_student: Open, method: str | None = None
) -> WorkList:
    """Return the unlabelled texts of a task to label next, with the teacher's answers if a transfer set has them.

    :param method: the row whose student answers, with its best seed or, for scores, all; by default the best on dev.
    """
    settings = params.task(task)
    if not settings.learns_from_labels:
        raise PotstillError(
            f"tasks.{task}: its training rows have no labels, so none are added to them. Name a "
            "task whose students learn from labels, or leave out --kind label-next."
        )
    if KINDS[settings.kind].has_several:
        raise PotstillError(
            f"tasks.{task}: its rows have several labels, and --kind label-next is for classes and "
            "scores. Leave it out."
        )
    scored = not KINDS[settings.kind].has_probabilities
    student = chosen_student(layout, params, task, method)
    texts = unlabelled_folder(layout.split(task, "train"))
    if not texts.exists():
        return _missing(
            scored,
            f"The task has no unlabelled texts here. Name some under `files.unlabelled` of "
            f"tasks.{task}.source (docs/own-data.md), and run `distill run`.",
        )
    if student is None:
        return _missing(scored, "No student is trained and scored yet. Run `distill run`.")
    rows = _answered_texts(layout, params, task, student) or JoinedRows.open(texts)
    seeds = dict.fromkeys([student.seed, *(params.seeds if scored else ())])
    folders = [layout.student(task, student.method, seed) for seed in seeds]
    name = student.method if scored else student.name
    return listed_next(rows, open_student, folders, None if scored else settings.label_names, limit, name)


def listed_next(
    rows: JoinedRows, open_student: Open, students: Sequence[Path], names: Names, limit: int, student_name: str
) -> WorkList:
    """Return the unlabelled rows of a set to label next; synthetic ones are not.

    :param students: the folders of the students that answer; for classes only the first counts.
    :param names: the task's class names; :param student_name: what the list calls the student.
    """
    answering = [open_student(folder, rows, names) for folder in students]
    locations, keys, logits, features = [], [], [], []
    for batch in rows.batches():
        if not is_unlabelled(rows.inputs.manifest.shards[batch.shard].name):
            continue
        numbers = np.flatnonzero(~batch.is_synthetic)
        if len(numbers):
            table = batch.table.take(pa.array(numbers))
            answers = [answer_rows(table) for answer_rows in answering]
            locations += [(batch.shard, batch.start + number) for number in numbers.tolist()]
            keys.append(table["key"].to_numpy())
            logits.append(np.stack([of_student for of_student, _ in answers]))
            features.append(answers[0][1])
    if not keys:
        return _missing(rows.is_scored, CLASSES[NEXT].missing)
    answered = np.concatenate(logits, axis=1)
    regression = answered.shape[2] == 1
    if regression and len(students) < 2:
        return _missing(
            True,
            "A score's uncertainty is the spread over the seeds of a row, and there is one. Set several `seeds` in "
            "params.yaml, and run `distill run`.",
        )
    unsure = answered[:, :, 0].std(axis=0, ddof=1) if regression else 1.0 - softmax(answered[0]).max(axis=1)
    inspected = [
        replace(
            read_row(rows, *locations[number], names, score=float(unsure[number])),
            student=answer(answered[0, [number]], names, rows.kind),
        )
        for number in unlike(unsure, np.concatenate(features), np.concatenate(keys), limit)
    ]
    return _listed(regression, inspected, len(locations), student_name)


def unlike(uncertainty: np.ndarray, features: np.ndarray, keys: np.ndarray, size: int) -> list[int]:
    """Return the numbers of uncertain rows that differ, the most uncertain first, then the furthest from those before.

    :param uncertainty: float (rows,); :param features: float (rows, width), of which only the direction counts.
    :param keys: the rows' content keys, uint64 (rows,), so that their order does not matter.
    :param size: how many rows to return, at most all.
    """
    numbers = np.lexsort((keys, -uncertainty))[: CANDIDATES * size]
    vectors = unit(features[numbers])
    chosen: list[int] = []
    nearest = np.full(len(numbers), -np.inf)
    while len(chosen) < min(size, len(numbers)):
        chosen.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, vectors @ vectors[chosen[-1]])
        nearest[chosen] = np.inf
    return numbers[chosen].tolist()


def _listed(
    regression: bool, rows: list[InspectedRow], considered: int, student: str | None, missing: str | None = None
) -> WorkList:
    caption = (SCORES if regression else CLASSES)[NEXT]
    return WorkList(NEXT, caption.title, caption.explanation, caption.measure, rows, considered, student, missing)


def _missing(regression: bool, reason: str) -> WorkList:
    return _listed(regression, [], 0, None, reason)


def _answered_texts(layout: Layout, params: Params, task: str, student: ChosenStudent) -> JoinedRows | None:
    teacher = teacher_beside(params, task, student)
    for recipe in params.recipes_of(task):
        outputs = layout.outputs(task, teacher, recipe)
        if params.recipe(recipe).unlabelled and (outputs / "manifest.json").exists():
            return JoinedRows.open(layout.transfer(task, recipe), outputs)
    return None


def to_label(work_list: WorkList, task: Task) -> pa.Table:
    """Return a list as a table to fill in: the task's own columns, the label empty, and answers."""
    texts = zip(*([s.text for s in row.sentences] for row in work_list.rows), strict=True)
    columns = dict(zip(task.text, map(pa.array, texts), strict=True))
    columns[task.label_of("train")] = pa.nulls(len(work_list.rows), pa.string())
    beside = {"student": pa.array([row.student and row.student.answer for row in work_list.rows])}
    if any(row.teacher for row in work_list.rows):
        beside["teacher"] = pa.array([row.teacher and row.teacher.answer for row in work_list.rows])
    beside["uncertainty"] = pa.array([round(row.score, DIGITS) for row in work_list.rows])
    return pa.table(columns | {n: column for n, column in beside.items() if n not in columns})
