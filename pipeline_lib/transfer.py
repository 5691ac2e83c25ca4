"""Transfer sets: writing one block by block, and reading one as training data."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.augmentation import CODE_VERSION, SCHEMA, Counts, augment_block
from pipeline_lib.batching import Sentences
from pipeline_lib.files import clear_folder
from pipeline_lib.params import Recipe, Task
from pipeline_lib.shards import Manifest, Shard, ShardSet, schema_of, write_manifest, write_shard
from pipeline_lib.students.vocabulary import word_numbers
from pipeline_lib.teachers.outputs import aligned
from pipeline_lib.text.lexicon import Lexicon


def write_transfer_set(
    prepared: ShardSet, lexicon: Lexicon, recipe: Recipe, task: Task, folder: Path
) -> Manifest:
    """Augment every block of ``prepared`` into ``folder``: one shard per block and iteration.

    The cap is shared out evenly over the blocks, so that no block depends on another.
    """
    clear_folder(folder)
    cap = None if task.augment.cap is None else -(-task.augment.cap // task.blocks)
    shards: list[Shard] = []
    total = Counts()
    for block, examples in enumerate(prepared.tables()):
        for iteration, rows, counts in augment_block(
            examples, lexicon, recipe, task.augment.n_iter, cap
        ):
            name = f"b{block:03d}-i{iteration:03d}.arrow"
            shards.append(write_shard(folder / name, rows))
            total.add(counts)
    made_from = {
        "prepared": prepared.manifest.digest,
        "lexicon": lexicon.digest,
        "recipe": recipe.model_dump(),
        "augment": task.augment.model_dump(),
        "code": CODE_VERSION,
    }
    schema = schema_of(SCHEMA.empty_table())
    manifest = Manifest("transfer", schema, shards, made_from, asdict(total))
    write_manifest(folder, manifest)
    return manifest


def training_sentences(
    inputs: ShardSet, outputs: ShardSet | None, tokenizer: Any, max_words: int
) -> Sentences:
    """Read a transfer set as numbered words, with the targets that there are.

    Targets: ``labels`` int64 (the teacher's argmax where a row has none) and, with ``outputs``,
    ``logits`` float32.  Words are read memory-mapped and numbered shard by shard.  A synthetic row
    that another block has too is dropped here: within a block that was done when it was made.
    """
    parts = [
        _numbered(rows, logits, tokenizer, max_words) for rows, logits in _rows(inputs, outputs)
    ]
    kept = _without_duplicates(
        np.concatenate([part["keys"] for part in parts]),
        np.concatenate([part["synthetic"] for part in parts]),
    )
    lengths = np.concatenate([part["lengths"] for part in parts])
    words = np.concatenate([part["words"] for part in parts])[np.repeat(kept, lengths)]
    offsets = np.concatenate([[0], np.cumsum(lengths[kept])])
    names = ["labels"] if outputs is None else ["labels", "logits"]
    targets = {name: np.concatenate([part[name] for part in parts])[kept] for name in names}
    return Sentences(words, offsets, targets, tokenizer.pad_token_id)


def dev_sentences(prepared: ShardSet, tokenizer: Any, max_words: int) -> Sentences:
    """Read a prepared split as numbered words with its labels."""
    parts = [_words(rows, tokenizer, max_words) for rows in prepared.tables()]
    words = np.concatenate([part["words"] for part in parts])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([part["lengths"] for part in parts]))])
    labels = prepared.table()["label"].to_numpy().astype(np.int64)
    return Sentences(words, offsets, {"labels": labels}, tokenizer.pad_token_id)


def _rows(
    inputs: ShardSet, outputs: ShardSet | None
) -> Iterator[tuple[pa.Table, np.ndarray | None]]:
    if outputs is None:
        return ((rows, None) for rows in inputs.tables())
    return aligned(inputs, outputs)


def _numbered(
    rows: pa.Table, logits: np.ndarray | None, tokenizer: Any, max_words: int
) -> dict[str, np.ndarray]:
    part = _words(rows, tokenizer, max_words)
    part["keys"] = rows["key"].to_numpy()
    part["synthetic"] = rows["iteration"].to_numpy() > 0
    labels = rows["label"].combine_chunks()
    part["labels"] = labels.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    if logits is not None:
        part["logits"] = logits
        part["labels"] = np.where(part["labels"] < 0, logits.argmax(1), part["labels"])
    return part


def _words(rows: pa.Table, tokenizer: Any, max_words: int) -> dict[str, np.ndarray]:
    lists = rows["words"].combine_chunks()
    encoded = lists.flatten().dictionary_encode()
    numbers = word_numbers(tokenizer, encoded.dictionary.to_pylist())
    words = numbers[encoded.indices.to_numpy()]
    lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    inside = np.arange(len(words)) - np.repeat(starts, lengths) < max_words
    return {"words": words[inside], "lengths": np.minimum(lengths, max_words)}


def _without_duplicates(keys: np.ndarray, synthetic: np.ndarray) -> np.ndarray:
    """Return which rows stay: all originals, and the first synthetic row of each other key."""
    order = np.argsort(synthetic, kind="stable")
    first = np.zeros(len(keys), bool)
    first[order[np.unique(keys[order], return_index=True)[1]]] = True
    return first | ~synthetic
