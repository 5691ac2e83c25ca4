"""Questions that files leave open: asked on a terminal, an error elsewhere, answered by a flag."""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline_lib.base.errors import PotstillError


@dataclass(frozen=True)
class Question:
    """A question that files leave open.

    :ivar text: the question; :ivar choices: its answers; :ivar flag: the flag that answers it.
    """

    text: str
    choices: list[str]
    flag: str


Ask = Callable[[Question], str]
"""Returns one of a question's choices."""


def refuse(question: Question) -> str:
    """Refuse to guess an answer."""
    raise PotstillError(f"{question.text} {' | '.join(question.choices)}. Answer with {question.flag}.")
