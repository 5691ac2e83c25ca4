"""Untuned similarity: how well the cosine of two sentence vectors solves a pair task.

Wu et al. 2020, section 4.5 and table 5.  Labels are used only for the classes' threshold, which, like the class above
it, is chosen on the training set for each metric.  Scores are compared by correlation, which needs no threshold.
"""

from typing import Any, NamedTuple

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS, kind_of, label_array, score
from pipeline_lib.base.kinds.classes import AUPRC, best_threshold
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.folders import require_model
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.params import Params, Task
from pipeline_lib.retrieval.embedders import Encode, model_encoder
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.vectors import unit

TRAIN = "train"


class LabelledPairs(NamedTuple):
    """The pairs of one split with their labels, classes or scores, (rows,)."""

    first: list[str]
    second: list[str]
    labels: np.ndarray

    def cosines(self, encode: Encode) -> np.ndarray:
        """Return the cosine of each pair's vectors, float64 (rows,)."""
        return cosines(encode(self.first), encode(self.second))


def similarity_table(params: Params, name: str, layout: Layout) -> dict[str, Any]:
    """Score each system of one row of ``similarity``; return the fields of ``SimilarityScores``."""
    row = params.similarity_row(name)
    task, splits = params.task(row.task), labelled_splits(layout, row.task)
    systems = {}
    for pooling in row.poolings:
        encode = model_encoder(params, layout, row.model, pooling, params.sentence_vectors.max_length)
        systems[f"{row.model}, {pooling}"] = scores_of(encode, task, splits)
    for encoder in row.encoders:
        require_model(layout.encoder(encoder))
        systems[encoder] = scores_of(load_encoder(layout.encoder(encoder)).encode, task, splits)
    (scored,) = splits.keys() - {TRAIN}
    rows = {split: len(pairs.labels) for split, pairs in splits.items()}
    return {"task": row.task, "metrics": task.metrics, "split": scored, "rows": rows, "systems": systems}


def labelled_splits(layout: Layout, task: str) -> dict[str, LabelledPairs]:
    """Return the training pairs, and those of test if it is labelled, else of dev."""
    train = _labelled(layout, task, TRAIN)
    for split in ("test", "dev"):
        if (pairs := _labelled(layout, task, split)) is not None and train is not None:
            return {TRAIN: train, split: pairs}
    raise PotstillError(
        f"{layout.task(task)}: no labelled pairs to score. Name a labelled dev or test file in the "
        "task's source, and run `distill run`."
    )


def scores_of(encode: Encode, task: Task, splits: dict[str, LabelledPairs]) -> dict[str, float]:
    """Return a system's score by each of the task's metrics; see :func:`labelled_splits`."""
    train, scored = ((pairs.cosines(encode), pairs.labels) for pairs in splits.values())
    return similarity_scores(task.metrics, train, scored, task.positive_class)


def _labelled(layout: Layout, task: str, split: str) -> LabelledPairs | None:
    if not layout.split(task, split).exists():
        return None
    rows = ShardSet.open(layout.split(task, split)).to_table()
    if rows["label"].null_count:
        return None
    texts = (rows[column].to_pylist() for column in ("text", "text_2"))
    return LabelledPairs(*texts, label_array(rows["label"]))


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of vectors, float64 (rows,); both are (rows, width)."""
    return (unit(first.astype(np.float64)) * unit(second.astype(np.float64))).sum(1)


def similarity_scores(
    metrics: list[str], train: tuple[np.ndarray, np.ndarray], dev: tuple[np.ndarray, np.ndarray], positive: int = 1
) -> dict[str, float]:
    """Return each metric on dev of (cosines, labels), F1 of ``positive``; thresholds come from train."""
    scores = {}
    for metric in metrics:
        if not KINDS[kind_of(metric)].one_of:
            scores[metric] = score(metric, dev[1], dev[0][:, None])
            continue
        if metric == AUPRC:
            _, sign = max((_area(train[0] * sign, train[1], positive), sign) for sign in (1, -1))
            scores[metric] = _area(dev[0] * sign, dev[1], positive)
            continue
        cuts = [(s, best_threshold(s * train[0], train[1], metric, positive)) for s in (1, -1)]
        sign, threshold = max(cuts, key=lambda cut: _decided(metric, train, cut, positive))
        scores[metric] = _decided(metric, dev, (sign, threshold), positive)
    return scores


def _area(values: np.ndarray, labels: np.ndarray, positive: int) -> float:
    return score(AUPRC, labels, np.stack([-values, values], axis=1), positive)


def _decided(metric: str, pairs: tuple[np.ndarray, np.ndarray], cut: tuple[int, float], positive: int) -> float:
    values, labels = pairs
    above = cut[0] * values > cut[1]
    return score(metric, labels, np.eye(2)[above.astype(np.int64)], positive)
