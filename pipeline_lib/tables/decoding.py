"""Reads a file's text, or says how to convert a file in another encoding."""

import codecs
from pathlib import Path
from shlex import quote

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import unreadable


def read_text(path: Path) -> str:
    """Return a file's text, without a byte order mark.

    :raises DistilleryError: naming the row and a remedy, if it is not UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        raise _other(path, row, "UTF-16" if wide else "WINDOWS-1252") from error
    if text.count("\0") > len(text) / 4:
        # ASCII in two bytes per character, without a byte order mark.
        raise _other(path, 1, "UTF-16LE" if text[0] != "\0" else "UTF-16BE")
    return text


def _other(path: Path, row: int, encoding: str) -> DistilleryError:
    new = quote(str(path.with_name(f"{path.stem}_utf8{path.suffix}")))
    condition = ", if it is from Windows" if encoding.startswith("WINDOWS") else ""
    return DistilleryError(
        f"{path}: row {row} is not UTF-8. Save the file as UTF-8 (in Excel: CSV UTF-8), or "
        f"convert it{condition}: iconv -f {encoding} -t UTF-8 {quote(str(path))} > {new}"
    )
