"""Encoders of params.yaml: trained on Wikipedia to sentence vectors, or to a model's layers.

The vectors are those of a model that is run here, or stand in files.

And catalogues: sentences embedded by such an encoder, to be searched.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from pipeline_lib.params.base import Count, Positive, Section, Seed
from pipeline_lib.params.methods import RUNNING, Objective, TeacherRuns

STARTS = ("vectors", "random", "model")
"""Where a student can start besides an encoder's name: word vectors, chance, or the layers of a
pretrained model."""


VectorStorage = Literal["float32", "float16", "int8"]


class SentenceVectors(Section):
    """A model's vector of every sentence that an encoder is trained on.

    ``model`` is a name in ``models``; ``max_length``: word pieces per sentence, the rest is cut.
    ``pooling``: the last layer's first state (Wu et al. 2020, section 3.1), the mean over its
    tokens, or the pooler's output.  ``storage``: the number format in the shards.
    """

    model: str
    max_length: Annotated[int, Field(ge=4)]
    pooling: Literal["cls", "mean", "pooler"]
    storage: VectorStorage


class SentenceVectorFiles(Section):
    """Sentence vectors that stand in files: those of an embedding API, or of any model.

    ``files`` lie below ``inputs``.  ``format`` null goes by their endings.  ``mask`` stands for a
    masked word in their texts.  ``provenance`` goes into the manifests: model, revision, licence or
    terms.  ``storage``: the number format in the shards.
    """

    files: Annotated[list[str], Field(min_length=1)]
    format: Literal["parquet", "arrow", "csv", "jsonl", "openai-batch"] | None
    mask: Annotated[str, Field(min_length=1)]
    provenance: dict[str, str]
    storage: VectorStorage


def _given(value: Any) -> str:
    """Tell sentence vectors apart by their keys: those of a model, or in files."""
    if isinstance(value, dict):
        return "files" if "files" in value else "model"
    return "files" if isinstance(value, SentenceVectorFiles) else "model"


AnySentenceVectors = Annotated[
    Annotated[SentenceVectors, Tag("model")] | Annotated[SentenceVectorFiles, Tag("files")],
    Discriminator(_given),
]


class Encoder(Section):
    """A student's encoder, trained to sentence vectors (Wu et al. 2020).

    ``student`` is of architecture bilstm_sra, or dse with a ``width``.  ``wikipedia`` is how many
    of its sentences are used (null: all that were split).  ``min_count``: how often a word stands
    in them to be known.  ``tasks`` names the tasks whose words the vocabulary takes in, and the
    transfer set whose sentences join the corpus, or null.  A dse has its model's word pieces and no
    vocabulary of its own.  ``centre`` subtracts the mean vector from the targets.
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
    storage: VectorStorage
    approximate: Literal["usearch", "faiss"] | None
