"""A pair task made of Wikipedia's sentences: are two of them adjacent, or not.

It needs no human labels: it is self-supervised, and shows how well a model knows what belongs together.  Positive
pairs are neighbours within one paragraph.  A negative has a positive's first sentence, and a sentence that follows
another one elsewhere, in the same article or a different one; so neither sentence reveals the label on its own.
Articles are split between train, dev and test: none is shared.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.hashing import salt, splitmix64, string_keys, uniform
from pipeline_lib.params import NeighbourPairs
from pipeline_lib.shards.shard_sets import ShardSet

APART, NEIGHBOURS = "apart", "neighbours"
SEED = 1
SPLITS = ("train", "dev", "test")
REMEDY = "Lower `pairs`, or split more articles (`wikipedia.sentences`)."


def write_pairs(source: NeighbourPairs, sentences: ShardSet, target: Path, where: str) -> None:
    """Write ``target/{train,dev,test}.parquet`` with the columns first, second and label.

    Hashes of sentences and article ids decide everything, so that a larger ``pairs`` only adds pairs.

    :param sentences: the training set of ``split_wikipedia``.
    :param where: the key of params.yaml, for messages.
    """
    table = sentences.to_table()
    corpus = _Corpus.of(table, source)
    firsts = _choose(corpus, source, where)
    others = _not_following(corpus, firsts, source, where)
    first = np.concatenate([firsts, firsts])
    second = np.concatenate([firsts + 1, others])
    labels = np.repeat([NEIGHBOURS, APART], len(firsts))
    # Shuffled: the two pairs of a first sentence are apart, and the order reveals nothing.
    mixed = splitmix64(corpus.keys[first] + corpus.keys[second] ^ salt("order", SEED))
    order = np.argsort(mixed, kind="stable")
    for number, name in enumerate(SPLITS[: len(source.files)]):
        rows = order[corpus.splits[first[order]] == number]
        if not len(rows):
            raise PotstillError(
                f"{where}: no pair is left for {name}. Raise its share or `pairs`, or split more "
                "articles (`wikipedia.sentences`)."
            )
        pairs = {"first": table["text"].take(first[rows]), "label": labels[rows]}
        pairs["second"] = table["text"].take(second[rows])
        with atomic_path(target / f"{name}.parquet") as temporary:
            pq.write_table(pa.table(pairs), temporary)


@dataclass(frozen=True)
class _Corpus:
    """All sentences, in the articles' order, as arrays of one element per row.

    ``articles`` numbers the articles, ``positions`` are those within them, ``splits`` is 0, 1 or 2
    for train, dev and test.  ``firsts`` are the rows that have a neighbour in the next row.
    """

    keys: np.ndarray
    articles: np.ndarray
    positions: np.ndarray
    splits: np.ndarray
    firsts: np.ndarray

    @classmethod
    def of(cls, table: pa.Table, source: NeighbourPairs) -> "_Corpus":
        encoded = table["article"].combine_chunks().dictionary_encode()
        articles = encoded.indices.to_numpy().astype(np.int64)
        drawn = uniform(string_keys(encoded.dictionary.to_pylist()), salt("split", SEED))
        ends = np.array([source.dev, source.dev + source.test])
        splits = np.array([1, 2, 0])[np.searchsorted(ends, drawn, side="right")]
        positions = table["position"].to_numpy()
        near = (np.diff(positions) == 1) & (np.diff(articles) == 0)
        keys = table["key"].to_numpy()
        return cls(keys, articles, positions, splits[articles], np.flatnonzero(near))


def _choose(corpus: _Corpus, source: NeighbourPairs, where: str) -> np.ndarray:
    """Return the first sentences' rows of the positive pairs: those with the lowest hashes."""
    positives = source.pairs // 2
    if len(corpus.firsts) < positives:
        raise PotstillError(
            f"{where}.pairs: {source.pairs:,} pairs need {positives:,} neighbours, data/wikipedia has "
            f"{len(corpus.firsts):,}. {REMEDY}"
        )
    hashes = splitmix64(corpus.keys[corpus.firsts] ^ salt("choose", SEED))
    return corpus.firsts[np.argsort(hashes, kind="stable")[:positives]]


def _not_following(corpus: _Corpus, firsts: np.ndarray, source: NeighbourPairs, where: str) -> np.ndarray:
    """Return for each first row one that follows another row and is not its neighbour."""
    seconds = corpus.firsts + 1
    # Rows of one article become contiguous, whatever the order of the input.
    by_article = seconds[np.argsort(corpus.articles[seconds], kind="stable")]
    starts = np.searchsorted(corpus.articles[by_article], np.arange(corpus.articles.max(initial=0) + 2))
    by_split = [by_article[corpus.splits[by_article] == number] for number in range(len(SPLITS))]
    draws = splitmix64(corpus.keys[firsts] ^ salt("negative", SEED))
    inside = uniform(corpus.keys[firsts], salt("same article", SEED)) < source.same_article
    partners = []
    for row, draw, same in zip(firsts.tolist(), draws.tolist(), inside.tolist(), strict=True):
        article = corpus.articles[row]
        candidates = by_article[starts[article] : starts[article + 1]]
        other = None
        if same:
            distant = candidates[np.abs(corpus.positions[candidates] - corpus.positions[row]) > 1]
            other = distant[draw % len(distant)] if len(distant) else None
        partners.append(_elsewhere(corpus, row, draw, by_split, where) if other is None else other)
    return np.array(partners, np.int64)


def _elsewhere(corpus: _Corpus, row: int, draw: int, by_split: list[np.ndarray], where: str) -> int:
    """Return a row of another article of the same split."""
    rows = by_split[corpus.splits[row]]
    # The rows of its own article are contiguous: the draw skips them.
    bounds = np.searchsorted(corpus.articles[rows], [corpus.articles[row], corpus.articles[row] + 1])
    others = len(rows) - (bounds[1] - bounds[0])
    if not others:
        raise PotstillError(
            f"{where}: {SPLITS[corpus.splits[row]]} has a single article, so no negatives from another one. {REMEDY}"
        )
    index = draw % int(others)
    return int(rows[index if index < bounds[0] else index + bounds[1] - bounds[0]])
