"""What a user says: with flags, and to questions that files leave open, which are an error where nobody answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.tables.reader import ReadOptions


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


@dataclass(frozen=True)
class Request:
    """What a user gave to ``distill init``; None or empty: nothing, and what is missing is guessed.

    :ivar dev: the share of the rows to draw for dev, or its file; :ivar test: for test.
    :ivar options: how to read the files; :ivar unlabelled: files and folders of more texts.
    :ivar teacher: see :func:`~pipeline_lib.onboarding.teachers.choose_teacher`; :ivar students: architectures.
    """

    files: Sequence[Path] = ()
    name: str = ""
    text: Sequence[str] = ()
    label: str | None = None
    kind: str | None = None
    labels: str | None = None
    metrics: Sequence[str] = ()
    positive: str | None = None
    dev: float | Path | None = None
    test: float | Path | None = None
    options: ReadOptions = field(default_factory=ReadOptions)
    unlabelled: Sequence[Path] = ()
    teacher: str | None = None
    students: tuple[str, ...] = ()
