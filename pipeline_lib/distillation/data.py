"""Transfer sets and dev sets read as training data: numbered words, and their targets."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.storage.columns import column_suffixes, matrix
from pipeline_lib.storage.shards import ShardSet, check_answers
from pipeline_lib.students.vocabulary import word_numbers
from pipeline_lib.tasks.logits import softmax
from pipeline_lib.tasks.metrics import decide, label_array
from pipeline_lib.text.ragged import PAD_ID, Sentences


def training_sentences(
    inputs: ShardSet,
    outputs: ShardSet | None,
    tokenizer: Tokenizer,
    max_words: int,
    repeat_originals: int = 1,
    min_confidence: float = 0.0,
) -> Sentences:
    """Read a transfer set as numbered words, with the targets that there are.

    Targets: ``labels`` int64, or float32 of a regression (the teacher's answer where a row has
    none) and, with ``outputs``, ``logits`` float32.  Words are read memory-mapped and numbered
    shard by shard.  A synthetic row that another block has too is dropped here: within a block that
    was done when it was made.

    :param repeat_originals: how often each original row is taken.
    :param min_confidence: the least probability of the teacher's class for a synthetic row to stay.
    """
    parts = list(_rows(inputs, outputs))
    synthetic = np.concatenate([rows["iteration"].to_numpy() > 0 for rows, _ in parts])
    kept = _without_duplicates(
        np.concatenate([rows["key"].to_numpy() for rows, _ in parts]), synthetic
    )
    if min_confidence and outputs is not None:
        confident = _confidence([logits for _, logits in parts]) >= min_confidence
        kept &= confident | ~synthetic
    kept = np.concatenate([kept] + [kept[~synthetic]] * (repeat_originals - 1))
    originals = [(rows, logits) for rows, logits in parts if _are_original(rows)]
    parts += originals * (repeat_originals - 1)
    targets = {"labels": np.concatenate([_labels(rows, logits) for rows, logits in parts])[kept]}
    if outputs is not None:
        targets["logits"] = np.concatenate([logits for _, logits in parts])[kept]
    tables = [rows for rows, _ in parts]
    return _sentences(tables, tokenizer, max_words, targets, kept)


def dev_sentences(prepared: ShardSet, tokenizer: Tokenizer, max_words: int) -> Sentences:
    """Read a prepared split as numbered words with its labels."""
    labels = label_array(prepared.table()["label"])
    kept = np.ones(len(labels), bool)
    return _sentences(list(prepared.tables()), tokenizer, max_words, {"labels": labels}, kept)


def _rows(
    inputs: ShardSet, outputs: ShardSet | None
) -> Iterator[tuple[pa.Table, np.ndarray | None]]:
    if outputs is None:
        return ((rows, None) for rows in inputs.tables())
    return _aligned(inputs, outputs)


def _aligned(inputs: ShardSet, outputs: ShardSet) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yield (input rows, logits) per shard, memory-mapped, once checked to belong together."""
    check_answers(inputs.manifest, outputs.manifest)
    for rows, answers in zip(inputs.tables(), outputs.tables(), strict=True):
        yield rows, matrix(answers["logits"])


def _are_original(rows: pa.Table) -> bool:
    """Whether a shard, which holds one iteration, holds the examples themselves."""
    return bool(rows.num_rows) and rows["iteration"][0].as_py() == 0


def _confidence(logits: list[np.ndarray]) -> np.ndarray:
    """Return the probability that the teacher gives to the class it chooses, (rows,)."""
    return softmax(np.concatenate(logits)).max(axis=1)


def _labels(rows: pa.Table, logits: np.ndarray | None) -> np.ndarray:
    """Return the rows' labels; the teacher's answer stands in where there is none."""
    column = rows["label"].combine_chunks()
    missing = column.is_null().to_numpy(zero_copy_only=False)
    labels = column.fill_null(0).to_numpy(zero_copy_only=False)
    if missing.any():
        if logits is None:
            raise DistilleryError(
                f"{missing.sum():,} training rows have no label, and this row reads no teacher's "
                "outputs to stand in. Run `dvc repro plan` again."
            )
        labels = np.where(missing, decide(logits), labels)
    return labels.astype(np.float32 if pa.types.is_floating(column.type) else np.int64)


def _sentences(
    tables: list[pa.Table],
    tokenizer: Tokenizer,
    max_words: int,
    targets: dict[str, np.ndarray],
    kept: np.ndarray,
) -> Sentences:
    """Return the kept rows' words, numbered; a pair's second sentences hang on the first ones."""
    found = None
    for side in reversed(column_suffixes(tables[0])):
        numbered = [_words(rows[f"words{side}"], tokenizer, max_words) for rows in tables]
        lengths = np.concatenate([lengths for _, lengths in numbered])
        words = np.concatenate([words for words, _ in numbered])[np.repeat(kept, lengths)]
        offsets = np.concatenate([[0], np.cumsum(lengths[kept])])
        found = Sentences(words, offsets, targets, PAD_ID, second=found)
    return found


def _words(
    column: pa.ChunkedArray, tokenizer: Tokenizer, max_words: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of all words, int32, and how many each row has, int64."""
    lists = column.combine_chunks()
    encoded = lists.flatten().dictionary_encode()
    numbers = word_numbers(tokenizer, encoded.dictionary.to_pylist())
    words = numbers[encoded.indices.to_numpy()]
    lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    inside = np.arange(len(words)) - np.repeat(starts, lengths) < max_words
    return words[inside], np.minimum(lengths, max_words)


def _without_duplicates(keys: np.ndarray, synthetic: np.ndarray) -> np.ndarray:
    """Return which rows stay: all originals, and the first synthetic row of each other key."""
    order = np.argsort(synthetic, kind="stable")
    first = np.zeros(len(keys), bool)
    first[order[np.unique(keys[order], return_index=True)[1]]] = True
    return first | ~synthetic
