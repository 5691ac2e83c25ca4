"""Measures how far an exported student's answers deviate from those in torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import student_place
from pipeline_lib.base.text import Text
from pipeline_lib.exports.export_source import Subject
from pipeline_lib.shards.columns import texts
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import Sentences

MADE_UP, FROM_DEV = 256, 2048
Outputs = Callable[[Sentences], np.ndarray]


@dataclass(frozen=True)
class Deviation:
    """How the answers of an exported format deviate from those in torch.

    :ivar largest, mean: largest and mean absolute difference of logits, scores or vector values.
    :ivar relative: the largest difference over the largest value in torch.
    :ivar same_class: the share of rows with the same class, or labels; None if there are none.
    """

    rows: int
    largest: float
    mean: float
    relative: float
    same_class: float | None

    @classmethod
    def between(cls, wanted: np.ndarray, actual: np.ndarray, kind: str) -> "Deviation":
        """Compare outputs, float (rows, width)."""
        apart = np.abs(wanted.astype(np.float64) - actual)
        decides = kind in KINDS and KINDS[kind].has_probabilities
        same = KINDS[kind].same_answers(wanted, actual) if decides else None
        scale = max(float(np.abs(wanted).max()), 1e-6)
        largest = float(apart.max())
        return cls(len(wanted), largest, float(apart.mean()), largest / scale, same)

    def record(self) -> dict[str, Any]:
        """Return the numbers as they are recorded."""
        return {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in vars(self).items()
            if value is not None
        }


def measure(subject: Subject, outputs: Outputs) -> dict[str, Deviation]:
    """Compare an exported format of a student with the student in torch.

    :param outputs: computes the format's answers to sentences.
    :returns: ``made up``, on random words of all lengths, and ``dev``, on rows of its task, if the
        student's folder says which task that is.
    """
    samples = {"made up": made_up_texts(subject), "dev": dev_texts(subject)}
    encoded = {name: subject.reader.encode(sample) for name, sample in samples.items() if sample}
    return {
        name: Deviation.between(subject.outputs(sentences), outputs(sentences), subject.kind)
        for name, sentences in encoded.items()
    }


def made_up_texts(subject: Subject) -> list[Text]:
    """Return texts or pairs of random words, from no word to more than the student reads."""
    tokenizer = subject.reader.tokenizer
    backend = tokenizer.tokenizer if isinstance(tokenizer, Pieces) else tokenizer
    words = np.array(sorted(backend.get_vocab()), object)
    draw = np.random.default_rng(0)
    longest = min(subject.reader.max_words, 64) + 2

    def text(number: int) -> str:
        return " ".join(draw.choice(words, number % longest))

    numbers = range(MADE_UP)
    if subject.reader.pair:
        return [(text(number), text(7 * number + 3)) for number in numbers]
    return [text(number) for number in numbers]


def dev_texts(subject: Subject) -> list[Text]:
    """Return rows of the student's task; none if its folder does not say which task that is."""
    location = student_place(subject.folder)
    folder = None if location is None else location.layout.split(location.task, "dev")
    if folder is None or not folder.exists():
        return []
    return texts(ShardSet.open(folder).to_table().slice(0, FROM_DEV))
