"""Encoders of params.yaml: trained on Wikipedia to a model's sentence vectors, or to its layers.

And catalogues: sentences embedded by such an encoder, to be searched.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from pipeline_lib.params.base import Count, Positive, Section, Seed
from pipeline_lib.params.methods import RUNNING, Objective, TeacherRuns

STARTS = ("vectors", "random", "model")
"""Where a student can start besides an encoder's name: word vectors, chance, or the layers of a
pretrained model."""


class SentenceVectors(Section):
    """A model's vector of every sentence that an encoder is trained on.

    ``model`` is a name in ``models``; ``max_length``: word pieces per sentence, the rest is cut.
    ``pooling``: the last layer's first state (Wu et al. 2020, section 3.1), the mean over its
    tokens, or the pooler's output.  ``storage``: the number format in the shards.
    """

    model: str
    max_length: Annotated[int, Field(ge=4)]
    pooling: Literal["cls", "mean", "pooler"]
    storage: Literal["float32", "float16", "int8"]


class Encoder(Section):
    """A student's encoder, trained to a model's sentence vectors (Wu et al. 2020).

    ``wikipedia`` is how many of its sentences are used (null: all that were split).  ``tasks``
    names the tasks whose words the vocabulary takes in, and the transfer set whose sentences join
    the corpus, or null.  ``centre`` subtracts the mean vector from the targets.
    """

    student: str
    wikipedia: Count | None
    min_count: Positive
    tasks: dict[str, str | None]
    centre: bool
    optimiser: str
    seed: Seed


class GeneralEncoder(Section):
    """A Transformer started at random, trained to a model's layers (Jiao et al. 2020, section 3.2).

    ``student`` is of architecture bert; the model that runs beside it is the student's ``model``,
    whose layers ``teacher_runs`` names.  ``wikipedia`` is how many of its sentences are used (null:
    all that were split).
    """

    student: str
    wikipedia: Count | None
    teacher_runs: TeacherRuns
    objective: Objective
    optimiser: str
    seed: Seed

    @model_validator(mode="after")
    def _consistent(self) -> "GeneralEncoder":
        if not self.objective.is_of_layers:
            raise ValueError(
                f"`objective`: without a task there are no answers; give {', '.join(RUNNING)} alone"
            )
        return self


def _learned(row: Any) -> str:
    """Tell the rows apart by their keys: what the student learns, vectors or layers."""
    if isinstance(row, dict):
        return "layers" if {"teacher_runs", "objective"} & row.keys() else "vectors"
    return "layers" if isinstance(row, GeneralEncoder) else "vectors"


AnyEncoder = Annotated[
    Annotated[Encoder, Tag("vectors")] | Annotated[GeneralEncoder, Tag("layers")],
    Discriminator(_learned),
]


class CatalogueRow(Section):
    """Wikipedia's training sentences, embedded by an encoder into an index to search in.

    ``encoder``: a row of ``encoders``.  ``storage``: the number format of the vectors.
    ``approximate``: the library of an approximate index beside them, or null.
    """

    encoder: str
    storage: Literal["float32", "float16", "int8"]
    approximate: Literal["usearch", "faiss"] | None
