"""Which unlabelled texts to label next: the student is unsure of them, and no two are alike.

BADGE (Ash et al. 2020, "Deep batch active learning by diverse, uncertain gradient lower bounds", section 3): a
text's vector is the gradient of the loss in the output layer, as if the student's own answer were the label.  It is
long where the student is unsure, and points elsewhere for another text.  Seeding of k-means++ then picks texts whose
vectors are far apart.  The order of picking is the list's order, so any number of its first rows is such a choice.
Two things are not as there. What the output layer reads is scaled to unit length, since those vectors are longest
where the student is sure.  And the origin counts as picked: it stands for texts whose label changes nothing, one of
which would come second otherwise.

A score has no probabilities: there, the spread over the seeds of a row stands for the error (query
by committee; Seung et al. 1992).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import salt, uniform
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import softmax
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.answers import ChosenStudent, chosen_student
from pipeline_lib.inspection.captions import CLASSES, NEXT, SCORES
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.models import running_features
from pipeline_lib.inspection.rows import DIGITS, Names, answer, read_row
from pipeline_lib.inspection.work_lists import WorkList, teacher_beside
from pipeline_lib.params import Params, Task
from pipeline_lib.shards.training_texts import labelled_later, own_unlabelled, unlabelled_folder

SEED = 1
"""Of the draws; a text's own key goes into them, so that their order in a set does not matter."""
Wants = Callable[[RowBatch], np.ndarray]
"""Which rows of a batch may be listed, bool (rows,)."""


def label_next(layout: Layout, params: Params, task: str, limit: int, method: str | None = None) -> WorkList:
    """Return the unlabelled texts of a task to label next, the first ones first.

    The student is the best on dev, with the seed that is best there; for scores, all its seeds
    answer.  The teacher's answers are included if a transfer set has them.

    :param method: the row whose student answers; by default the best on dev.
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
    later = labelled_later(layout.split(task, "train"))
    left = np.setdiff1d(own_unlabelled(layout.split(task, "train")), later)
    rows = _answered_texts(layout, params, task, student) or JoinedRows.open(texts)
    seeds = [student.seed]
    if scored:
        seeds += [seed for seed in params.seeds if seed != student.seed]
    return listed_next(
        rows,
        lambda batch: np.isin(batch.table["key"].to_numpy(), left),
        [layout.student(task, student.method, seed) for seed in seeds],
        None if scored else settings.label_names,
        limit,
        student.method if scored else student.name,
    )


def listed_next(
    rows: JoinedRows, wants: Wants, students: Sequence[Path], names: Names, limit: int, student_name: str
) -> WorkList:
    """Return the rows of a set to label next.

    :param wants: which rows may be listed; synthetic ones never are.
    :param students: the folders of the students that answer; for classes only the first counts.
    :param names: the task's class names; :param student_name: what the list calls the student.
    """
    answering = [running_features(folder, rows, names) for folder in students]
    candidates = _Candidates.of(rows, wants, answering)
    if candidates is None:
        return _missing(rows.is_scored, CLASSES[NEXT].missing)
    regression = candidates.logits.shape[2] == 1
    if regression and len(students) < 2:
        return _missing(
            True,
            "A score's uncertainty is the spread over the seeds of a row, and there is one. For a "
            "task, set several `seeds` in params.yaml, and run `distill run`.",
        )
    picked = diverse(candidates.weights, candidates.features, candidates.keys, limit)
    caption, uncertainty = (SCORES if regression else CLASSES)[NEXT], candidates.uncertainty
    inspected = [
        replace(
            read_row(rows, *candidates.places[number].tolist(), names, score=float(uncertainty[number])),
            student=answer(candidates.logits[0, [number]], names),
        )
        for number in picked
    ]
    return WorkList(
        NEXT, caption.title, caption.explanation, caption.measure, inspected, len(candidates.keys), student_name
    )


def _missing(regression: bool, reason: str) -> WorkList:
    caption = (SCORES if regression else CLASSES)[NEXT]
    texts = caption.title, caption.explanation, caption.measure
    return WorkList(NEXT, *texts, [], 0, None, reason)


def _answered_texts(layout: Layout, params: Params, task: str, student: ChosenStudent) -> JoinedRows | None:
    """Return a transfer set that contains the unlabelled texts, if the teacher answered it."""
    teacher = teacher_beside(params, task, student)
    for recipe in params.recipes_of(task):
        outputs = layout.outputs(task, teacher, recipe)
        if params.recipe(recipe).unlabelled and (outputs / "manifest.json").exists():
            return JoinedRows.open(layout.transfer(task, recipe), outputs)
    return None


@dataclass(frozen=True)
class _Candidates:
    """Rows that may be listed.

    :ivar places: shard and row of each, int64 (rows, 2); :ivar keys: content keys, uint64 (rows,).
    :ivar logits: the students' answers, float32 (students, rows, classes).
    :ivar features: what the first student's output layer reads, scaled to unit length, float32 (rows, width).
    """

    places: np.ndarray
    keys: np.ndarray
    logits: np.ndarray
    features: np.ndarray

    @classmethod
    def of(
        cls, rows: JoinedRows, wants: Wants, answering: Sequence[Callable[[pa.Table], tuple[np.ndarray, np.ndarray]]]
    ) -> "_Candidates | None":
        """Let students answer the rows; None if there are none."""
        places, keys, logits, features = [], [], [], []
        for batch in rows.batches():
            # All rows of a shard are of the same iteration.
            numbers = [] if batch.is_synthetic.any() else np.flatnonzero(wants(batch))
            if not len(numbers):
                continue
            table = batch.table.take(pa.array(numbers))
            answers = [answer_rows(table) for answer_rows in answering]
            places.append(np.stack([np.full(len(numbers), batch.shard), batch.start + numbers], 1))
            keys.append(table["key"].to_numpy())
            logits.append(np.stack([part for part, _ in answers]))
            features.append(answers[0][1])
        if not keys:
            return None
        read = np.concatenate(features)
        read /= np.maximum(np.linalg.norm(read, axis=1, keepdims=True), 1e-12)
        joined = (np.concatenate(parts) for parts in (places, keys))
        return cls(*joined, np.concatenate(logits, axis=1), read)

    @property
    def uncertainty(self) -> np.ndarray:
        """What the list sorts by besides diversity, float64 (rows,)."""
        if self.logits.shape[2] == 1:
            return self.logits[:, :, 0].astype(np.float64).std(axis=0, ddof=1)
        return 1.0 - softmax(self.logits[0]).max(axis=1)

    @property
    def weights(self) -> np.ndarray:
        """The gradient of each row's loss in the logits, float64 (rows, classes)."""
        if self.logits.shape[2] == 1:
            return self.uncertainty[:, None]
        shares = softmax(self.logits[0])
        shares[np.arange(len(shares)), shares.argmax(axis=1)] -= 1.0
        return shares


def diverse(weights: np.ndarray, features: np.ndarray, keys: np.ndarray, size: int, seed: int = SEED) -> list[int]:
    """Return the numbers of rows in the order in which k-means++ picks them.

    A row's vector is the outer product of its weights and features.  The longest comes first; then
    each is drawn with a probability proportional to the square of its distance from the origin, or
    from the nearest one that was picked (Arthur and Vassilvitskii 2007, section 2.2).  Rows at
    distance 0 from those, such as copies, come last, the longest first.  One pass over the rows per
    pick, and no vector is ever formed: the distances follow from the factors'.

    :param weights: float (rows, classes); :param features: float32 (rows, width).
    :param keys: the rows' content keys, uint64 (rows,), which a draw depends on.
    :param size: how many rows to pick, at most all.
    """
    lengths = (weights**2).sum(axis=1) * (features**2).sum(axis=1, dtype=np.float64)
    distances = lengths.copy()
    picked: list[int] = []
    while len(picked) < min(size, len(keys)):
        if not picked:
            best = int(lengths.argmax())
        elif distances.any():
            # The first arrival of exponential clocks whose rates are the distances.
            waits = -np.log1p(-uniform(keys, salt(seed, NEXT, len(picked))))
            best = int((distances / np.maximum(waits, 1e-300)).argmax())
        else:
            order = np.argsort(-lengths, kind="stable")
            rest = order[~np.isin(order, picked)]
            return [*picked, *rest[: size - len(picked)].tolist()]
        picked.append(best)
        products = (weights @ weights[best]) * (features @ features[best])
        apart = lengths + lengths[best] - 2.0 * products
        # Rounding leaves a trace of the distance of equal vectors.
        apart[apart < 1e-5 * lengths[best]] = 0.0
        distances = np.minimum(distances, apart)
        distances[best] = 0.0
    return picked


def to_label(work_list: WorkList, task: Task) -> pa.Table:
    """Return a list as a table to fill in: the task's own columns, the label empty, and answers.

    `distill init --add-labels` reads it as it is.
    """
    texts = zip(*([s.text for s in row.sentences] for row in work_list.rows), strict=True)
    columns = dict(zip(task.text, map(pa.array, texts), strict=True))
    columns[task.label_of("train")] = pa.nulls(len(work_list.rows), pa.string())
    beside = {
        "student": pa.array([row.student and row.student.answer for row in work_list.rows]),
        "teacher": pa.array([row.teacher and row.teacher.answer for row in work_list.rows]),
        "uncertainty": pa.array([round(row.score, DIGITS) for row in work_list.rows]),
    }
    if all(row.teacher is None for row in work_list.rows):
        del beside["teacher"]
    return pa.table(columns | {n: column for n, column in beside.items() if n not in columns})
