"""A file's bytes as lines of text: decompressed, decoded, one after the other.

Encodings are UTF-8, UTF-16 and UTF-32 by their byte order marks, and whatever charset-normalizer
recognises in other files.
"""

import codecs
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import check_no_pointer, unreadable
from pipeline_lib.base.text import has_surrogates
from pipeline_lib.tables.faults import undecodable

SAMPLE = 1 << 20
"""Bytes at the start of a file from which its encoding and dialect are detected."""
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_OTHER_FILES = {
    b"PK\x03\x04": "a spreadsheet or ZIP archive. Save the sheet as CSV, or unpack the archive",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet or document. Save it as CSV",
    b"%PDF": "a PDF. Save its texts one per line",
    b"PAR1": "a Parquet file. Name it .parquet, or set its format",
    b"ARROW1": "an Arrow file. Name it .arrow, or set its format",
}
"""The first bytes of files that have no lines."""
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by byte order mark; UTF-32's begins with UTF-16's."""
_CHUNK = 1 << 16
_GUESSED = 1 << 16
"""Bytes from which an encoding is guessed."""
_COMMON = [
    "cp1252", "cp1251", "cp1250", "cp932", "gb18030", "cp949", "big5", "euc_jp", "cp1254", "cp1253", "cp1255",
    "cp1256", "cp1257", "koi8_r",
]  # fmt: skip
"""Encodings that are guessed, the most usual first: Windows' code pages, and East Asian ones."""
_ALIKE = 0.1
"""Coherences of two guesses that differ by less say nothing."""
_UNDECODABLE = "\udcff"
codecs.register_error("undecodable", lambda error: (_UNDECODABLE, error.end))


@dataclass
class Lines:
    """The lines of a file or of standard input, to be read once.

    :ivar name: what messages call it; :ivar sample: the text at its start.
    :ivar is_whole: whether the sample is all of it.
    :ivar encoding: a codec's name; :ivar guessed: whether charset-normalizer recognised it.
    :ivar characters: how many have been read so far.
    :ivar has_faulty: whether a line so far could not be decoded, and was kept.
    :ivar waiting: whether the next line of a pipe has not been written yet, as far as is known.
    """

    name: str
    sample: str
    is_whole: bool
    encoding: str
    guessed: bool
    _content: Iterator[bytes] = field(repr=False)
    _is_pipe: bool = field(repr=False)
    _keeps_faulty: bool = field(repr=False)
    characters: int = 0
    waiting: bool = False
    has_faulty: bool = False

    def __iter__(self) -> Iterator[str]:
        r"""Yield each line with its end: LF or CRLF, or CR in a file that has no LF.

        Texts contain characters (U+2028, U+0085, form feed) that ``str.splitlines`` and Python's
        universal newlines treat as line ends.
        """
        end = "\r" if "\r" in self.sample and "\n" not in self.sample else "\n"
        number, start = 1, [""]
        for text in self._texts():
            first, *others = text.split(end)
            if not others:
                start.append(first)
                continue
            lines = ["".join([*start, first]), *others]
            start = [lines.pop()]
            if has_surrogates(text):
                self._found_faulty(lines + start, number)
            for line in lines[:-1]:
                yield line + end
            self.waiting = self._is_pipe
            yield lines[-1] + end
            self.waiting = False
            number += len(lines)
        last = "".join(start)
        self._found_faulty([last], number)
        if last:
            yield last

    def fault_of(self, line: str, number: int) -> PotstillError | None:
        """Return the error of a line that was kept although it could not be decoded."""
        if self.has_faulty and has_surrogates(line):
            return undecodable(f"{self.name}: row {number} is ", self.encoding)
        return None

    def _found_faulty(self, lines: Sequence[str], first: int) -> None:
        if self._keeps_faulty:
            self.has_faulty |= any(map(has_surrogates, lines))
        else:
            self._reject(lines, first)

    def chunks(self) -> Iterator[str]:
        """Yield the text piece by piece, for files whose lines may be endless."""
        for text in self._texts():
            self._reject([text], None)
            yield text

    def _texts(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self.encoding)("undecodable")
        is_first = True
        try:
            for content in chain(self._content, [b""]):
                text = decoder.decode(content, final=not content)
                if text:
                    self.characters += len(text)
                    yield text.removeprefix("\ufeff") if is_first else text
                    is_first = False
        except (EOFError, zlib.error, OSError) as error:
            raise damaged(self.name, error) from error

    def _reject(self, lines: Sequence[str], first: int | None) -> None:
        """Reject lines that could not be decoded; None: their numbers are not known."""
        for number, line in enumerate(lines, first or 0):
            if has_surrogates(line):
                row = "" if first is None else f"row {number} is "
                raise undecodable(f"{self.name}: {row}", self.encoding)


@contextmanager
def open_lines(path: Path | None, encoding: str | None = None, keep_faulty: bool = False) -> Iterator[Lines]:
    """Open a file of text.

    :param path: plain, or compressed by gzip, bzip2 or Zstandard, or a named pipe; None: standard input.
    :param encoding: a codec's name; None: the file decides.
    :param keep_faulty: whether lines that cannot be decoded are kept: see :meth:`Lines.fault_of`.
    """
    name, is_pipe = str(path or "standard input"), path is None or not path.is_file()
    if encoding is not None:
        check_encoding(encoding)
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(_open(path))
            # From a pipe, what has been written so far.
            start = stream.read1(SAMPLE) if is_pipe else stream.read(SAMPLE)
        except (EOFError, zlib.error, OSError) as error:
            if path is not None and not path.is_file():
                raise unreadable(path, error) from error
            raise damaged(name, error) from error
        for magic, what in _OTHER_FILES.items():
            if start.startswith(magic):
                raise PotstillError(f"{name}: not text, but {what}.")
        guessed = False
        if encoding is None:
            encoding, guessed = _detect(name, None if is_pipe else path, start)
        sample = codecs.getincrementaldecoder(encoding)("undecodable").decode(start)
        is_whole = len(start) < SAMPLE and not is_pipe
        # What a pipe has now, or as much as makes reading efficient.
        rest = iter(lambda: stream.read1(_CHUNK), b"")
        content = chain([start], rest)
        yield Lines(name, sample.removeprefix("\ufeff"), is_whole, encoding, guessed, content, is_pipe, keep_faulty)


def check_encoding(encoding: str) -> None:
    """Check that Python has a codec for an encoding."""
    try:
        "".encode(encoding)
    except LookupError as error:
        raise PotstillError(
            f"encoding {encoding!r}: unknown. Use a name such as utf-8, utf-16, windows-1252 or shift_jis."
        ) from error


@contextmanager
def _open(path: Path | None) -> Iterator[Any]:
    with ExitStack() as stack:
        if path is None:
            file = getattr(sys.stdin, "buffer", None) or io.BytesIO(sys.stdin.read().encode())
        else:
            if path.is_file():
                check_no_pointer(path)
            file = stack.enter_context(path.open("rb"))
        if not hasattr(file, "peek"):
            file = io.BufferedReader(file)
        start = file.peek(4)[:4]
        codec = next((codec for magic, codec in _MAGIC.items() if start.startswith(magic)), None)
        yield file if codec is None else stack.enter_context(_decompressed(file, codec))


def _decompressed(file: Any, codec: str) -> Any:
    if codec == "gzip":
        import gzip

        return gzip.GzipFile(fileobj=file)
    if codec == "bz2":
        import bz2

        return bz2.BZ2File(file)
    import pyarrow as pa

    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(file, "r"), codec))


def _detect(name: str, path: Path | None, start: bytes) -> tuple[str, bool]:
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding, False
    if path is not None and len(start) == SAMPLE and start.isascii():
        start = _first_other(path) or start
    if _is_utf8(start):
        wide = _without_mark(start)
        return (wide, True) if wide else ("utf-8", False)
    return _without_mark(start) or _guess(name, start), True


def _first_other(path: Path) -> bytes | None:
    """Return the first bytes of a file that are not all ASCII."""
    with _open(path) as stream:
        while chunk := stream.read(SAMPLE):
            if not chunk.isascii():
                # A character may begin in one chunk and end in the next.
                return chunk + stream.read(8)
    return None


def _is_utf8(content: bytes) -> bool:
    try:
        # The last character may be truncated.
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return False
    return True


def _without_mark(content: bytes) -> str | None:
    """Return UTF-16 if every other byte is mostly zero, as in ASCII texts without a mark."""
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if content[first::2].count(0) > len(content) / 4:
            return encoding
    return None


def _guess(name: str, content: bytes) -> str:
    from charset_normalizer import from_bytes

    first = next(n for n, byte in enumerate(content) if byte > 127)
    start = max(0, content.rfind(b"\n", 0, first))
    matches = from_bytes(content[start : start + _GUESSED], cp_isolation=_COMMON)
    best = matches.best()
    if best is None:
        raise PotstillError(
            f"{name}: not UTF-8, and no other encoding was recognised. Save the file as UTF-8, or name its encoding."
        )
    # Short texts are as likely in several encodings: then the most usual one.
    likely = {
        encoding
        for match in matches
        if match.chaos == best.chaos and match.coherence >= best.coherence - _ALIKE
        for encoding in (match.encoding, *match.could_be_from_charset)
    }
    return next(encoding for encoding in _COMMON if encoding in likely)


def damaged(name: str, error: Exception) -> PotstillError:
    """Return the error for a file that cannot be read to its end."""
    return PotstillError(
        f"{name}: cannot be read ({error}). If the file is truncated or damaged, copy or compress it again."
    )
