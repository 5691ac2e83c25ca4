"""What a student or a teacher reads, and texts that UTF-8 or a terminal cannot take."""

import re
from unicodedata import normalize

from pipeline_lib.base.errors import PotstillError

Text = str | tuple[str, str]
"""One example's sentence, or its pair of sentences."""
MASK = "[MASK]"
"""The masked word: BERT's mask token, and unknown to a student."""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""C0 without tab and line feed, DEL and C1; a terminal takes sequences that begin so as orders."""


def composed(text: str) -> str:
    """Return a text with its accents composed (Unicode's NFC): what looks the same is then the same."""
    return normalize("NFC", text)


def has_surrogates(text: str) -> bool:
    """Return whether a text holds half a surrogate pair, which cannot be written as UTF-8.

    JSON can escape one, and Python turns undecodable bytes of a command line into them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def printable(text: str) -> str:
    r"""Return a text whose control characters a terminal does not obey: ESC becomes ``\x1b``.

    Tabs and line ends stay.
    """
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def escaped_json(text: str) -> str:
    r"""Return JSON whose control characters are escaped: JSON itself leaves DEL and C1 as they are.

    Line ends and tabs stay, which are outside of its strings.
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def as_utf8(text: str, where: str) -> str:
    """Return a text unless it has undecodable bytes, which Python represents as surrogates."""
    if has_surrogates(text):
        raise PotstillError(f"{where}: not UTF-8 ({text!r:.80}). Convert it.")
    return text
