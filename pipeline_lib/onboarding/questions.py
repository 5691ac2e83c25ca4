"""What files leave open: asked on a terminal, refused elsewhere, answered by a flag."""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline_lib.base.errors import DistilleryError


@dataclass(frozen=True)
class Question:
    """Something that files leave open.

    :ivar text: the question; :ivar choices: its answers; :ivar flag: that answers it beforehand.
    """

    text: str
    choices: list[str]
    flag: str


Ask = Callable[[Question], str]
"""Returns one of a question's choices."""


def refuse(question: Question) -> str:
    """Answer nothing.

    :raises DistilleryError: naming the flag that answers the question.
    """
    raise DistilleryError(
        f"{question.text} {' | '.join(question.choices)}. Say it with {question.flag}."
    )
