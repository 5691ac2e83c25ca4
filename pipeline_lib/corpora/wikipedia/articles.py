"""Articles from Wikipedia's various file formats, one at a time, whatever the size of the file.

A file is read as it is: compressed (bzip2 of one stream or many, or gzip) or not.  Pages that are
not articles (talk, templates, redirects) are left out and counted.
"""

import bz2
import gzip
import html
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import IO, Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import has_surrogates
from pipeline_lib.corpora.wikipedia.dumps import DumpParser, Page

LONGEST_ARTICLE = 20 << 20
"""Characters.  Wikipedia allows a tenth of this; a few compressed bytes can hold any multiple."""
LONGEST_LINE = 1 << 24
"""Characters: a file without line ends is read in pieces of this length."""
PIECE = 1 << 16
"""Bytes of a dump that are decompressed at a time."""
TEXT_CHARACTERS = 1 << 16
"""A plain text without empty lines is cut into articles of at least this many characters."""

Skipped = Counter[str]
"""What was left out while reading, by reason: namespace, redirect, empty, too long."""


@dataclass(frozen=True, slots=True)
class Article:
    """One article: its id and title, and its text as given in the source."""

    id: str
    title: str
    text: str


def read_articles(file: IO[bytes], name: str, form: str, skipped: Skipped) -> Iterator[Article]:
    """Yield the articles of one file in its order; memory does not grow with the file.

    :param file: opened in binary mode, with ``peek``; a parquet file must be seekable.
    :param name: starts messages, and the ids of a plain text's articles.
    :param form: ``dump`` (MediaWiki XML) | ``extracted`` (WikiExtractor) | ``parquet`` (columns id,
        title, text) | ``text`` (a paragraph per line, an empty line after each article).
    :param skipped: counts what was left out.
    """
    try:
        for article in _READERS[form](_unpacked(file), name, skipped):
            if is_usable(article, skipped):
                yield article
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        raise PotstillError(f"{name}: truncated or damaged ({error}). Download it again.") from error


def is_usable(article: Article, skipped: Skipped) -> bool:
    """Return whether an article has text, and no more than one can have; if not, count it."""
    if len(article.text) > LONGEST_ARTICLE:
        skipped["too long"] += 1
        return False
    if not article.text.strip():
        skipped["empty"] += 1
        return False
    return True


def _unpacked(file: Any) -> IO[bytes]:
    start = file.peek(3)[:3]
    if start == b"BZh":
        return bz2.open(file)
    return gzip.open(file) if start[:2] == b"\x1f\x8b" else file


def _read_dump(file: IO[bytes], name: str, skipped: Skipped) -> Iterator[Article]:
    pages = DumpParser(name, LONGEST_ARTICLE)
    while piece := file.read(PIECE):
        for page in pages.feed(piece):
            article = _article_of(page, pages.namespaces, skipped)
            if article is not None:
                yield article
    pages.close()


def _article_of(page: Page, namespaces: set[str], skipped: Skipped) -> Article | None:
    title = page.fields.get("title", "")
    number = page.fields.get("ns")
    text = page.fields.get("revision/text", "")
    # Dumps before 2010 do not number the namespace: the title begins with its name.
    apart = number != "0" if number is not None else title.partition(":")[0] in namespaces
    if apart:
        skipped["namespace"] += 1
    elif "redirect" in page.fields or _REDIRECT.match(text):
        skipped["redirect"] += 1
    elif page.too_long:
        skipped["too long"] += 1
    else:
        return Article(page.fields.get("id", ""), title, text)
    return None


_REDIRECT = re.compile(r"\s*#redirect\b", re.IGNORECASE)
_DOC = re.compile(r"\s*<doc\b(.*)>\s*")
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*(["'])(.*?)\2(?=\s*$|\s+[\w:-]+\s*=\s*["'])""")
"""A title may contain quotes: its value ends before another attribute, or at the end."""


def _lines(file: IO[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) without line ends."""
    text = io.TextIOWrapper(file, "utf-8-sig", newline="\n")
    number = 0
    try:
        for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE), ""), 1):
            yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise PotstillError(
            f"{name}: not UTF-8, soon after line {number}. Save it as UTF-8, or correct "
            "`wikipedia.source.form` in params.yaml."
        ) from error


def _read_extracted(file: IO[bytes], name: str, skipped: Skipped) -> Iterator[Article]:
    lines = _lines(file, name)
    for number, line in lines:
        if line.startswith("{"):
            yield _json_article(line, f"{name}: line {number}")
        elif opened := _DOC.fullmatch(line):
            about = {key: value for key, _, value in _ATTRIBUTE.findall(opened[1])}
            title = html.unescape(about.get("title", ""))
            body = _body(lines, title, name)
            if body is None:
                skipped["too long"] += 1
            else:
                yield Article(about.get("id", f"{name}:{number}"), title, html.unescape(body))
        elif line.strip():
            raise PotstillError(
                f"{name}: line {number} is neither JSON nor within <doc> … </doc>, as in "
                "WikiExtractor's files. Correct `wikipedia.source` in params.yaml."
            )


def _body(lines: Iterator[tuple[int, str]], title: str, name: str) -> str | None:
    """Return the lines up to ``</doc>`` but a repeated title; None if they are longer than an article can be."""
    body: list[str] = []
    length = 0
    for _, line in lines:
        if line.rstrip().endswith("</doc>"):
            body += filter(None, [line.rstrip().removesuffix("</doc>")])
            if length > LONGEST_ARTICLE:
                return None
            repeats = bool(body) and html.unescape(body[0]).strip() == title
            return "\n".join(body[1:] if repeats else body)
        if _DOC.fullmatch(line):
            break
        length += len(line) + 1
        if length <= LONGEST_ARTICLE:
            body.append(line)
    raise PotstillError(f"{name}: the article {title!r} has no </doc>: truncated. Download it again.")


def _json_article(line: str, where: str) -> Article:
    if len(line) >= LONGEST_LINE:
        raise PotstillError(f"{where} is longer than {LONGEST_LINE:,} characters, which no article is. Remove it.")
    try:
        fields = json.loads(line)
        article = Article(_id(fields["id"]), fields["title"], fields["text"])
    except (ValueError, KeyError, RecursionError) as error:
        raise PotstillError(
            f"{where}: no JSON object with id, title and text ({error}). Get the file again."
        ) from error
    _check_texts(article, where)
    return article


def _check_texts(article: Article, where: str) -> None:
    for name in ("title", "text"):
        value = getattr(article, name)
        if not isinstance(value, str):
            raise PotstillError(f"{where}: {name} is {value!r:.60}, not a text. Correct it or take the article out.")
        if has_surrogates(value):
            raise PotstillError(
                f"{where}: {name} holds half a surrogate pair, which is no character. Correct it "
                "or take the article out."
            )


def _read_parquet(file: IO[bytes], name: str, skipped: Skipped) -> Iterator[Article]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.ParquetFile(file)
        missing = {"id", "title", "text"} - set(rows.schema_arrow.names)
        if missing:
            raise PotstillError(
                f"{name}: no column {min(missing)!r}; id, title and text are read. Correct "
                "`wikipedia.source` in params.yaml."
            )
        batches = rows.iter_batches(64, columns=["id", "title", "text"])
        records = (row for batch in batches for row in batch.to_pylist())
        for number, row in enumerate(records, 1):
            yield article_of_row(row, f"{name}: row {number}")
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise PotstillError(
            f"{name}: truncated or invalid Parquet file ({error}). Download it again, or correct "
            "`wikipedia.source.form` in params.yaml."
        ) from error


def article_of_row(row: dict[str, Any], where: str) -> Article:
    """Return the article of a row with id, title and text; nulls become empty strings."""
    title, text = ("" if row[name] is None else row[name] for name in ("title", "text"))
    try:
        article = Article(_id(row["id"]), title, text)
    except ValueError as error:
        raise PotstillError(f"{where}: {error}. Give each article one of its own.") from error
    _check_texts(article, where)
    return article


def _id(value: Any) -> str:
    if value is None:
        raise ValueError("no id")
    return str(value)


def _read_text(file: IO[bytes], name: str, skipped: Skipped) -> Iterator[Article]:
    title, count = PurePath(name).stem, 0
    lines: list[str] = []
    length = 0
    for number, line in _lines(file, name):
        if number == 1 and line.lstrip().startswith(("<mediawiki", "<doc ")):
            raise PotstillError(
                f"{name}: begins with {line.lstrip()[:10]!r}, so it is not plain text. Correct "
                "`wikipedia.source.form` in params.yaml."
            )
        if line.strip():
            lines.append(line)
            length += len(line)
        if lines and (not line.strip() or length >= TEXT_CHARACTERS):
            yield Article(f"{name}:{count}", title, "\n".join(lines))
            count, lines, length = count + 1, [], 0
    if lines:
        yield Article(f"{name}:{count}", title, "\n".join(lines))


_READERS: dict[str, Callable[[IO[bytes], str, Skipped], Iterator[Article]]] = {
    "dump": _read_dump,
    "extracted": _read_extracted,
    "parquet": _read_parquet,
    "text": _read_text,
}
