"""Encoders of params.yaml: trained on Wikipedia to match sentence vectors or a model's layers."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from pipeline_lib.params.base import Count, Positive, Ref, Section
from pipeline_lib.params.methods import RUNNING, Objective, TeacherRuns

STARTS = ("vectors", "random", "model")
"""What a student can start from besides an encoder: word vectors, random weights, or the layers of
a pretrained model."""

Pooling = Literal["cls", "mean"]


class SentenceVectors(Section):
    """A model's vectors of sentences.

    ``model`` is a name in ``models``; ``max_length``: word pieces per sentence; longer ones are truncated.
    ``pooling``: the last layer's first state (Wu et al. 2020, section 3.1), or the mean over its tokens.
    """

    model: Annotated[str, Ref("models")]
    max_length: Annotated[int, Field(ge=4)]
    pooling: Pooling


class SentenceTrained(Section):
    """A student that learns from sentences of Wikipedia, once, whatever ``seeds`` says.

    ``wikipedia`` can be left out: so many of them are used, not all that were split.
    """

    student: Annotated[str, Ref("students")]
    wikipedia: Count | None = None
    optimiser: Annotated[str, Ref("optimisers")]


class Encoder(SentenceTrained):
    """A student's encoder, trained to match sentence vectors (Wu et al. 2020).

    ``student`` has the architecture bilstm_sra, or dse with a ``width``.  ``min_count``: how often a word must
    occur in Wikipedia's sentences to be known.  ``tasks`` names the tasks whose words the vocabulary includes, each
    with the transfer set whose sentences join the corpus, or null.  A dse uses its model's word
    pieces and has no vocabulary of its own.  ``centre`` subtracts the mean vector from the targets.
    """

    min_count: Positive
    tasks: Annotated[dict[str, str | None], Ref("tasks")]
    centre: bool


class GeneralEncoder(SentenceTrained):
    """A Transformer trained from random weights to match a model's layers (Jiao et al. 2020).

    General distillation, section 3.2 of the paper.  ``student`` has the architecture bert; the
    model that runs beside it is the student's ``model``, whose layers ``teacher_runs`` names.
    """

    teacher_runs: TeacherRuns
    objective: Objective

    @model_validator(mode="after")
    def _consistent(self) -> "GeneralEncoder":
        if not self.objective.is_of_layers:
            raise ValueError(f"`objective`: without a task there are no answers; give {', '.join(RUNNING)} alone")
        return self


def _learned(row: Any) -> str:
    """Tell the rows apart by their keys: whether the student learns vectors or layers."""
    if isinstance(row, dict):
        return "layers" if {"teacher_runs", "objective"} & row.keys() else "vectors"
    return "layers" if isinstance(row, GeneralEncoder) else "vectors"


AnyEncoder = Annotated[
    Annotated[Encoder, Tag("vectors")] | Annotated[GeneralEncoder, Tag("layers")], Discriminator(_learned)
]
