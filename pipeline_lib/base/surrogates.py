"""Texts that Python holds and UTF-8 cannot."""


def has_surrogates(text: str) -> bool:
    """Return whether a text holds half a surrogate pair, which cannot be written as UTF-8.

    JSON can escape one, and Python gives a command's undecodable bytes as such.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
