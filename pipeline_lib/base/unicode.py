"""Texts that Python can hold and UTF-8 cannot."""

from pipeline_lib.base.errors import DistilleryError


def has_surrogates(text: str) -> bool:
    """Return whether a text holds half a surrogate pair, which cannot be written as UTF-8.

    JSON can escape one, and Python turns undecodable bytes of a command line into them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def as_utf8(text: str, where: str) -> str:
    """Return a text unless it has undecodable bytes, which Python represents as surrogates.

    :raises DistilleryError: naming ``where``, if it has any.
    """
    if has_surrogates(text):
        raise DistilleryError(f"{where}: not UTF-8 ({text!r:.80}). Convert it.")
    return text
