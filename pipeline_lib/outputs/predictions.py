"""The pass that predicts what can stand in place of each word (Jiao et al. 2020, algorithm 1)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from pipeline_lib.models.masked_lm import MaskedLanguageModel, load_masked_lm
from pipeline_lib.outputs.teacher_pass import ModelPass
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.engine.passes import Output


@dataclass(frozen=True)
class PredictionPass(ModelPass):
    """The pass that computes a masked language model's predictions for every word of a block.

    Each sentence is read by itself, those of a pair too.

    :ivar count: words predicted in place of each.
    """

    kind: ClassVar[str] = "predictions"
    count: int

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the predictions besides the input, the code and the libraries."""
        return super().settings | {"count": self.count}

    def teacher(self) -> MaskedLanguageModel:
        """Load the model; the process caches the last one."""
        return _loaded(self.folder, self.digest, self.device, self.precision, self.count)

    def outputs(self, rows: pa.Table) -> Iterator[Output]:
        """Yield the rows' keys and a column ``predicted`` for each of their sentences.

        It has, for each word, the words predicted, or null: list<list<string>>.
        """
        columns, tokens = {"key": rows["key"]}, 0
        for side in column_suffixes(rows):
            columns[f"predicted{side}"], read = self._predicted(rows, side)
            tokens += read
        yield pa.table(columns), {"tokens": tokens}

    def _predicted(self, rows: pa.Table, side: str) -> tuple[pa.Array, int]:
        """Return the column of one side, and how many tokens were read for it."""
        words, spaces = (rows[f"{name}{side}"].to_pylist() for name in ("words", "spaces"))
        sentences = [(tuple(w), tuple(s)) for w, s in zip(words, spaces, strict=True)]
        # Sentences repeat, above all those of pairs.
        numbers = {sentence: number for number, sentence in enumerate(dict.fromkeys(sentences))}
        model = self.teacher()
        predicted, tokens = model.predict_words([*numbers], self.max_length, self.batch_tokens)
        lists = _lists(predicted, model.words)
        lengths = [len(sentence) for sentence, _ in numbers]
        distinct = pa.ListArray.from_arrays(_ends(lengths), lists)
        return distinct.take(pa.array([numbers[one] for one in sentences], pa.int64())), tokens


def _lists(predicted: np.ndarray, words: list[str]) -> pa.Array:
    """Return a list of words for each row of indices, null where they are -1."""
    known = predicted[:, 0] >= 0
    flat = pa.array(words, pa.string()).take(pa.array(predicted[known].ravel()))
    lists = pa.ListArray.from_arrays(_ends([predicted.shape[1]] * int(known.sum())), flat)
    places = pa.array(np.cumsum(known) - 1, mask=~known)
    return lists.take(places)


def _ends(lengths: list[int]) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), pa.int32())


@lru_cache(maxsize=1)
def _loaded(folder: Path, digest: str, device: str, precision: str, count: int) -> MaskedLanguageModel:
    return load_masked_lm(folder, device, precision, count)
