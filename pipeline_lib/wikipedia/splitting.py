"""From a chunk of articles to the sentences that are worth keeping, through the store.

A chunk's sentences are found by its content and all settings, so that a restart splits only the
chunks that were in flight, and another number of sentences none that were split before.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import sha256_json
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.params import Keep, Splitter, Wikipedia
from pipeline_lib.storage.fingerprint import code_fingerprint
from pipeline_lib.storage.store import Store
from pipeline_lib.wikipedia.articles import Article, Skipped
from pipeline_lib.wikipedia.chunks import Chunk
from pipeline_lib.wikipedia.markup import plain_paragraphs, wikitext_paragraphs
from pipeline_lib.wikipedia.sentences import (
    LONGEST_PARAGRAPH,
    SentenceSplitter,
    fault_of,
    load_splitter,
)

SCHEMA = pa.schema(
    [
        ("key", pa.uint64()),
        ("text", pa.string()),
        ("article", pa.string()),
        ("title", pa.string()),
        ("position", pa.int32()),
    ]
)
"""``key`` is the text's hash; ``position`` the sentence's number in its article, where the dropped
ones and each paragraph's end count too: positions that differ by one are true neighbours."""


@dataclass(frozen=True)
class SentencePass:
    """How chunks become sentences: all that the result depends on besides the chunk.

    :ivar version: of the libraries and models.
    """

    splitter: Splitter
    keep: Keep
    version: dict[str, str]

    @classmethod
    def of(cls, params: Wikipedia) -> "SentencePass":
        """Load the splitter, which forked workers then share, and name its version."""
        import mwparserfromhell

        version = _loaded(params.splitter).version
        parser = {"mwparserfromhell": mwparserfromhell.__version__}
        return cls(params.splitter, params.keep, version | parser)

    def made_from(self) -> dict[str, Any]:
        """Return the settings that determine the sentences, for keys and manifests."""
        return {
            "splitter": self.splitter.model_dump(),
            "keep": self.keep.model_dump(),
            "version": self.version,
            "code": code_fingerprint(__name__),
        }

    def key(self, digest: str) -> str:
        """Return the store key of the sentences of the chunk with this digest."""
        return sha256_json({**self.made_from(), "chunk": digest})

    def compute(self, chunk: Chunk) -> pa.Table:
        """Return the sentences worth keeping; the counts stand in the schema's metadata."""
        counts: Counter[str] = Counter(articles=len(chunk.articles))
        dropped: Counter[str] = Counter()
        rows = [row for article in chunk.articles for row in self._rows(article, chunk, dropped)]
        counts["sentences"] = len(rows) + dropped.total() - dropped["paragraph too long"]
        columns = list(zip(*rows, strict=True)) or [[], [], [], []]
        arrays = [pa.array(string_keys(columns[0]))]
        arrays += [
            pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types[1:], strict=True)
        ]
        metadata = {b"counts": json.dumps([counts, dropped], sort_keys=True).encode()}
        return pa.table(arrays, schema=SCHEMA.with_metadata(metadata))

    def _rows(
        self, article: Article, chunk: Chunk, dropped: Counter[str]
    ) -> Iterator[tuple[str, str, str, int]]:
        paragraphs = _paragraphs(article, chunk.wikitext)
        short = [text for text in paragraphs if len(text) <= LONGEST_PARAGRAPH]
        dropped["paragraph too long"] += len(paragraphs) - len(short)
        position = 0
        for sentences in _loaded(self.splitter).split(short):
            for sentence in sentences:
                fault = fault_of(sentence, self.keep)
                if fault is None:
                    yield sentence, article.id, article.title, position
                else:
                    dropped[fault] += 1
                position += 1
            position += 1


def _paragraphs(article: Article, wikitext: bool) -> list[str]:
    if not wikitext:
        return plain_paragraphs(article.text)
    try:
        return wikitext_paragraphs(article.text)
    except DistilleryError as error:
        raise DistilleryError(
            f"article {article.id} ({article.title!r}): {error}. Take it out of the dump."
        ) from error


@lru_cache(maxsize=1)
def _loaded(splitter: Splitter) -> SentenceSplitter:
    return load_splitter(splitter)


@dataclass(frozen=True)
class SplitChunk:
    """A chunk whose sentences are in the store under ``key``; ``reused`` if they were before."""

    key: str
    digest: str
    skipped: Skipped
    reused: bool


def split_chunk(sentence_pass: SentencePass, chunk: Chunk) -> SplitChunk:
    """Split a chunk, unless the store has its sentences."""
    store, digest = Store("sentences"), chunk.digest
    key = sentence_pass.key(digest)
    reused = store.find(key) is not None
    if not reused:
        store.add(key, sentence_pass.compute(chunk))
    return SplitChunk(key, digest, chunk.skipped, reused)


def counts_of(rows: pa.Table) -> tuple[dict[str, int], dict[str, int]]:
    """Return what a stored chunk holds in articles and sentences, and what was dropped, and why."""
    read, dropped = json.loads(rows.schema.metadata[b"counts"])
    return read, dropped
