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

    :ivar title: a short title; :ivar explanation: what the rows are sorted by, and how to read
        them; :ivar measure: what a row's ``score`` is, with its unit.
    :ivar considered: how many rows were ranked.
    :ivar student: the student whose answers the rows have besides the teacher's, if any.
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
    layout: Layout, params: Params, task: str, limit: int, method: str | None = None, wanted: Sequence[ListName] = LISTS
) -> list[WorkList]:
    """Return a task's work lists of at most ``limit`` rows each; one without rows says why.

    Rows come from the transfer sets and held-out splits that the teacher of the student's row has
    answered; the student's answers are those that ``evaluate`` stored.

    :param method: the row whose student is compared with the teacher; by default the best on dev.
    :param wanted: which lists.
    """
    settings = params.task(task)
    scored = not KINDS[settings.kind].has_probabilities
    student = chosen_student(layout, params, task, method)
    parts = task_parts(layout, params, task, student)
    names = None if scored else settings.label_names
    student_name = student and student.name
    return lists_of(parts, names, limit, scored, student_name, wanted)


def task_parts(layout: Layout, params: Params, task: str, student: ChosenStudent | None) -> list[ListPart]:
    """Return the sets of a task that its teacher answered: transfer sets, then held-out splits.

    Originals are in every transfer set, and count only in the first.
    """
    teacher = teacher_beside(params, task, student)
    recipes = params.recipes_of(task)
    changing = [name for name in recipes if not params.recipe(name).changes_nothing]
    pairs = [(layout.transfer(task, name), layout.outputs(task, teacher, name)) for name in changing or recipes[:1]]
    pairs = [(inputs, outputs) for inputs, outputs in pairs if (outputs / "manifest.json").exists()]
    parts = [
        ListPart(JoinedRows.open(inputs, outputs), originals=not number)
        for number, (inputs, outputs) in enumerate(pairs)
    ]
    splits = layout.heldout_splits(task) if layout.task(task).exists() else []
    for split in splits:
        outputs = layout.heldout_outputs(task, teacher, split)
        if (outputs / "manifest.json").exists():
            rows = JoinedRows.open(layout.split(task, split), outputs)
            if student is None:
                parts.append(ListPart(rows))
            else:
                stored = StoredAnswers(layout.predictions(task), split, len(rows), student)
                parts.append(ListPart(rows, student=stored.logits, spread=stored.spread))
    return parts


def teacher_beside(params: Params, task: str, student: ChosenStudent | None) -> str:
    """Return the teacher of a student's row; the task's first one if the row is no more."""
    known = params.methods_of(task).get(student.method) if student else None
    return params.teacher_of(task, known) if known else next(iter(params.teachers_of(task)))


def lists_of(
    parts: Sequence[ListPart],
    names: Names,
    limit: int,
    regression: bool,
    student: str | None = None,
    wanted: Sequence[ListName] = LISTS,
) -> list[WorkList]:
    """Return the work lists of some sets, in two passes over them.

    :param student: the name of the student that answers besides the teacher.
    :param wanted: which lists.
    """
    errors = None
    several = any(KINDS[part.rows.kind].has_several for part in parts)
    if "labels" in wanted and not regression and not several:
        errors = LabelErrors(max((part.rows.classes or 0 for part in parts), default=0))
        for _, batch in _answered(parts):
            errors.learn(batch)
    top = {name: Top(limit) for name in wanted}
    originals = [Originals(part.rows) for part in parts]
    for number, batch in _answered(parts):
        for name, kept in top.items():
            scores = _scores(name, parts[number], batch, originals[number], regression)
            if scores is not None:
                kept.add(scores, number, batch.shard, batch.start)
        if errors is not None:
            errors.count(batch)
    return [_written(name, kept, parts, names, regression, errors, student) for name, kept in top.items()]


def _answered(parts: Sequence[ListPart]) -> Iterator[tuple[int, RowBatch]]:
    """Yield (part, batch) for all rows, without originals that another part has too."""
    for number, part in enumerate(parts):
        for batch in part.rows.batches():
            if batch.logits is None:
                continue
            # All rows of a shard are of the same iteration.
            if part.originals or batch.is_synthetic.all():
                yield number, batch


def _scores(
    name: ListName, part: ListPart, batch: RowBatch, originals: Originals, regression: bool
) -> np.ndarray | None:
    """Return the scores that a list sorts a batch by; NaN for rows that do not belong to it."""
    synthetic = batch.is_synthetic
    if name == "augmentation":
        if not synthetic.any():
            return None
        return np.where(synthetic, moved(batch.logits, originals.logits(batch), batch.kind), np.nan)
    if name == "student":
        return None if part.student is None else moved(batch.logits, part.student(batch), batch.kind)
    if name == "labels":
        if regression:
            return np.abs(batch.logits[:, 0] - batch.labels)
        if KINDS[batch.kind].has_several:
            return 1 - set_confidence(batch.logits, batch.marks)
        return 1 - self_confidence(softmax(batch.logits), batch.labels)
    # What people wrote is more informative than what the rules made of it.
    if not regression:
        return np.where(synthetic, np.nan, entropies(batch.logits, batch.kind))
    return None if part.spread is None else part.spread(batch)


def _written(
    name: ListName,
    kept: Top,
    parts: Sequence[ListPart],
    names: Names,
    regression: bool,
    errors: LabelErrors | None,
    student: str | None,
) -> WorkList:
    """Return a list with its texts, and its rows read again."""
    rows = [
        read_row(parts[part].rows, shard, row, names, parts[part].student, score)
        for score, (part, shard, row) in kept.best()
    ]
    words = (SCORES if regression else CLASSES)[name]
    ranked = f" {errors.summary()}" if name == "labels" and rows and errors else ""
    return WorkList(
        name,
        words.title,
        words.explanation + ranked,
        words.measure,
        rows,
        kept.seen,
        student,
        None if rows else words.missing,
    )
