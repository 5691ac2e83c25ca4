"""From labelled text to prepared shards: words, spaces, tags, and the training set's blocks.

An example's block, and its position in it, depend on its words alone.  So reordering the file
changes nothing, and adding or removing an example changes one shard.
"""

import hashlib
from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_json
from pipeline_lib.base.hashing import pair_keys, salt, splitmix64, word_keys
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.words import split_words
from pipeline_lib.corpora.tasks.labelled import Example, numbers_of
from pipeline_lib.corpora.tasks.splits import split_examples, texts_of_no_split
from pipeline_lib.corpora.tasks.tagging import TaggingPass
from pipeline_lib.params import UNLABELLED, Tagger, Task
from pipeline_lib.shards.columns import FIRST, SECOND, column_suffixes, for_sides
from pipeline_lib.shards.engine.passes import Piece, run_pieces
from pipeline_lib.shards.engine.protocol import Engine
from pipeline_lib.shards.shard_sets import Manifest, schema_of, write_manifest, write_shard
from pipeline_lib.shards.training_texts import UNLABELLED_BLOCK, unlabelled_folder

FEW_BLOCKS = 64
"""So many blocks are fine for any number of rows."""
HELDOUT_ROWS = 1000
"""Rows per shard of a held-out split."""
SPLIT_ROWS = 10_000
"""Rows whose texts are split into words at a time."""
GENERIC, GENERIC_ROWS = 0.01, 10
"""A text of more than this share of pairs, and of more than so many, says nothing of a pair."""
_SENTENCE = [("text", pa.string()), ("words", pa.list_(pa.string())), ("spaces", pa.list_(pa.bool_()))]
_TAGS = ("tags", pa.list_(pa.string()))


def prepared_schema(pair: bool, label: pa.DataType, tagged: bool) -> pa.Schema:
    """Return the columns of prepared shards.

    ``label`` is null where it is hidden; ``spaces`` says which words are followed by a space.

    :param label: the type of labels.
    :param tagged: whether there are ``tags``: the training set, which is augmented, has them; the
        held-out splits do not.
    """
    fields = [("key", pa.uint64()), ("label", label)]
    sentence = [*_SENTENCE, _TAGS] if tagged else _SENTENCE
    return pa.schema([*fields, *for_sides(sentence, pair)])


def prepare_task(
    splits: dict[str, list[Example]], dropped: dict[str, Any], task: Task, tagger: Tagger, folder: Path, engine: Engine
) -> dict[str, Manifest]:
    """Write ``folder/{train,dev,test}`` and return their manifests.

    Unlabelled texts are written within ``train``, in separate blocks.

    :param splits: examples by split, or all of them under ``all``.
    :param dropped: what was left out while reading, for the manifests; they also count the rows
        whose text occurs in an earlier split, see :func:`shared_rows`.
    """
    _refuse_empty(splits, folder)
    tables = split_tables(splits, task)
    unlabelled = tables.pop(UNLABELLED, None)
    tables["train"] = _take_fraction(tables["train"], task, folder.name)
    _refuse_empty(tables, folder)
    made_from = {
        "tagger": tagger.model_dump(),
        "blocks": task.blocks,
        "labels": task.label_names,
        "split": task.split.model_dump() if task.split else None,
        "train_fraction": task.train_fraction,
    }
    manifests: dict[str, Manifest] = {}
    for name, table in tables.items():
        earlier = {other: tables[other] for other in manifests}
        shared = {other: shared_rows(table, rows) for other, rows in earlier.items()}
        training = name == "train"
        counts = {"dropped": dropped} | ({"shared_with": shared} if shared else {})
        if training and task.blocks > max(table.num_rows, FEW_BLOCKS):
            raise PotstillError(
                f"params.yaml: tasks.{folder.name}.blocks: {task.blocks:,}, but there are "
                f"{table.num_rows:,} training rows. Set a few blocks per core."
            )
        schema = prepared_schema(task.is_pair, task_labels(task), tagged=training)
        blocks = _blocks(table, task.blocks) if training else _slices(table)
        written = _tagged(blocks, tagger, engine) if training else blocks
        manifests[name] = _write_set(folder / name, {"b": written}, schema, made_from, counts)
    if unlabelled is not None:
        texts, left_out = texts_of_no_split(unlabelled, [*tables.values()], folder.name)
        schema = prepared_schema(task.is_pair, task_labels(task), tagged=True)
        written = _tagged(_blocks(texts, task.blocks), tagger, engine)
        path = unlabelled_folder(folder / "train")
        manifests[UNLABELLED] = _write_set(path, {UNLABELLED_BLOCK: written}, schema, made_from, left_out)
    return manifests


def task_labels(task: Task) -> pa.DataType:
    """Return the type of a task's column ``label``."""
    return KINDS[task.kind].label_type(len(task.label_names))


def plain_labels(table: pa.Table) -> list[Any]:
    """Return the labels as values that can be compared and hashed; None where they are hidden."""
    labels = table["label"].to_pylist()
    return [tuple(label) if isinstance(label, list) else label for label in labels]


def shared_rows(table: pa.Table, earlier: pa.Table) -> dict[str, int]:
    """Count the rows whose text is in an earlier split too, and those with another label there.

    Texts are equal if their words are, whatever their case and their blanks; punctuation matters.

    :param table: key and label of each row; hidden labels (null) agree with every label.
    :param earlier: the same for the earlier split.
    """
    common = set(table["key"].to_pylist()) & set(earlier["key"].to_pylist())
    labels: dict[int, set[float | None]] = {key: set() for key in common}
    for key, label in zip(earlier["key"].to_pylist(), plain_labels(earlier), strict=True):
        if key in common:
            labels[key].add(label)
    rows = other = 0
    for key, label in zip(table["key"].to_pylist(), plain_labels(table), strict=True):
        if key in common:
            rows += 1
            other += label is not None and not labels[key] & {label, None}
    return {"rows": rows, "other_label": other}


def _refuse_empty(splits: Mapping[str, Sized], folder: Path) -> None:
    for name, rows in splits.items():
        if not len(rows):
            raise PotstillError(f"split {name!r} of {folder.name} is empty. Check its source and `split`.")


def example_table(examples: Sequence[Example], task: Task) -> pa.Table:
    """Split every text into words; the tags are added block by block."""
    # A few at a time: as Python objects, words take ten times the bytes that they have in Arrow.
    starts = range(0, len(examples) or 1, SPLIT_ROWS)
    return pa.concat_tables(_split_rows(examples[n : n + SPLIT_ROWS], task) for n in starts)


def _split_rows(examples: Sequence[Example], task: Task) -> pa.Table:
    columns = {"label": pa.array([e.label for e in examples], task_labels(task))}
    sides = []
    for side, ending in enumerate((FIRST, SECOND)[: len(task.text)]):
        words, spaces = zip(*(split_words(e.texts[side]) for e in examples), strict=True)
        sides.append(words)
        columns[f"text{ending}"] = pa.array([e.texts[side] for e in examples])
        columns[f"words{ending}"] = pa.array(words, pa.list_(pa.string()))
        columns[f"spaces{ending}"] = pa.array(spaces, pa.list_(pa.bool_()))
    return pa.table({"key": pa.array(_content_keys(sides)), **columns})


def _content_keys(sides: Sequence[Sequence[Sequence[str]]]) -> np.ndarray:
    """Return one key per example from the words of its sentence, or of its two."""
    keys: dict[str, np.uint64] = {}

    def key(word: str) -> np.uint64:
        return keys.get(word) or keys.setdefault(word, word_keys([word])[0])

    return pair_keys(
        [
            (
                np.array([key(w) for words in side for w in words], np.uint64),
                np.concatenate([[0], np.cumsum([len(words) for words in side])]),
            )
            for side in sides
        ]
    )


def split_tables(splits: dict[str, list[Example]], task: Task) -> dict[str, pa.Table]:
    """Draw splits if necessary; return the rows of each with key, label, texts, words and spaces."""
    tables = {name: example_table(rows, task) for name, rows in splits.items()}
    if task.split is None:
        return tables
    name = "all" if "all" in tables else "train"
    whole = tables.pop(name)
    keys = _of_shared_texts(whole) if task.is_pair else whole["key"].to_numpy()
    assigned = split_examples(splits[name], keys, block_of(keys, task.blocks), task.split, task.score_range)
    drawn = {split: whole.filter(pa.array(assigned == split)) for split in ("train", "dev", "test")}
    # A test fraction of 0 draws no test set; one that the source names is kept.
    return {split: t for split, t in drawn.items() if t.num_rows or split != "test"} | tables


def _of_shared_texts(pairs: pa.Table) -> np.ndarray:
    """Return one key for all pairs that texts link, directly or by way of others, uint64 (rows,).

    With one question in train and in dev, dev would be easier than what is new: of a random tenth of QQP, 15 % has one.
    A text of many pairs, such as the answer "yes", links none.
    """
    sides = [_content_keys([pairs[f"words{ending}"].to_pylist()]) for ending in (FIRST, SECOND)]
    texts, numbers, counts = np.unique(np.concatenate(sides), return_inverse=True, return_counts=True)
    first, second = np.split(numbers, 2)
    is_own = counts <= max(GENERIC_ROWS, GENERIC * len(first))
    # A pair is a node beside the texts, linked to those of its own.
    nodes = len(texts) + np.arange(len(first))
    ends = [(side[is_own[side]], nodes[is_own[side]]) for side in (first, second)]
    rows, columns = (np.concatenate(each) for each in zip(*ends, strict=True))
    links = coo_matrix((np.ones(len(rows), bool), (rows, columns)), (nodes[-1] + 1,) * 2)
    _, groups = connected_components(links, directed=False)
    keys = np.concatenate([texts, pairs["key"].to_numpy()])
    lowest = np.full(len(groups), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(lowest, groups, keys)
    return lowest[groups[nodes]]


def _take_fraction(train: pa.Table, task: Task, name: str) -> pa.Table:
    """Return the examples with the lowest hashed keys: the same for every order of the file."""
    if task.train_fraction == 1.0:
        return train
    draws = splitmix64(train["key"].to_numpy() ^ salt("train_fraction", 0))
    fraction = train.filter(pa.array(draws < np.uint64(task.train_fraction * 2.0**64)))
    classes = KINDS[task.kind].meaning(task).names if task.learns_from_labels else ()
    left = {number for label in plain_labels(fraction) for number in numbers_of(label)}
    missing = [label for number, label in enumerate(classes) if number not in left]
    if not fraction.num_rows or missing:
        none = f", none of them labelled {', '.join(missing)}" if missing else ""
        raise PotstillError(
            f"tasks.{name}.train_fraction: {task.train_fraction} keeps {fraction.num_rows} of "
            f"{train.num_rows} examples{none}. Raise it."
        )
    return fraction


def block_of(keys: np.ndarray, blocks: int) -> np.ndarray:
    """Return the block number of each content key, int64, shape (len(keys),)."""
    return (splitmix64(keys) % np.uint64(blocks)).astype(np.int64)


def _slices(table: pa.Table) -> list[pa.Table]:
    """Cut a held-out split into shards, in the file's order: workers share the teacher's pass."""
    return [table.slice(start, HELDOUT_ROWS) for start in range(0, len(table), HELDOUT_ROWS)]


def _blocks(table: pa.Table, blocks: int) -> list[pa.Table]:
    texts = [name for name in table.column_names if name.startswith("text")]
    label = table["label"]
    if pa.types.is_fixed_size_list(label.type):
        # Arrow does not sort by lists.
        label = pa.array([None if marks is None else bytes(marks) for marks in label.to_pylist()])
    order = pa.table({"label": label, **{name: table[name] for name in ("key", *texts)}})
    by = [(name, "ascending") for name in ("key", "label", *texts)]
    table = table.take(pc.sort_indices(order, by))
    numbers = block_of(table["key"].to_numpy(), blocks)
    return [table.filter(pa.array(numbers == block)) for block in range(blocks)]


def _tagged(blocks: list[pa.Table], tagger: Tagger, engine: Engine) -> list[pa.Table]:
    """Return the blocks with the tags of their sentences, from the store where it has them."""
    tagging = TaggingPass(tagger)
    answers, _ = run_pieces(tagging, [_piece(block) for block in blocks], engine)
    tagged = [next(answer.tables(tagging)) for answer in answers]
    pairs = zip(blocks, tagged, strict=True)
    return [
        pa.table([*block.columns, *tags.columns], [*block.column_names, *tags.column_names]) for block, tags in pairs
    ]


def _piece(block: pa.Table) -> Piece:
    """Return a block's words: tags depend on nothing else in it."""
    suffixes = column_suffixes(block)
    columns = {f"{name}{s}": block[f"{name}{s}"] for s in suffixes for name in ("words", "spaces")}
    parts = [_words_digest(columns[f"words{s}"].to_pylist(), columns[f"spaces{s}"].to_pylist()) for s in suffixes]
    texts = {f"text{s}": block[f"text{s}"] for s in suffixes}
    return Piece(sha256_json(parts), pa.table(texts | columns))


def _words_digest(words: list[list[str]], spaces: list[list[bool]]) -> str:
    total = hashlib.sha256()
    for sentence, following in zip(words, spaces, strict=True):
        flags = "".join("01"[space] for space in following)
        total.update(("\x1f".join(sentence) + "\x1e" + flags + "\n").encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _write_set(
    folder: Path, blocks: dict[str, list[pa.Table]], schema: pa.Schema, made_from: Any, counts: Any
) -> Manifest:
    """Write blocks, by the letter that their files begin with, as a shard set."""
    shards = [
        write_shard(folder / f"{letter}{number:03d}.arrow", rows.select(schema.names).combine_chunks().cast(schema))
        for letter, tables in blocks.items()
        for number, rows in enumerate(tables)
    ]
    manifest = Manifest("prepared", schema_of(schema.empty_table()), shards, made_from, counts)
    write_manifest(folder, manifest)
    return manifest
