"""Ranked lists of rows to review first.

There is one list for each of four questions: what is the teacher least sure of, where does it contradict the labels,
where does the student contradict it, and where did augmentation change its answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import softmax
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.answers import ChosenStudent, StoredAnswers, chosen_student
from pipeline_lib.inspection.captions import CLASSES, LISTS, SCORES, ListName
from pipeline_lib.inspection.distances import LabelErrors, entropies, moved, self_confidence, set_confidence
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.originals import Originals
from pipeline_lib.inspection.rows import Answering, InspectedRow, Names, read_row
from pipeline_lib.inspection.sampling import Top
from pipeline_lib.params import Params


@dataclass(frozen=True)
class WorkList:
    """Ranked rows, the one to review first on top.

    :ivar explanation: what the rows are sorted by, and how to read them; :ivar measure: what a
        row's ``score`` is, with its unit.
    :ivar considered: how many rows were ranked.
    :ivar student: whose answers the rows have besides the teacher's, if any.
    :ivar missing: why there are no rows, if there are none.
    """

    name: ListName
    title: str
    explanation: str
    measure: str
    rows: list[InspectedRow]
    considered: int
    student: str | None = None
    missing: str | None = None


@dataclass(frozen=True)
class ListPart:
    """A set to take rows from, with a student's answers to them if there are any.

    :ivar originals: whether to include rows that no rule changed.
    :ivar spread: how far apart the answers of the student's seeds are, (rows,) of a batch.
    """

    rows: JoinedRows
    originals: bool = True
    student: Answering | None = None
    spread: Answering | None = None


def work_lists(
    layout: Layout, params: Params, task: str, limit: int, method: str | None = None, lists: Sequence[ListName] = LISTS
) -> list[WorkList]:
    """Return a task's work lists of at most ``limit`` rows each; one without rows says why.

    Rows come from the transfer sets and held-out splits that the teacher of the student's row has
    answered; the student's answers are those that ``evaluate`` stored.

    :param method: the row whose student is compared with the teacher; by default the best on dev.
    :param lists: which ones.
    """
    settings = params.task(task)
    scored = not KINDS[settings.kind].has_probabilities
    student = chosen_student(layout, params, task, method)
    sets = _task_sets(layout, params, task, student)
    return lists_of(sets, None if scored else settings.label_names, limit, scored, student and student.name, lists)


def _task_sets(layout: Layout, params: Params, task: str, student: ChosenStudent | None) -> list[ListPart]:
    """Return the sets that a teacher answered: transfer sets, of which all have the same originals, then splits."""
    teacher = teacher_beside(params, task, student)
    recipes = params.recipes_of(task)
    changing = [name for name in recipes if not params.recipe(name).changes_nothing]
    pairs = [(layout.transfer(task, name), layout.outputs(task, teacher, name)) for name in changing or recipes[:1]]
    pairs = [(inputs, outputs) for inputs, outputs in pairs if (outputs / "manifest.json").exists()]
    sets = [
        ListPart(JoinedRows.open(inputs, outputs), originals=not number)
        for number, (inputs, outputs) in enumerate(pairs)
    ]
    for split in layout.heldout_splits(task) if layout.task(task).exists() else ():
        outputs = layout.heldout_outputs(task, teacher, split)
        if (outputs / "manifest.json").exists():
            rows = JoinedRows.open(layout.split(task, split), outputs)
            stored = student and StoredAnswers(layout.predictions(task), split, len(rows), student)
            sets.append(ListPart(rows, student=stored and stored.logits, spread=stored and stored.spread))
    return sets


def teacher_beside(params: Params, task: str, student: ChosenStudent | None) -> str:
    """Return the teacher of a student's row; the task's first one if the row is no more."""
    row = params.methods_of(task).get(student.method) if student else None
    return params.teacher_of(task, row) if row else next(iter(params.teachers_of(task)))


def lists_of(
    sets: Sequence[ListPart],
    names: Names,
    limit: int,
    regression: bool,
    student: str | None = None,
    lists: Sequence[ListName] = LISTS,
) -> list[WorkList]:
    """Return the work lists of some sets, in two passes over them.

    :param student: the name of the student that answers besides the teacher.
    """
    errors = None
    if "labels" in lists and not regression and not any(KINDS[each.rows.kind].has_several for each in sets):
        errors = LabelErrors(max((each.rows.classes or 0 for each in sets), default=0))
        for _, batch in _answered(sets):
            errors.learn(batch)
    top = {name: Top(limit) for name in lists}
    originals = [Originals(each.rows) for each in sets]
    for number, batch in _answered(sets):
        for name, highest in top.items():
            scores = _scores(name, sets[number], batch, originals[number], regression)
            if scores is not None:
                highest.add(scores, number, batch.shard, batch.start)
        if errors is not None:
            errors.count(batch)
    result = []
    for name, highest in top.items():
        rows = [
            read_row(sets[number].rows, shard, row, names, sets[number].student, score)
            for score, (number, shard, row) in highest.best()
        ]
        words = (SCORES if regression else CLASSES)[name]
        ranked = f" {errors.summary()}" if name == "labels" and rows and errors else ""
        missing = None if rows else words.missing
        texts = words.title, words.explanation + ranked, words.measure
        result.append(WorkList(name, *texts, rows, highest.seen, student, missing))
    return result


def _answered(sets: Sequence[ListPart]) -> Iterator[tuple[int, RowBatch]]:
    """Yield (number of the set, batch) for all rows, without originals that another set has too."""
    for number, each in enumerate(sets):
        for batch in each.rows.batches():
            # All rows of a shard are of the same iteration.
            if batch.logits is not None and (each.originals or batch.is_synthetic.all()):
                yield number, batch


def _scores(
    name: ListName, rows: ListPart, batch: RowBatch, originals: Originals, regression: bool
) -> np.ndarray | None:
    """Return the scores that a list sorts a batch by; NaN for rows that do not belong to it."""
    synthetic = batch.is_synthetic
    if name == "augmentation":
        if not synthetic.any():
            return None
        return np.where(synthetic, moved(batch.logits, originals.logits(batch), batch.kind), np.nan)
    if name == "student":
        return None if rows.student is None else moved(batch.logits, rows.student(batch), batch.kind)
    if name == "labels":
        if regression:
            return np.abs(batch.logits[:, 0] - batch.labels)
        if KINDS[batch.kind].has_several:
            return 1 - set_confidence(batch.logits, batch.marks)
        return 1 - self_confidence(softmax(batch.logits), batch.labels)
    # What people wrote is more informative than what the rules made of it.
    if not regression:
        return np.where(synthetic, np.nan, entropies(batch.logits, batch.kind))
    return None if rows.spread is None else rows.spread(batch)
