"""Word importance for a few held-out rows of a task: teacher, distilled and undistilled student.

The rows are those where distillation helped most, and where it hurt: for a classification by the
probability of the label, for a regression by the distance from the label.  They are extremes, not a
sample.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.devices import resolve_batch_tokens, single_thread
from pipeline_lib.base.files import sha256_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.probabilities import answered, softmax
from pipeline_lib.base.text import Text
from pipeline_lib.models.serving import student_in_use
from pipeline_lib.models.students.folders import Predict, temperature_of
from pipeline_lib.models.students.student import load_student
from pipeline_lib.models.teacher import load_teacher
from pipeline_lib.models.word_importance import Importance, as_json, word_counts, word_importance
from pipeline_lib.params import Params
from pipeline_lib.results.diagrams import read_predictions
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.shards.columns import matrix, texts
from pipeline_lib.shards.fingerprint import code_fingerprint
from pipeline_lib.shards.kept import kept_json
from pipeline_lib.shards.shard_sets import ShardSet

EACH = 3
"""Rows on which distillation helped, and rows on which it hurt."""
WORDS = range(4, 25)
"""How many words each sentence of a row may have: every word is a text for every model."""


def write_importance(params: Params, task: str, layout: Layout, scores: TaskScores) -> int:
    """Write ``results/<task>/importance.json``, and return how many rows it explains.

    None where no row was distilled.

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


def _explain(
    params: Params, task: str, layout: Layout, scores: TaskScores, method: str
) -> dict[str, Any]:
    method_scores, seed, split = scores.methods[method], params.seeds[0], scores.decisive_split
    sentences = texts(ShardSet.open(layout.split(task, split)).table())
    table = read_predictions(layout, task, split)
    regression = scores.is_regression
    labels = _labels(table["label"], matrix(table[method_scores.teacher]), regression)
    merits = [
        _merit(
            matrix(table[f"{name}-{seed}"]), labels, _temperature(scores, name, seed), regression
        )
        for name in (method, method_scores.baseline)
    ]
    chosen = extremes(merits[0] - merits[1], sentences)
    models = _models(
        params, task, layout, (method, method_scores.baseline, method_scores.teacher), seed
    )
    with single_thread():
        examples = [
            {"row": row, "label": _named(labels[row], scores), "distillation": kind}
            | as_json(
                sentences[row],
                {name: one.importance(sentences[row], regression) for name, one in models.items()},
                scores.labels,
            )
            for row, kind in chosen
        ]
    return {
        "method": method,
        "baseline": method_scores.baseline,
        "teacher": method_scores.teacher,
        "seed": seed,
        "split": split,
        "examples": examples,
    }


def extremes(differences: np.ndarray, sentences: list[Text]) -> list[tuple[int, str]]:
    """Return the rows with the greatest and the least differences, and whether they helped or hurt.

    Rows of too few or too many words, and texts that were chosen before, are passed over.

    :param differences: how much better distilled than undistilled, float (rows,); NaN where
        unknown.
    """
    order = np.argsort(-np.nan_to_num(differences), kind="stable")
    chosen: dict[Text, tuple[int, str]] = {}
    for kind, rows, sign in (("helped", order, 1), ("hurt", order[::-1], -1)):
        left = EACH
        for row in map(int, rows):
            if not left or not sign * differences[row] > 0:
                break
            if sentences[row] not in chosen and _is_short(sentences[row]):
                chosen[sentences[row]] = row, kind
                left -= 1
    return list(chosen.values())


def _is_short(text: Text) -> bool:
    return all(count in WORDS for count in word_counts(text))


def _labels(column: Any, teacher: np.ndarray, regression: bool) -> np.ndarray:
    """Return the labels, or the teacher's answers where they are hidden: (rows,).

    For classes, a row that the teacher did not answer has -1.
    """
    if not column.null_count:
        return column.to_numpy()
    if regression:
        return teacher[:, 0]
    return np.where(answered(teacher), np.nan_to_num(teacher).argmax(axis=1), -1)


def _merit(
    outputs: np.ndarray, labels: np.ndarray, temperature: float, regression: bool
) -> np.ndarray:
    """Return how good each answer is: the label's probability; for a score, less its error.

    Without a label, it is NaN.
    """
    if regression:
        return -np.abs(outputs[:, 0] - labels)
    probabilities = softmax(outputs / temperature)[np.arange(len(labels)), labels]
    return np.where(labels < 0, np.nan, probabilities)


def _named(label: Any, scores: TaskScores) -> str:
    return f"{label:.3g}" if scores.is_regression else scores.labels[label]


def _temperature(scores: TaskScores, method: str, seed: int) -> float:
    return (scores.methods[method].details.temperature or {}).get(str(seed), 1.0)


class _Model:
    """A model whose predictions are explained; it is loaded only if the store has no explanation.

    :param load: returns what it predicts with, and its sign of a mask.
    """

    def __init__(
        self, folder: Path, load: Callable[[], tuple[Predict, str]], *settings: Any
    ) -> None:
        self._made_from = [sha256_folder(folder), *settings, code_fingerprint(__name__)]
        self._loaded = cache(load)

    def importance(self, text: Text, regression: bool) -> Importance:
        """Return how much each word of a text matters to the model."""

        def compute() -> dict[str, Any]:
            computed = word_importance(text, *self._loaded(), regression)
            arrays = {"answer": computed.answer.tolist(), "masked": computed.masked.tolist()}
            return {"words": computed.words, **arrays}

        values = kept_json("importance", [*self._made_from, text], compute)
        answer, masked = (np.array(values[name]) for name in ("answer", "masked"))
        return Importance(tuple(values["words"]), answer, masked, regression)


def _models(
    params: Params, task: str, layout: Layout, names: tuple[str, str, str], seed: int
) -> dict[str, _Model]:
    """Return teacher, student and baseline."""
    method, baseline, teacher = names
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
    teacher = load_teacher(folder, "cpu", "float32")
    tokens = resolve_batch_tokens(None, teacher.device)
    return lambda inputs: teacher.predict(inputs, max_length, tokens), teacher.pieces.mask_sign
