"""The pass from a chunk of articles to the sentences that are worth keeping, however many of them a set takes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.corpora.wikipedia.articles import Article
from pipeline_lib.corpora.wikipedia.chunks import Chunk
from pipeline_lib.corpora.wikipedia.markup import plain_paragraphs, wikitext_paragraphs
from pipeline_lib.corpora.wikipedia.sentences import LONGEST_PARAGRAPH, fault_of, load_splitter
from pipeline_lib.params import Splitter, Wikipedia
from pipeline_lib.shards.engine.passes import Output, ShardPass

SCHEMA = pa.schema(
    [
        ("key", pa.uint64()),
        ("text", pa.string()),
        ("article", pa.string()),
        ("title", pa.string()),
        ("position", pa.int32()),
    ]
)
"""``key`` is the text's hash; ``position`` the sentence's number in its article, counting dropped
ones and each paragraph's end too: positions that differ by one are true neighbours."""


@dataclass(frozen=True)
class SentencePass(ShardPass):
    """How chunks become sentences: all that the result depends on besides the chunk."""

    kind: ClassVar[str] = "sentences"
    row_for_row: ClassVar[bool] = False
    splitter: Splitter

    @classmethod
    def of(cls, params: Wikipedia) -> "SentencePass":
        """Take the settings, and load the splitter, which forked workers then share."""
        sentence_pass = cls(params.splitter)
        sentence_pass.load()
        return sentence_pass

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the sentences besides the chunk, the code and the libraries."""
        return {"splitter": self.splitter.model_dump(), "version": load_splitter(self.splitter).version}

    @property
    def libraries(self) -> tuple[str, ...]:
        """The distribution that determines how markup is read."""
        return ("mwparserfromhell",)

    def load(self) -> None:
        """Load the splitter."""
        load_splitter(self.splitter)

    def outputs(self, chunk: Chunk) -> Iterator[Output]:
        """Yield the sentences worth keeping, and the counts of what was read and dropped."""
        dropped: Counter[str] = Counter()
        rows = [row for article in chunk.articles for row in self._rows(article, chunk, dropped)]
        split = len(rows) + dropped.total() - dropped["paragraph too long"]
        read = {"articles": len(chunk.articles), "sentences": split}
        columns = list(zip(*rows, strict=True)) or [[], [], [], []]
        arrays = [pa.array(string_keys(columns[0]))]
        arrays += [pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types[1:], strict=True)]
        yield pa.table(arrays, schema=SCHEMA), {"read": read, "dropped": dict(dropped)}

    def _rows(self, article: Article, chunk: Chunk, dropped: Counter[str]) -> Iterator[tuple[str, str, str, int]]:
        paragraphs = _paragraphs(article, chunk.wikitext)
        short = [text for text in paragraphs if len(text) <= LONGEST_PARAGRAPH]
        dropped["paragraph too long"] += len(paragraphs) - len(short)
        # spaCy's pipelines are named by their language; a splitter without one is not told which it is.
        is_english = self.splitter.model is None or self.splitter.model.startswith("en_")
        position = 0
        for sentences in load_splitter(self.splitter).split(short):
            for sentence in sentences:
                fault = fault_of(sentence, is_english)
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
    except PotstillError as error:
        raise PotstillError(f"article {article.id} ({article.title!r}): {error}. Remove it from the dump.") from error
