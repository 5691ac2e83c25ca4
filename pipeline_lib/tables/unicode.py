"""Texts that Python can hold and UTF-8 cannot."""


def has_surrogates(text: str) -> bool:
    """Return whether a text holds half a surrogate pair, which cannot be written as UTF-8.

    JSON can escape one, and Python turns undecodable bytes of a command line into them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
