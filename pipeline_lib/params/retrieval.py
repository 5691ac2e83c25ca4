"""What is measured besides the tasks' own scores: retrieval, and untuned similarity."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.params.base import Name, Positive, Ref, Section
from pipeline_lib.params.encoders import Pooling, SentenceVectors
from pipeline_lib.params.task_sources import Split


class OfTask(Section):
    """What belongs to a task."""

    task: Annotated[str, Ref("tasks")]


class TaskPairs(OfTask):
    """The pairs of a task's split: first sentences are the queries, second ones the documents.

    ``relevant`` is the label of a pair whose second sentence answers the first, or the lowest such
    score.  ``graded``: nDCG's gain is the score minus the lowest possible one, instead of 0 and 1.
    """

    kind: Literal["task"]
    split: Split
    relevant: float | str
    graded: bool


class StudentSystem(OfTask):
    """A method's students: each sentence's vector, compared by f or by the cosine.

    ``label`` is the class whose probability f ranks by; null for a regression or the cosine.
    """

    kind: Literal["student"]
    method: str
    score: Literal["f", "cosine"]
    label: str | None


class EncoderSystem(Section):
    """The cosine of a sentence encoder's vectors."""

    kind: Literal["encoder"]
    encoder: Annotated[str, Ref("encoders")]


class ModelSystem(SentenceVectors):
    """The cosine of a pretrained model's vectors."""

    kind: Literal["model"]


class RerankedSystem(Section):
    """The first ``top`` results of another system, reranked by the row's teacher."""

    kind: Literal["reranked"]
    first: str
    top: Positive


RankingSystem = Annotated[StudentSystem | EncoderSystem | ModelSystem | RerankedSystem, Field(discriminator="kind")]


class TeacherOrder(OfTask):
    """A cross-encoder that reads each query with the first ``pool`` results of every system.

    ``teacher`` is one of ``task``; ``label`` the class whose probability it ranks by, null for a regression.
    """

    teacher: str
    label: str | None
    pool: Positive


class Retrieval(Section):
    """Systems that find the answers to queries among documents.

    ``queries``: how many of them are used (null: all).  ``at``: the cutoffs k of the metrics.
    """

    source: TaskPairs
    queries: Positive | None
    systems: Annotated[dict[Name, RankingSystem], Field(min_length=1)]
    teacher: TeacherOrder | None
    at: Annotated[list[Positive], Field(min_length=1)]

    @property
    def depth(self) -> int:
        """How many candidates per query each system must return."""
        tops = [system.top for system in self.systems.values() if system.kind == "reranked"]
        return max(*self.at, *tops, self.teacher.pool if self.teacher else 1)


class Similarity(OfTask):
    """The untuned similarity of a task's pairs (Wu et al. 2020, section 4.5 and table 5).

    The cosine of the vectors of ``encoders``, and of ``model`` with each of ``poolings``.
    """

    encoders: Annotated[list[str], Ref("encoders")]
    model: Annotated[str, Ref("models")]
    poolings: list[Pooling]
