"""The rules that turn a small labelled corpus into a transfer set.

Tang et al. 2019, section 3.3: masking, POS-guided word replacement, n-gram sampling.  A synthetic example is a pure
function of (seed, the example's words, iteration, recipe, lexicon): every draw is a hash of those, so neither order,
batch size nor worker count can change it.  All examples of a block are processed at once, as flat numpy arrays of
word ids.  In sentence pairs the first sentence is changed, then the second, then both, in turn.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.hashing import GOLDEN, pair_keys, salt, uniform, word_keys
from pipeline_lib.base.text import MASK
from pipeline_lib.corpora.augmentation.lexicon import Lexicon, WordStrings
from pipeline_lib.params import Recipe
from pipeline_lib.shards.columns import FIRST, KEPT, MASKED, REPLACED, column_suffixes, for_sides

SEED = 1
"""Transfer sets are drawn once: seeds are for trainings."""
_SENTENCE = [
    ("text", pa.string()),
    ("words", pa.list_(pa.string())),
    ("rules", pa.list_(pa.int8())),
    ("ngram_start", pa.int32()),
    ("ngram_length", pa.int32()),
]


def transfer_schema(pair: bool, label: pa.DataType) -> pa.Schema:
    """Return the columns of a transfer set.

    ``key`` is the content key of the row's words, ``example`` that of the example it was made from;
    ``label`` is null for synthetic rows; ``ngram_length`` 0: no n-gram was cut out.
    """
    fields = [("key", pa.uint64()), ("example", pa.uint64()), ("iteration", pa.int32())]
    return pa.schema([*fields, ("label", label), *for_sides(_SENTENCE, pair)])


@dataclass
class Counts:
    """What happened while a block was augmented."""

    rows: int = 0
    duplicates: int = 0
    over_cap: int = 0
    masked: int = 0
    replaced: int = 0
    ngrams: int = 0


def augment_block(
    examples: pa.Table, lexicon: Lexicon, recipe: Recipe, n_iter: int, cap: int | None
) -> Iterator[tuple[int, pa.Table, Counts]]:
    """Yield the rows of each iteration of one block: the originals, then 1 … n_iter.

    Rows with the same words as an earlier row of the block are dropped, so iteration i depends on
    the iterations before it and on none after.

    :param examples: prepared rows in a stable order, with the columns of
        :func:`pipeline_lib.corpora.tasks.preparation.prepared_schema`.
    :param lexicon: what replacement draws from.
    :param recipe: the rules' probabilities.
    :param n_iter: synthetic examples per example, before duplicates are dropped.
    :param cap: the block's maximum number of rows, originals included, or None; no iteration starts once it is reached.
    """
    yield 0, _originals(examples), Counts(rows=examples.num_rows)
    if recipe.changes_nothing or not examples.num_rows or not n_iter:
        return
    label = examples.schema.field("label").type
    room = np.inf if cap is None else max(0, cap - examples.num_rows)
    # Equal examples would give equal synthetic rows: one of each is enough.
    first = np.sort(np.unique(examples["key"].to_numpy(), return_index=True)[1])
    examples = examples.take(pa.array(first)).combine_chunks()
    sources = examples["key"].to_numpy()
    block = [_BlockWords(examples, side, lexicon) for side in column_suffixes(examples)]
    seen = np.sort(sources)
    for iteration in range(1, n_iter + 1):
        if room <= 0:
            return
        drawn = [
            _draw(words, lexicon, recipe, iteration) if changes else _unchanged(words)
            for words, changes in zip(block, _changes(len(block), iteration), strict=True)
        ]
        keys = pair_keys([(w.string_keys[d.ids], d.offsets) for w, d in zip(block, drawn, strict=True)])
        new = _first_occurrences(keys, seen)
        selected = new[: int(min(room, len(new)))]
        # Two sorted runs: a stable sort merges them in one pass.
        seen = np.sort(np.concatenate([seen, np.sort(keys[selected])]), kind="stable")
        room -= len(selected)
        columns = {
            "key": pa.array(keys[selected]),
            "example": pa.array(sources[selected]),
            "iteration": pa.array(np.full(len(selected), iteration, np.int32)),
            "label": pa.nulls(len(selected), label),
        }
        for words, sentence in zip(block, drawn, strict=True):
            columns |= _render(words, sentence, selected)
        table = pa.table(columns, schema=transfer_schema(len(block) == 2, label))
        yield iteration, table, _count(table, len(keys) - len(new), len(new) - len(selected))


def _changes(sentences: int, iteration: int) -> tuple[bool, ...]:
    """Return which sentences an iteration changes: of a pair the first, the second, both, in turn.

    Tang et al. 2019, section 3.3.
    """
    if sentences == 1:
        return (True,)
    return ((True, True), (True, False), (False, True))[iteration % 3]


class _BlockWords:
    """One sentence of each of a block's distinct examples, as flat arrays of word ids.

    A word id is an index into ``strings``: the lexicon's entries, then the block's own words, then the mask.  So
    replacement can write the number of an entry as it was drawn.
    """

    def __init__(self, examples: pa.Table, side: str, lexicon: Lexicon) -> None:
        lists = examples[f"words{side}"].combine_chunks()
        flat = lists.flatten()
        tags = examples[f"tags{side}"].combine_chunks().flatten()
        spaces = examples[f"spaces{side}"].combine_chunks().flatten()
        encoded = flat.dictionary_encode()
        vocabulary = encoded.dictionary.to_pylist()

        self.side = side
        keys = examples["key"].to_numpy()
        # Every draw is a hash of these; the sentences of a pair draw independently.
        self.draw_keys = keys if side == FIRST else keys ^ salt("sentence", side)
        self.lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        self.rows = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.positions = np.arange(len(flat)) - np.repeat(self.offsets[:-1], self.lengths)
        self.spaces = spaces.to_numpy(zero_copy_only=False)
        self.ids = encoded.indices.to_numpy().astype(np.int64) + len(lexicon.words)
        self.counters = self.draw_keys[self.rows] + self.positions.astype(np.uint64) * GOLDEN
        self.entries = lexicon.entries(flat, tags)
        self.tags = pc.fill_null(pc.index_in(tags, value_set=pa.array(list(lexicon.tag_numbers))), -1).to_numpy()
        self.mask_id = len(lexicon.words) + len(vocabulary)
        texts = [*vocabulary, MASK]
        self.string_keys = np.concatenate([lexicon.keys, word_keys(texts)])
        self.strings = lexicon.strings.then(WordStrings.of(texts))
        # Bare, and again with a trailing space: text is then one `take` and one join.
        self.pieces = pa.concat_arrays([self.strings.plain, self.strings.spaced])


@dataclass
class _Drawn:
    """One sentence in one iteration of a block, duplicates included: flat arrays over its words."""

    ids: np.ndarray
    rules: np.ndarray
    spaces: np.ndarray
    offsets: np.ndarray
    ngram_starts: np.ndarray
    ngram_lengths: np.ndarray


Draw = Callable[[np.ndarray, str], np.ndarray]
"""Keys and a purpose to a number in [0, 1) for each key."""


def _draw(words: _BlockWords, lexicon: Lexicon, recipe: Recipe, iteration: int) -> _Drawn:
    def draw(keys: np.ndarray, purpose: str) -> np.ndarray:
        return uniform(keys, salt(SEED, iteration, purpose))

    ids, rules = _change_words(words, lexicon, recipe, draw)
    spaces = words.spaces | _would_run_together(words, ids, rules)

    size = draw(words.draw_keys, "ngram size")
    position = draw(words.draw_keys, "ngram place")
    cut = draw(words.draw_keys, "ngram") < recipe.p_ngram
    lengths = np.minimum(1 + (size * (recipe.ngram_max or 1)).astype(np.int64), words.lengths)
    starts = (position * (words.lengths - lengths + 1)).astype(np.int64)
    starts, lengths = np.where(cut, starts, 0), np.where(cut, lengths, words.lengths)
    inside = words.positions - starts[words.rows]
    chosen = (inside >= 0) & (inside < lengths[words.rows])
    return _Drawn(
        ids=ids[chosen],
        rules=rules[chosen],
        spaces=spaces[chosen],
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        ngram_starts=starts,
        ngram_lengths=np.where(cut, lengths, 0),
    )


def _change_words(words: _BlockWords, lexicon: Lexicon, recipe: Recipe, draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """Return all words' ids after the rules for single words, and the rule of each."""
    x = draw(words.counters, "rule")
    rules = np.zeros(len(x), np.int8)
    rules[x < recipe.p_mask] = MASKED
    ids = np.where(rules == MASKED, words.mask_id, words.ids)
    chosen = np.nonzero((x >= recipe.p_mask) & (x < recipe.p_mask + recipe.p_pos))[0]
    chosen, drawn = _replacements(words, lexicon, chosen, draw(words.counters[chosen], "replacement"))
    ids[chosen], rules[chosen] = drawn, REPLACED
    return ids, rules


def _unchanged(words: _BlockWords) -> _Drawn:
    none = np.zeros(len(words.lengths), np.int64)
    rules = np.zeros(len(words.ids), np.int8)
    return _Drawn(words.ids, rules, words.spaces, words.offsets, none, none)


def _replacements(
    words: _BlockWords, lexicon: Lexicon, chosen: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw *another* word of the same tag from the tag's unigram distribution.

    The word itself is excluded by skipping over its own counts; a word that is the only one of its
    tag, or whose tag the lexicon lacks, is kept.  Returns the words replaced and their new ids.
    """
    has_tag = words.tags[chosen] >= 0
    chosen, u = chosen[has_tag], u[has_tag]
    tags, entries = words.tags[chosen], words.entries[chosen]
    low = lexicon.cumulative[lexicon.starts[tags]]
    high = lexicon.cumulative[lexicon.starts[tags + 1]]
    own_low = np.where(entries >= 0, lexicon.cumulative[entries], high)
    own_count = np.where(entries >= 0, lexicon.cumulative[entries + 1] - own_low, 0)
    total = high - low - own_count
    ticket = low + (u * total).astype(np.int64)
    ticket += np.where(ticket >= own_low, own_count, 0)
    possible = total > 0
    drawn = np.searchsorted(lexicon.cumulative, ticket[possible], side="right") - 1
    return chosen[possible], drawn


def _would_run_together(words: _BlockWords, ids: np.ndarray, rules: np.ndarray) -> np.ndarray:
    # "do|n't" is written without a space.  Where one half was changed ("do|quickly"), the teacher
    # would read one unknown word; a space keeps the two apart.
    changed = rules != KEPT
    touching = np.zeros(len(ids), bool)
    touching[:-1] = (
        (changed[:-1] | changed[1:])
        & (words.rows[:-1] == words.rows[1:])
        & words.strings.closes[ids[:-1]]
        & words.strings.opens[ids[1:]]
    )
    return touching


def _first_occurrences(keys: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the rows, in order, whose key is not in ``seen`` (sorted) nor in an earlier row."""
    first = np.unique(keys, return_index=True)[1]
    first.sort()
    index = np.minimum(np.searchsorted(seen, keys[first]), len(seen) - 1)
    return first[seen[index] != keys[first]]


def _render(words: _BlockWords, drawn: _Drawn, rows: np.ndarray) -> dict[str, pa.Array]:
    lengths = np.diff(drawn.offsets)
    chosen = np.zeros(len(lengths), bool)
    chosen[rows] = True
    inside = np.repeat(chosen, lengths)
    ids, rules, spaces = drawn.ids[inside], drawn.rules[inside], drawn.spaces[inside].copy()
    offsets = np.concatenate([[0], np.cumsum(lengths[rows])])
    spaces[offsets[1:] - 1] = False
    arrow_offsets = pa.array(offsets, pa.int32())
    pieces = words.pieces.take(pa.array(ids + spaces * len(words.strings.plain)))
    plain = words.strings.plain.take(pa.array(ids))
    columns = {
        "text": pc.binary_join(pa.ListArray.from_arrays(arrow_offsets, pieces), ""),
        "words": pa.ListArray.from_arrays(arrow_offsets, plain),
        "rules": pa.ListArray.from_arrays(arrow_offsets, pa.array(rules)),
        "ngram_start": pa.array(drawn.ngram_starts[rows].astype(np.int32)),
        "ngram_length": pa.array(drawn.ngram_lengths[rows].astype(np.int32)),
    }
    return {name + words.side: column for name, column in columns.items()}


def _originals(examples: pa.Table) -> pa.Table:
    rows = examples.num_rows
    none = pa.array(np.zeros(rows, np.int32))
    columns = {
        "key": examples["key"],
        "example": examples["key"],
        "iteration": pa.array(np.zeros(rows, np.int32)),
        "label": examples["label"],
    }
    endings = column_suffixes(examples)
    for side in endings:
        lengths = pc.list_value_length(examples[f"words{side}"].combine_chunks()).to_numpy()
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        zeros = pa.array(np.zeros(int(lengths.sum()), np.int8))
        columns |= {
            f"text{side}": examples[f"text{side}"],
            f"words{side}": examples[f"words{side}"],
            f"rules{side}": pa.ListArray.from_arrays(offsets, zeros),
            f"ngram_start{side}": none,
            f"ngram_length{side}": none,
        }
    label = examples.schema.field("label").type
    return pa.table(columns, schema=transfer_schema(len(endings) == 2, label))


def _count(table: pa.Table, duplicates: int, over_cap: int) -> Counts:
    counts = Counts(rows=table.num_rows, duplicates=duplicates, over_cap=over_cap)
    for side in column_suffixes(table):
        rules = table[f"rules{side}"].combine_chunks().flatten().to_numpy()
        counts.masked += int((rules == MASKED).sum())
        counts.replaced += int((rules == REPLACED).sum())
        counts.ngrams += int((table[f"ngram_length{side}"].to_numpy() > 0).sum())
    return counts
