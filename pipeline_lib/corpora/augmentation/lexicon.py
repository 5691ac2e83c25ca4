"""The POS lexicon: how often each word occurs under each part-of-speech tag.

Replacement draws from it (Tang et al. 2019, section 3.3).  It is an input of augmentation with its own digest: one
new word changes its tag's distribution, and so the replacements drawn for that tag.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_file
from pipeline_lib.base.hashing import word_keys
from pipeline_lib.shards.shard_sets import read_shard

SCHEMA = pa.schema([("tag", pa.string()), ("word", pa.string()), ("count", pa.int64())])


def count_words(words: pa.Array, tags: pa.Array) -> pa.Table:
    """Count (tag, word) pairs.

    :param words: list<string>, one list per sentence; :param tags: the same shape.
    :returns: columns tag, word, count, sorted by tag and word: equal data give equal bytes.
    """
    pairs = pa.table({"tag": pc.list_flatten(tags), "word": pc.list_flatten(words)})
    counted = pairs.group_by(["tag", "word"]).aggregate([([], "count_all")])
    counted = counted.rename_columns(["tag", "word", "count"]).select(SCHEMA.names)
    return counted.sort_by([("tag", "ascending"), ("word", "ascending")]).cast(SCHEMA)


@dataclass(frozen=True)
class WordStrings:
    """Words for rendering: bare, with a trailing space, and what characters they start and end in.

    :ivar plain: the words; :ivar spaced: the same with a trailing space.
    :ivar opens: whether a word begins with a letter or digit; :ivar closes: whether it ends in one.
    """

    plain: pa.Array
    spaced: pa.Array
    opens: np.ndarray
    closes: np.ndarray

    @classmethod
    def of(cls, words: Sequence[str]) -> "WordStrings":
        """Classify each word's ends."""
        return cls(
            pa.array(words, pa.string()),
            pa.array([f"{word} " for word in words], pa.string()),
            np.fromiter((word[0].isalnum() for word in words), bool, len(words)),
            np.fromiter((word[-1].isalnum() for word in words), bool, len(words)),
        )

    def then(self, other: "WordStrings") -> "WordStrings":
        """Return these words followed by the other's."""
        return WordStrings(
            pa.concat_arrays([self.plain, other.plain]),
            pa.concat_arrays([self.spaced, other.spaced]),
            np.concatenate([self.opens, other.opens]),
            np.concatenate([self.closes, other.closes]),
        )


@dataclass(frozen=True)
class Lexicon:
    """The unigram distribution within each tag, laid out for vectorised sampling.

    Words of one tag are contiguous; tag t owns entries ``starts[t]:starts[t + 1]``.

    :ivar words: word of each entry.
    :ivar tag_numbers: tag name to t.
    :ivar starts: int64, shape (tags + 1,).
    :ivar cumulative: int64, shape (entries + 1,): counts before each entry, over all tags.
    :ivar digest: SHA-256 of the file.
    """

    words: list[str]
    tag_numbers: dict[str, int]
    starts: np.ndarray
    cumulative: np.ndarray
    digest: str

    @cached_property
    def keys(self) -> np.ndarray:
        """Content key of each entry's word, uint64."""
        return word_keys(self.words)

    @cached_property
    def strings(self) -> "WordStrings":
        """Each entry's word, as rendering needs it."""
        return WordStrings.of(self.words)

    @cached_property
    def pairs(self) -> pa.Array:
        """Each entry as ``tag TAB word``."""
        owners = np.repeat(np.arange(len(self.tag_numbers)), np.diff(self.starts))
        tags = pa.array(list(self.tag_numbers)).take(pa.array(owners))
        return pc.binary_join_element_wise(tags, pa.array(self.words), "\t")

    def entries(self, words: pa.Array, tags: pa.Array) -> np.ndarray:
        """Return the entry number of each (word, tag), int64, -1 where the lexicon has none."""
        asked = pc.binary_join_element_wise(tags.cast(pa.string()), words.cast(pa.string()), "\t")
        numbers = pc.fill_null(pc.index_in(asked, value_set=self.pairs), -1)
        return numbers.to_numpy().astype(np.int64)


def read_lexicon(path: Path) -> Lexicon:
    """Read a lexicon file."""
    table = read_shard(path)
    if not table.num_rows:
        raise PotstillError(f"{path}: the training set has no word. Correct the task's source.")
    tags = table["tag"].to_pylist()
    names = sorted(set(tags))
    counts = table["count"].to_numpy()
    sizes = np.array([tags.count(name) for name in names])
    return Lexicon(
        words=table["word"].to_pylist(),
        tag_numbers={name: number for number, name in enumerate(names)},
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        cumulative=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        digest=sha256_file(path),
    )
