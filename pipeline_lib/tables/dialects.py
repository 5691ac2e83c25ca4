"""The dialect of a delimited file: which separator it uses, and whether its cells are quoted."""

import csv
import io
import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_RECORDS = 50
"""Records at the start of a file from which its separator is detected."""
csv.field_size_limit(2**31 - 1)  # Python's own limit of 131,072 characters is that of long texts
_MARK = re.compile(r"sep=(.)\r?$", re.IGNORECASE)
"""The line in which Excel names the separator."""


@dataclass(frozen=True)
class Dialect:
    """How cells are separated.

    :ivar quoted: whether cells may be in double quotes, and then contain separators and line ends.
    :ivar skipped: lines before the table, such as Excel's ``sep=;``.
    """

    separator: str
    quoted: bool
    skipped: int = 0

    @property
    def separator_name(self) -> str:
        """The separator in words."""
        return SEPARATORS.get(self.separator, repr(self.separator))

    def options(self) -> dict[str, Any]:
        """Return the arguments for Python's reader."""
        if not self.quoted:
            return {"delimiter": self.separator, "quoting": csv.QUOTE_NONE}
        return {"delimiter": self.separator, "strict": True}


def detect(sample: str, is_whole: bool, format: str, quoted: bool | None) -> Dialect:
    """Detect a file's dialect.

    :param sample: the text at its start; :param is_whole: whether that is all of it.
    :param format: csv, which is quoted and may use any separator, or tsv, which uses tabs and may be quoted.
    :param quoted: whether cells are quoted, if that is known.
    """
    separator = None
    skipped = _blank_lines(sample)
    lines = sample.split("\n")[skipped:]
    if mark := _MARK.match(lines[0]):
        separator = mark[1]
        lines, skipped = lines[1:], skipped + 1
    # The last line may be truncated.
    text = "\n".join(lines if is_whole or len(lines) < 3 else lines[:-1])
    if format == "csv":
        quoted = True if quoted is None else quoted
        return Dialect(separator or separator_of(text), quoted, skipped)
    separator = separator or "\t"
    if quoted is None:
        quoted = _is_quoted(text, separator, is_whole)
    return Dialect(separator, quoted, skipped)


def separator_of(text: str) -> str:
    """Return the separator: one that splits the first rows alike, or else the most frequent."""
    line = re.sub(r'"[^"]*"', "", re.split(r"[\r\n]", text, maxsplit=1)[0])
    counts = {sign: line.count(sign) for sign in SEPARATORS if sign in line}
    alike = [sign for sign in counts if len({*map(len, _first_records(text, sign))}) == 1]
    return max(alike or counts, key=counts.__getitem__, default=",")


def _first_records(text: str, separator: str) -> list[list[str]]:
    """Return the first records that can be read; faults are found when all are read."""
    options = Dialect(separator, True).options()
    records: list[list[str]] = []
    with suppress(csv.Error):
        records += islice(csv.reader(io.StringIO(text, newline=""), **options), _RECORDS)
    return [record for record in records if record]


def _blank_lines(text: str) -> int:
    return text.count("\n", 0, len(text) - len(text.lstrip("\r\n")))


def _is_quoted(text: str, separator: str, is_whole: bool) -> bool:
    """Whether a tab-separated file is quoted, as Excel and pandas write it.

    Official GLUE files are not: there a quotation mark is part of the text.  It is quoted if all
    rows are alike only when it is read so; or if they are alike in both ways and a cell has doubled
    marks, or all cells of a column are in quotation marks.
    """
    plain = [line.split(separator) for line in re.split(r"\r?\n|\r", text) if line]
    if not any(cell.startswith('"') for cells in plain for cell in cells):
        return False
    widths: set[int] = set()
    try:
        options = Dialect(separator, True).options()
        widths |= {len(r) for r in csv.reader(io.StringIO(text, newline=""), **options) if r}
    except csv.Error as error:
        # The sample may end within a cell.
        if is_whole or "unexpected end" not in str(error):
            return False
    if len(widths) != 1:
        return False
    if len({*map(len, plain)}) != 1:
        return True
    doubled = any(_is_in_quotes(c) and '""' in c[1:-1] for cells in plain for c in cells)
    return doubled or any(all(map(_is_in_quotes, column)) for column in zip(*plain, strict=True))


def _is_in_quotes(cell: str) -> bool:
    return len(cell) > 1 and cell.startswith('"') and cell.endswith('"')
