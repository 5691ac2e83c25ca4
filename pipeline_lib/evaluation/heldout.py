"""Held-out answers to score: those of one task's systems, a method's trained students each."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import label_array
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.text import Text
from pipeline_lib.params import Method
from pipeline_lib.results.schema import ParameterCounts, Source, Training
from pipeline_lib.shards.columns import matrix, texts
from pipeline_lib.shards.shard_sets import ShardSet, check_answers, read_manifest


@dataclass(frozen=True)
class Heldout:
    """One split in file order.

    :ivar labels: as in shards, (rows,) or (rows, labels); None if hidden.
    :ivar teachers: float32 (rows, outputs) by the teacher's name, NaN where it gave no answer.
    """

    texts: list[Text]
    labels: np.ndarray | None
    teachers: dict[str, np.ndarray]
    precision: dict[str, str]

    def scored(self, outputs: np.ndarray, rows: np.ndarray | bool = True) -> tuple[np.ndarray, np.ndarray] | None:
        """Return labels and outputs of the rows with an answer; None if there are none, or no labels."""
        chosen = answered(outputs) & rows
        return None if self.labels is None or not chosen.any() else (self.labels[chosen], outputs[chosen])


def read_heldout(layout: Layout, task: str, teachers: Iterable[str], labelled: bool = True) -> dict[str, Heldout]:
    """Read the splits that the task has: dev, and test and further ones if there are any."""
    # dev is required; a task can do without a test split.
    splits, names = dict.fromkeys(["dev", *layout.heldout_splits(task)]), list(teachers)
    heldout = {split: _read(layout, task, split, names) for split in splits}
    if labelled and heldout["dev"].labels is None:
        raise PotstillError(
            f"{layout.split(task, 'dev')}: no labelled dev split, so nothing to score. Name a "
            "labelled dev file in params.yaml, or let `split` draw one, and run `distill run`."
        )
    return heldout


def shared_texts(layout: Layout, task: str) -> dict[str, dict[str, dict[str, int]]]:
    """Return how many rows of each held-out split share their text with an earlier split.

    Maps split to earlier split to ``rows`` and ``other_label`` (of these, the rows whose text has
    another label there), as ``prepare`` counted them.
    """
    manifests = {split: read_manifest(layout.split(task, split)) for split in layout.heldout_splits(task)}
    return {split: manifest.counts.get("shared_with", {}) for split, manifest in manifests.items()}


def _read(layout: Layout, task: str, split: str, teachers: list[str]) -> Heldout:
    inputs = ShardSet.open(layout.split(task, split))
    logits, precision = {}, {}
    for name in teachers:
        outputs = ShardSet.open(layout.heldout_outputs(task, name, split))
        try:
            check_answers(inputs.manifest, outputs.manifest)
        except PotstillError as error:
            raise PotstillError(f"{outputs.folder}: {error}") from error
        logits[name] = matrix(outputs.to_table()["logits"])
        precision[name] = str(outputs.manifest.made_from.get("precision", "unknown"))
    table = inputs.to_table()
    hidden = table["label"].null_count or not len(table)
    return Heldout(texts(table), None if hidden else label_array(table["label"]), logits, precision)


def training_labels(layout: Layout, task: str) -> np.ndarray:
    """Return the training set's labels, without hidden ones."""
    return label_array(ShardSet.open(layout.split(task, "train")).to_table()["label"].drop_null())


@dataclass(frozen=True)
class System:
    """One method's trained students, and the teacher that they are compared with.

    ``logits`` holds, by split and seed, float32 of shape (rows, classes).  ``yardstick``: whether it is a regression
    on the labels, which others are to be better than.
    """

    method: Method
    teacher: str
    learned_from: Source
    logits: dict[str, dict[int, np.ndarray]]
    parameters: ParameterCounts
    training: Training
    yardstick: bool = False
