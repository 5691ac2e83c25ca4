"""Small Wikipedias: dumps, and sentences that every filter lets through."""

import bz2
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline_lib.params import Wikipedia

PAGE = """  <page>
    <title>{title}</title>
    <ns>{ns}</ns>
    <id>{id}</id>
{redirect}    <revision>
      <id>1</id>
      <text bytes="9" xml:space="preserve">{text}</text>
    </revision>
  </page>
"""
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">
  <siteinfo>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="10" case="first-letter">Template</namespace>
    </namespaces>
  </siteinfo>
"""
NAMES = ["Aldo", "Berta", "Carl", "Dora", "Emil", "Frida", "Georg", "Hanna", "Ivo", "Jana"]
THINGS = ["river", "castle", "bridge", "garden", "market", "harbour", "tower", "mill", "road"]


def page(id: int, title: str, text: str, ns: int = 0, redirect: bool = False) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    mark = '    <redirect title="Elsewhere" />\n' if redirect else ""
    return PAGE.format(id=id, title=title, text=escaped, ns=ns, redirect=mark)


def dump(pages: Sequence[str]) -> bytes:
    return (HEAD + "".join(pages) + "</mediawiki>\n").encode()


def sentence(number: int) -> str:
    """Return a sentence that occurs once, and that the filters let through."""
    name, thing = NAMES[number % len(NAMES)], THINGS[number % len(THINGS)]
    return f"In the year {number} the people of {name} built a {thing} for the town and its guests."


def article_text(number: int, sentences: int = 20) -> str:
    """Return an article of ``sentences`` sentences of its own in paragraphs of five."""
    own = [sentence(1000 + number * sentences + i) for i in range(sentences)]
    return "\n\n".join(" ".join(own[i : i + 5]) for i in range(0, sentences, 5))


def write_dump(path: Path, articles: int, sentences: int = 20) -> Path:
    pages = [page(10 + number, f"Place {number}", article_text(number, sentences)) for number in range(articles)]
    content = dump(pages)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bz2.compress(content[:5000]) + bz2.compress(content[5000:]))
    return path


def wikipedia(**changes: Any) -> Wikipedia:
    """Return parameters for ``wiki.xml.bz2``: keyword arguments replace keys."""
    values = {
        "source": {"kind": "files", "files": ["wiki.xml.bz2"], "form": "dump"},
        "splitter": {"engine": "sentencizer", "model": None},
        "sentences": 100,
        "validation": {"share": 0.2, "sentences": 30},
        "shard_rows": 40,
    }
    return Wikipedia.model_validate(values | changes)
