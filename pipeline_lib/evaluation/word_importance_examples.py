"""Word importance for a few held-out rows of a task: teacher, distilled and undistilled student.

The rows are those where distillation helped most, and where it hurt: extremes, not a sample.  Of several labels, each
row has the one about which the two students differ most.
"""

from collections.abc import Callable
from functools import cache, partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.devices import single_thread
from pipeline_lib.base.files import sha256_folder, write_json
from pipeline_lib.base.kinds import KINDS, label_array
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.text import Text
from pipeline_lib.models.folders import Predict, temperature_of
from pipeline_lib.models.serving import open_teacher, student_in_use
from pipeline_lib.models.students.student import load_student
from pipeline_lib.models.word_importance import (
    Importance,
    as_json,
    label_choice,
    of_label,
    word_counts,
    word_importance,
)
from pipeline_lib.params import Params
from pipeline_lib.results.diagrams import read_predictions
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.shards.columns import matrix, texts
from pipeline_lib.shards.fingerprint import code_fingerprint
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.store import kept_json

EACH = 3
"""Rows on which distillation helped, and rows on which it hurt."""
WORDS = range(4, 25)
"""How many words each sentence of a row may have: every word is a text for every model."""


def write_importance(params: Params, task: str, layout: Layout, scores: TaskScores) -> int:
    """Write ``results/<task>/importance.json``, and return how many rows it explains: none if no row was distilled.

    :param scores: the task's; they and the predictions must have been written.
    """
    method = explained_method(scores)
    importance = {} if method is None else _explain(params, task, layout, scores, method)
    write_json(layout.importance(task), importance)
    return len(importance.get("examples", []))


def explained_method(scores: TaskScores) -> str | None:
    """Return the distilled row with a baseline that is best on dev."""
    return scores.best_on_dev(
        name
        for name, method in scores.methods.items()
        if method.learned_from != "gold" and method.baseline in scores.methods
    )


def _explain(params: Params, task: str, layout: Layout, scores: TaskScores, method: str) -> dict[str, Any]:
    method_scores, seed, split = scores.methods[method], params.seeds[0], scores.decisive_split
    sentences = texts(ShardSet.open(layout.split(task, split)).to_table())
    table = read_predictions(layout, task, split)
    kind, numbers = scores.kind, None
    labels = _labels(table["label"], matrix(table[method_scores.teacher]), kind)
    merits = [
        _merit(matrix(table[f"{name}-{seed}"]), labels, _temperature(scores, name, seed), kind)
        for name in (method, method_scores.baseline)
    ]
    differences = merits[0] - merits[1]
    if KINDS[kind].has_several:
        numbers = np.abs(np.nan_to_num(differences)).argmax(axis=1).tolist()
        each = np.arange(len(numbers)), numbers
        differences, labels = differences[each], labels[each]
    chosen = extremes(differences, sentences)
    names = {"method": method, "baseline": method_scores.baseline, "teacher": method_scores.teacher}
    models = _models(params, task, layout, *names.values(), seed)
    with single_thread():
        examples = [
            {"row": row, "distillation": effect}
            | _example(models, scores, sentences[row], labels[row], numbers and numbers[row])
            for row, effect in chosen
        ]
    return names | {"seed": seed, "split": split, "examples": examples}


def _example(
    models: "dict[str, _Model]", scores: TaskScores, text: Text, label: Any, number: int | None
) -> dict[str, Any]:
    """Return what is shown of a row; of several labels, ``number`` is the one that is explained."""
    names = scores.labels if number is None else label_choice(scores.labels[number])
    regression = not scores.of_kind.has_probabilities
    importances = {name: model.importance(text, regression, number) for name, model in models.items()}
    return {"label": f"{label:.3g}" if regression else names[label]} | as_json(text, importances, names)


def extremes(differences: np.ndarray, sentences: list[Text]) -> list[tuple[int, str]]:
    """Return the rows with the greatest and the least differences, and whether they helped or hurt.

    Rows of too few or too many words, and texts that were chosen before, are passed over.

    :param differences: how much better distilled than undistilled, float (rows,); NaN where unknown.
    """
    order = np.argsort(-np.nan_to_num(differences), kind="stable")
    chosen: dict[Text, tuple[int, str]] = {}
    for kind, rows, sign in (("helped", order, 1), ("hurt", order[::-1], -1)):
        moved = takewhile(lambda row, sign=sign: sign * differences[row] > 0, map(int, rows))
        short = (row for row in moved if all(count in WORDS for count in word_counts(sentences[row])))
        new = (row for row in short if sentences[row] not in chosen)
        for row in islice(new, EACH):
            chosen[sentences[row]] = row, kind
    return list(chosen.values())


def _labels(column: Any, teacher: np.ndarray, kind: str) -> np.ndarray:
    """Return the labels, or the teacher's answers where they are hidden: (rows,).

    For classes, a row that the teacher did not answer has -1; of several labels, it has it for each, (rows, labels).
    """
    if not column.null_count:
        return label_array(column)
    of_kind = KINDS[kind]
    if not of_kind.has_probabilities:
        return of_kind.decide(teacher)
    answers = of_kind.decide(np.nan_to_num(teacher))
    rows = answered(teacher) if answers.ndim == 1 else answered(teacher)[:, None]
    return np.where(rows, answers.astype(np.int64), -1)


def _merit(outputs: np.ndarray, labels: np.ndarray, temperature: float, kind: str) -> np.ndarray:
    """Return how good each answer is: the label's probability; for a score, less its error.

    Without a label, it is NaN.  Of several labels, it is that of each one's yes or no, (rows, labels).
    """
    of_kind = KINDS[kind]
    if not of_kind.has_probabilities:
        return -np.abs(outputs[:, 0] - labels)
    shares = of_kind.probabilities(outputs / temperature)
    if of_kind.has_several:
        right = np.where(labels == 1, shares, 1.0 - shares)
    else:
        right = shares[np.arange(len(labels)), labels]
    return np.where(labels.astype(np.int64) < 0, np.nan, right)


def _temperature(scores: TaskScores, method: str, seed: int) -> float:
    return (scores.methods[method].details.temperature or {}).get(str(seed), 1.0)


class _Model:
    """A model whose predictions are explained; it is loaded only if the store has no explanation.

    :param load: returns what it predicts with, and its sign of a mask.
    """

    def __init__(self, folder: Path, load: Callable[[], tuple[Predict, str]], *settings: Any) -> None:
        self._made_from = [sha256_folder(folder), *settings, code_fingerprint(__name__)]
        self._loaded = cache(load)

    def importance(self, text: Text, regression: bool, number: int | None) -> Importance:
        """Return how much each word of a text matters to the model."""

        def compute() -> dict[str, Any]:
            predict, sign = self._loaded()
            asked = predict if number is None else of_label(predict, number)
            computed = word_importance(text, asked, sign, regression)
            return {"words": computed.words, "answer": computed.answer.tolist(), "masked": computed.masked.tolist()}

        label = [] if number is None else [number]
        values = kept_json("importance", [*self._made_from, text, *label], compute)
        return Importance(tuple(values["words"]), np.array(values["answer"]), np.array(values["masked"]), regression)


def _models(
    params: Params, task: str, layout: Layout, method: str, baseline: str, teacher: str, seed: int
) -> dict[str, _Model]:
    models = {}
    if params.teachers[teacher].runs:
        folder, length = layout.teacher(task, teacher), params.teachers[teacher].max_length
        models[f"teacher {teacher}"] = _Model(folder, partial(_teacher, folder, length), length)
    for name in (method, baseline):
        folder = layout.student(task, name, seed)
        models[name] = _Model(folder, partial(_student, folder), temperature_of(folder))
    return models


def _student(folder: Path) -> tuple[Predict, str]:
    return student_in_use(folder, load_student(folder, device="cpu"))


def _teacher(folder: Path, max_length: int) -> tuple[Predict, str]:
    # On the CPU in float32, as students are scored: the same everywhere but for the last digits.
    teacher, predict = open_teacher(folder, None, max_length, "cpu", "float32")
    return predict, teacher.pieces.mask_sign
