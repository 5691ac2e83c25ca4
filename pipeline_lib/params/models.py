"""Models of params.yaml: the teacher, its fine-tuning and its pass; the students' words."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.params.base import (
    Count,
    Fraction,
    Name,
    Positive,
    Probability,
    Revision,
    Section,
    Seed,
    Sha256,
)


class PinnedPackage(Section):
    """An archive of the package index, pinned by version and digest."""

    requirement: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")]
    artifact: Literal["wheel", "sdist"]
    sha256: Sha256


class PackageModel(PinnedPackage):
    """A transformers model inside a wheel of the package index."""

    kind: Literal["package"]
    folder: str


class PackagePart(PinnedPackage):
    """A wheel that holds a part of a larger file; ``file`` is its path in the wheel."""

    file: str


class PackageParts(Section):
    """A transformers model in a zip file that is spread over several wheels.

    The zip file is the parts' bytes, one part after the other; ``sha256`` is the zip file's own.
    """

    kind: Literal["package_parts"]
    parts: Annotated[list[PackagePart], Field(min_length=1)]
    sha256: Sha256
    folder: str


class LocalModel(Section):
    """A transformers model folder, below ``inputs`` (an absolute path is taken as it is)."""

    kind: Literal["path"]
    path: str


class HubModel(Section):
    """A model of the Hugging Face hub at a pinned revision."""

    kind: Literal["hub"]
    model: str
    revision: Revision


ModelSource = Annotated[
    PackageModel | PackageParts | LocalModel | HubModel, Field(discriminator="kind")
]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
TrainingPrecision = Literal["auto", "float32", "bfloat16"]


class FineTuning(Section):
    """How the teacher is fine-tuned (Tang et al. 2019, section 4)."""

    learning_rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
    epochs: Positive
    batch_size: Positive
    warmup: Fraction
    weight_decay: Annotated[float, Field(ge=0)]
    clip_norm: Annotated[float, Field(gt=0)]
    freeze_embeddings: bool
    # No float16: it would need its gradients scaled.
    precision: TrainingPrecision
    seed: Seed


class Refining(FineTuning):
    """How one encoder is fine-tuned on several tasks at once (Liu 2020, section 4.1.1).

    ``sampling: all`` takes every task's batches once per epoch.  A number a takes as many, the task
    of each drawn with a probability proportional to (rows of the task) ** a.  ``ranking`` names,
    of tasks whose pairs are a question and a candidate answer, the label of right answers: their
    rows are compared with those of the same question (MT-DNN, Liu et al. 2019, section 3).
    """

    sampling: Literal["all"] | Probability
    ranking: dict[Name, str]


class Teacher(Section):
    """The teacher: the encoder it starts from, and its fine-tuning or a finished checkpoint."""

    source: ModelSource
    checkpoint: str | None
    max_length: Annotated[int, Field(ge=4)]
    finetune: FineTuning


class Precompute(Section):
    """The teacher's output pass: number format and tokens (padding included) per batch."""

    precision: Precision
    batch_tokens: Positive | None


class TeacherVectors(Section):
    """Word vectors averaged from the base teacher's word-piece embeddings."""

    kind: Literal["teacher"]


class VectorFile(Section):
    """Word vectors from a file below ``inputs``: GloVe or word2vec text, or word2vec binary."""

    kind: Literal["file"]
    path: str
    format: Literal["glove", "word2vec", "word2vec_binary"]


class Vocabulary(Section):
    """The students' words: those of the training text, and where their vectors come from."""

    lowercase: bool
    min_count: Positive
    extra_words: Count
    dimensions: Positive | None
    vectors: Annotated[TeacherVectors | VectorFile, Field(discriminator="kind")]
