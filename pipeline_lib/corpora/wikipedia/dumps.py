"""Pages of a MediaWiki dump, as its bytes arrive; memory grows with neither dump nor page.

Only the fields of a page that are used are kept, only the last of its revisions, and no more than a
given length of a field: a bzip2 file of a few hundred bytes can hold a page of gigabytes.
"""

from dataclasses import dataclass, field
from xml.parsers import expat

from pipeline_lib.base.errors import PotstillError

LONGEST_TAG = 1 << 20
"""Maximum bytes of one tag or comment, which the parser holds until it ends."""
DEEPEST = 100
"""Maximum depth of nested elements; a dump has six."""

FIELDS = ("id", "title", "ns", "redirect", "revision/text")


@dataclass
class Page:
    """One page: its fields by their path below ``<page>``, and which of them were truncated."""

    fields: dict[str, str] = field(default_factory=dict)
    too_long: set[str] = field(default_factory=set)


class DumpParser:
    """Parses the bytes of a dump piece by piece, and returns its pages as they end.

    :ivar name: of the file, for messages.
    :ivar longest: characters of a field; the rest is dropped, and the page records that.
    :ivar namespaces: the names of all namespaces except the articles'.
    """

    def __init__(self, name: str, longest: int) -> None:
        self.name = name
        self.longest = longest
        self.namespaces: set[str] = set()
        self._path: list[str] = []
        self._page = Page()
        self._done: list[Page] = []
        self._text: list[str] | None = None
        self._length = self._fed = 0
        self._is_article_namespace = True
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def feed(self, piece: bytes) -> list[Page]:
        """Return the pages that end in ``piece``, in the dump's order."""
        self._parse(piece, False)
        self._fed += len(piece)
        if self._fed - self._parser.CurrentByteIndex > LONGEST_TAG + len(piece):
            raise self._refused(f"a tag or comment is longer than {LONGEST_TAG:,} bytes")
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        """Signal the end of the dump."""
        self._parse(b"", True)

    def _parse(self, piece: bytes, last: bool) -> None:
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            raise self._refused(str(error)) from error

    def _refused(self, reason: str) -> PotstillError:
        return PotstillError(
            f"{self.name}: not a MediaWiki dump, or truncated ({reason}). Download it again, or correct "
            "`wikipedia.source.form` in params.yaml."
        )

    def _doctype(self, *_: object) -> None:
        # Its entities could expand to any length of text.
        raise self._refused("it has a document type, a dump has none")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if not self._path and tag != "mediawiki":
            raise PotstillError(
                f"{self.name}: its first element is <{tag}>, a MediaWiki dump's is <mediawiki>. "
                "Correct `wikipedia.source` in params.yaml."
            )
        self._path.append(tag)
        if len(self._path) > DEEPEST:
            raise self._refused(f"elements are nested more than {DEEPEST} deep")
        if tag == "page":
            self._page = Page()
        elif tag == "revision":
            # A dump with full history has thousands of them, oldest first; the last one counts.
            self._page.fields.pop("revision/text", None)
            self._page.too_long.discard("revision/text")
        self._is_article_namespace = attributes.get("key", "0") == "0"
        is_read = self._field() is not None or tag == "namespace"
        self._text, self._length = ([] if is_read else None), 0

    def _field(self) -> str | None:
        """Return the open element's path below the page, if it is a field."""
        if self._path[1:2] != ["page"]:
            return None
        path = "/".join(self._path[2:])
        return path if path in FIELDS else None

    def _characters(self, text: str) -> None:
        if self._text is None:
            return
        self._length += len(text)
        if self._length <= self.longest:
            self._text.append(text)

    def _end(self, name: str) -> None:
        tag, key = self._path[-1], self._field()
        if self._text is not None and key is not None:
            self._page.fields[key] = "".join(self._text)
            if self._length > self.longest:
                self._page.too_long.add(key)
        elif tag == "namespace" and self._text is not None and not self._is_article_namespace:
            self.namespaces.add("".join(self._text))
        elif tag == "page":
            self._done.append(self._page)
        self._text = None
        self._path.pop()
