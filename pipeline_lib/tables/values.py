"""One value of a table as text: the form in which labels are listed in params.yaml."""

import json
import math
from decimal import Decimal
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import has_surrogates


def is_plain(value: Any) -> bool:
    """Whether a value is missing, a text, a number or a truth value: no list, no object."""
    return value is None or isinstance(value, str | int | float | bytes | Decimal)


def is_missing(value: Any) -> bool:
    """Whether a value is missing: null, or NaN, which many tools write for it."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def as_text(value: Any, column: str, where: str) -> str:
    """Return a value's plain form: 1 and 1.0 are both ``1``, 2.5 is ``2.5``, null is empty.

    :param column: its column; :param where: file and row, for messages.
    """
    if isinstance(value, str):
        if not value.isascii() and has_surrogates(value):
            raise PotstillError(
                f"{where}, column {column!r} holds half a surrogate pair, which is no character. "
                "Write the text as UTF-8, or escape both halves."
            )
        return value
    if isinstance(value, list) and len(value) <= 1 and all(isinstance(v, str) for v in value):
        # Data sets have lists of labels, of which a row may have just one.
        return as_text(value[0] if value else None, column, where)
    if is_missing(value):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal):
        # Many tools turn integer columns with gaps into floating-point numbers.
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return _decoded(value, column, where)
    raise PotstillError(
        f"{where}, column {column!r} holds a {type(value).__name__}, not a text or a number. Write plain values."
    )


def as_list_text(value: Any, column: str, where: str) -> str:
    """Return a list as JSON, and any other value as :func:`as_text` does."""
    if not isinstance(value, list):
        return as_text(value, column, where)
    entries = [as_text(entry, column, where) for entry in value]
    return json.dumps(entries, ensure_ascii=False)


def _decoded(value: bytes, column: str, where: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise PotstillError(
            f"{where}, column {column!r} holds bytes that are not UTF-8. Write the text as a string."
        ) from error
