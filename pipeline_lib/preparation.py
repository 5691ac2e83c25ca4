"""From labelled text to prepared shards: words, blanks, tags, and the training set's blocks.

Which block an example falls into, and where it stands in it, is decided by its words alone.  So
reordering the file changes nothing, and adding or removing an example changes one shard.
"""

import hashlib
from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.corpora.labelled import Example
from pipeline_lib.corpora.splits import split_examples
from pipeline_lib.errors import DistilleryError
from pipeline_lib.files import sha256_json
from pipeline_lib.hashing import sequence_keys, splitmix64, string_key
from pipeline_lib.params import Tagger, Task
from pipeline_lib.shards import Manifest, Shard, schema_of, write_manifest, write_shard
from pipeline_lib.store import Store
from pipeline_lib.text.tagging import TagWords, load_tagger
from pipeline_lib.text.words import split_words

SCHEMA = pa.schema(
    [
        ("key", pa.uint64()),
        ("label", pa.int32()),
        ("text", pa.string()),
        ("words", pa.list_(pa.string())),
        ("spaces", pa.list_(pa.bool_())),
        ("tags", pa.list_(pa.string())),
    ]
)
"""Columns of prepared shards.  ``label`` is the class number, null where it is hidden; ``spaces``
says which words a blank follows."""


def prepare_task(
    splits: dict[str, list[Example]],
    dropped: dict[str, Any],
    task: Task,
    tagger: Tagger,
    folder: Path,
) -> dict[str, Manifest]:
    """Write ``folder/{train,dev,test}`` and return their manifests.

    :param splits: examples by split, or all of them under ``all``.
    :param dropped: what was left out while reading, for the manifests.
    :raises DistilleryError: if a split ends up empty.
    """
    _refuse_empty(splits, folder)
    tables = _split_tables(splits, task)
    _refuse_empty(tables, folder)
    tag = _LazyTagger(tagger)
    made_from = {
        "tagger": tagger.model_dump(),
        "blocks": task.blocks,
        "labels": task.label_names,
        "split": task.split.model_dump() if task.split else None,
    }
    manifests = {}
    for name, table in tables.items():
        parts = _blocks(table, task.blocks) if name == "train" else [table]
        shards = [
            _write_block(folder / name / f"b{number:03d}.arrow", part, tag)
            for number, part in enumerate(parts)
        ]
        manifests[name] = Manifest(
            "prepared", schema_of(SCHEMA.empty_table()), shards, made_from, {"dropped": dropped}
        )
        write_manifest(folder / name, manifests[name])
    return manifests


def _refuse_empty(splits: Mapping[str, Sized], folder: Path) -> None:
    for name, rows in splits.items():
        if not len(rows):
            raise DistilleryError(
                f"split {name!r} of {folder.name} is empty. Check its source and `split`."
            )


def _to_table(examples: Sequence[Example]) -> pa.Table:
    """Split every text into words; the tags are added block by block."""
    known: dict[str, np.uint64] = {}
    words, spaces = zip(*(split_words(example.texts[0]) for example in examples), strict=True)
    item_keys = [known.get(w) or known.setdefault(w, string_key(w)) for ws in words for w in ws]
    offsets = np.concatenate([[0], np.cumsum([len(ws) for ws in words])])
    keys = sequence_keys(np.array(item_keys, np.uint64), offsets)
    columns = [
        pa.array(keys),
        pa.array([example.label for example in examples], pa.int32()),
        pa.array([example.texts[0] for example in examples]),
        pa.array(words, pa.list_(pa.string())),
        pa.array(spaces, pa.list_(pa.bool_())),
    ]
    return pa.table(columns, names=SCHEMA.names[:-1])


def _split_tables(splits: dict[str, list[Example]], task: Task) -> dict[str, pa.Table]:
    tables = {name: _to_table(rows) for name, rows in splits.items()}
    if task.split is None:
        return tables
    name = "all" if "all" in tables else "train"
    whole = tables.pop(name)
    keys = whole["key"].to_numpy()
    assigned = split_examples(splits[name], keys, block_of(keys, task.blocks), task.split)
    drawn = {part: whole.filter(pa.array(assigned == part)) for part in ("train", "dev", "test")}
    # A test fraction of 0 draws no test set; one that the source names stays.
    return {part: t for part, t in drawn.items() if t.num_rows or part != "test"} | tables


def block_of(keys: np.ndarray, blocks: int) -> np.ndarray:
    """Return the block number of each content key, int64, shape (len(keys),)."""
    return (splitmix64(keys) % np.uint64(blocks)).astype(np.int64)


def _blocks(table: pa.Table, blocks: int) -> list[pa.Table]:
    table = table.sort_by([("key", "ascending"), ("label", "ascending"), ("text", "ascending")])
    numbers = block_of(table["key"].to_numpy(), blocks)
    return [table.filter(pa.array(numbers == block)) for block in range(blocks)]


class _LazyTagger:
    """Tags blocks through the store; loads the tagger when the first block is not there."""

    def __init__(self, params: Tagger) -> None:
        self.params = params
        self.store = Store("tags")
        self.tag: TagWords | None = None

    def __call__(self, table: pa.Table) -> pa.Array:
        key = sha256_json([self.params.model_dump(), _words_digest(table)])
        with self.store.lock():
            if not self.store.find(key):
                self.store.add(key, pa.table({"tags": self._compute(table)}))
            return self.store.read(key)["tags"].combine_chunks()

    def _compute(self, table: pa.Table) -> pa.Array:
        self.tag = self.tag or load_tagger(self.params)
        words, spaces = table["words"].to_pylist(), table["spaces"].to_pylist()
        return pa.array(list(self.tag(words, spaces)), pa.list_(pa.string()))


def _words_digest(table: pa.Table) -> str:
    total = hashlib.sha256()
    for words, spaces in zip(table["words"].to_pylist(), table["spaces"].to_pylist(), strict=True):
        flags = "".join("01"[space] for space in spaces)
        total.update(("\x1f".join(words) + "\x1e" + flags + "\n").encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _write_block(path: Path, table: pa.Table, tag: _LazyTagger) -> Shard:
    return write_shard(path, table.append_column("tags", tag(table)).combine_chunks().cast(SCHEMA))
