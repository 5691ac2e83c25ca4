"""Models of params.yaml: where they come from, the teachers made from them; students' words."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline_lib.params.base import (
    Count,
    InPackage,
    Name,
    OnHub,
    PinnedPackage,
    Positive,
    Ref,
    Section,
    Seed,
    Select,
    Sha256,
    TaskNames,
    Times,
)


class PackageModel(InPackage):
    """A transformers model inside a wheel of the package index."""

    folder: str


class PackagePart(PinnedPackage):
    """A wheel that holds a part of a larger file; ``file`` is its path in the wheel."""

    file: str


class PackageParts(Section):
    """A transformers model in a zip file that is split across several wheels.

    The zip file is the concatenation of the parts; ``sha256`` is that of the whole zip file.
    """

    kind: Literal["package_parts"]
    parts: Annotated[list[PackagePart], Field(min_length=1)]
    sha256: Sha256
    folder: str


class LocalModel(Section):
    """A transformers model folder, below ``inputs`` (an absolute path is used as it is)."""

    kind: Literal["path"]
    path: str


class HubModel(OnHub):
    """A model on the hub."""

    model: str


ModelSource = Annotated[PackageModel | PackageParts | LocalModel | HubModel, Field(discriminator="kind")]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
TrainingPrecision = Literal["auto", "float32", "bfloat16"]


class Optimised(Section):
    """How long a model is trained, and at which rates; two keys can be left out.

    ``precision`` of matrix products, without which it is bfloat16 where the device is fast at it.  ``select``: what is
    best on dev.
    """

    learning_rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
    epochs: Times
    batch_size: Positive
    # No float16: it would need gradient scaling.
    precision: TrainingPrecision = "auto"
    select: Select = "metric"


class Tuning(Optimised):
    """How a teacher is tuned here (Tang et al. 2019, section 4); ``seed`` draws its head, dropout and order."""

    freeze_embeddings: bool
    seed: Seed = 1
    head: Literal["probe"] | None = None


class FineTuning(Tuning):
    """A teacher that is fine-tuned on each task separately (Tang et al. 2019, section 4).

    With ``head: probe`` its head is a linear layer over the mean of the states that starts as a :class:`Probe` of them
    (Kumar et al. 2022); without the key it is the model's own.
    """

    kind: Literal["single"]


class Probe(Section):
    """A teacher whose encoder stays as it is: a linear layer over the mean of its states is fitted to each task."""

    kind: Literal["probe"]
    head: ClassVar[str] = "probe"
    learning_rates: ClassVar[list[float]] = [0.0]
    freeze_embeddings: ClassVar[bool] = True
    select: ClassVar[Select] = "metric"
    seed: ClassVar[int] = 1


class Refining(Tuning):
    """A teacher of several tasks at once, one encoder with a head for each (Liu 2020, 4.1.1).

    Every task's batches are used once per epoch.  ``ranking`` gives, for tasks whose pairs are a question and a
    candidate answer, the label of correct answers: their rows are compared with those of the same question (MT-DNN,
    Liu et al. 2019, section 3).
    """

    kind: Literal["refined"]
    ranking: dict[Name, str]

    @model_validator(mode="after")
    def _consistent(self) -> "Refining":
        if self.head is not None:
            raise ValueError("`head`: tasks share an encoder under its own heads. Remove it, or use `kind: single`")
        return self


class Finished(Section):
    """A teacher that was fine-tuned elsewhere.

    ``checkpoint`` is its model folder, below ``inputs``; ``{task}`` in it is replaced by the task.  With ``force``, it
    is used even if its answers contradict the labels.
    """

    kind: Literal["finished"]
    checkpoint: str
    force: bool = False

    def path(self, task: str) -> str:
        """Return one task's model folder, below ``inputs``."""
        return self.checkpoint.replace("{task}", task)


class AnswerFiles(Section):
    """A teacher whose answers are read from files below ``inputs``: those of an LLM, an ensemble, an API.

    ``{task}`` in ``files`` is replaced by the task.  ``mask`` is what the files' texts write for a masked word.
    ``provenance`` is copied into the manifests: model, prompt, licence or terms.
    ``reply`` is the path to the replies in a batch of a provider that is not known, such as ``response.body.text``.
    ``classes`` gives the order of the classes in lists of numbers (null: the files say).
    """

    kind: Literal["answers"]
    files: Annotated[list[str], Field(min_length=1)]
    mask: Annotated[str, Field(min_length=1)]
    provenance: dict[str, str]
    reply: str | None = None
    classes: Annotated[list[str], Field(min_length=1)] | None

    def paths(self, task: str) -> list[str]:
        """Return one task's files, below ``inputs``."""
        return [path.replace("{task}", task) for path in self.files]


class Scored(Section):
    """A causal language model that answers as it is: it scores what could stand for each label after a prompt.

    All keys can be left out.  ``prompt`` is a file below ``inputs``.  Its last paragraph has ``{text}``, for pairs
    ``{text_pair}`` too, and for several labels ``{label}`` behind them, answered by yes or no; ``{labels}`` lists all.
    ``labels``: what stands for each label; without it, its name.  So many ``examples`` of train, drawn by ``seed``,
    stand before that paragraph, answered.  ``chat``: the model's chat template is laid around all.
    """

    kind: Literal["scored"]
    head: ClassVar[None] = None
    prompt: str | None = None
    labels: dict[str, str] | None = None
    examples: Count = 0
    seed: Seed = 1
    chat: bool = False


class States(Section):
    """The states of [CLS] that students learn from (Sun et al. 2019, section 3.2).

    ``layers`` are counted from 1, as in the paper: layer 1 is the first above the embeddings.
    """

    layers: Annotated[list[Positive], Field(min_length=1)]
    storage: Literal["float32", "float16"]

    @model_validator(mode="after")
    def _consistent(self) -> "States":
        if len(set(self.layers)) < len(self.layers):
            raise ValueError("`layers`: each may appear only once")
        return self


TRAINED_ALONE = ("single", "probe")
"""The kinds of teachers that are trained on one task by itself."""


class Teacher(Section):
    """A teacher: the model it starts from, how it is tuned, and the tasks that it knows.

    ``model`` is a name in ``models``; a finished teacher has none.  ``max_length`` is null if no model is run: for
    answers in files.  Three keys can be left out: ``tasks`` and ``data``, the transfer sets that it answers, restrict
    it; ``states`` are what rows learn from its layers.
    """

    model: Annotated[str | None, Ref("models")]
    max_length: Annotated[int, Field(ge=4)] | None
    tasks: TaskNames = None
    data: Annotated[list[str] | None, Ref("transfer")] = None
    tuning: Annotated[FineTuning | Probe | Refining | Finished | AnswerFiles | Scored, Field(discriminator="kind")]
    states: States | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Teacher":
        if (self.model is None) != (self.tuning.kind not in (*TRAINED_ALONE, "refined", "scored")):
            raise ValueError(
                "`model` is what a teacher is made from: name one of `models`, or null where "
                "`tuning` is of kind finished or answers"
            )
        if (self.max_length is None) == self.runs:
            raise ValueError("`max_length` is how much a model reads: give it, or null if `tuning` is of kind answers")
        if self.states is not None and not self.has_layers:
            raise ValueError("`states` are those of an encoder's layers, and none is run here. Remove them")
        return self

    @property
    def runs(self) -> bool:
        """Whether a model is run for its answers; those in files need none."""
        return self.tuning.kind in (*TRAINED_ALONE, "refined", "finished", "scored")

    @property
    def has_layers(self) -> bool:
        """Whether it is an encoder whose layers students can learn from."""
        return self.runs and not isinstance(self.tuning, Scored)

    def knows(self, task: str) -> bool:
        """Whether it is a teacher of ``task``."""
        return self.tasks is None or task in self.tasks

    def answers(self, recipe: str) -> bool:
        """Whether its outputs are computed for a transfer set."""
        return self.data is None or recipe in self.data


class Precompute(Section):
    """The teacher's output pass; without these keys both are the device's.

    :ivar precision: format of weights and activations.
    :ivar batch_tokens: tokens per batch, with padding if the model needs it.
    """

    precision: Precision = "auto"
    batch_tokens: Positive | None = None


class ModelVectors(Section):
    """Word vectors averaged from a model's word-piece embeddings."""

    kind: Literal["model"]
    model: Annotated[str, Ref("models")]


class VectorFile(Section):
    """Word vectors from a file below ``inputs``: GloVe or word2vec text, or word2vec binary."""

    kind: Literal["file"]
    path: str
    format: Literal["glove", "word2vec", "word2vec_binary"]


class Vocabulary(Section):
    """The students' words: those of the training text, and where their vectors come from.

    Other words are read by the word pieces of the model that the vectors come from.  Two keys can be left out.
    ``pieces``: only so many of them, the most frequent; 0: none.  ``extra_words``: so many words of the vectors' own.
    """

    lowercase: bool
    extra_words: Count = 0
    pieces: Count | None = None
    dimensions: Positive | None
    vectors: Annotated[ModelVectors | VectorFile, Field(discriminator="kind")]

    @model_validator(mode="after")
    def _has_pieces(self) -> "Vocabulary":
        if self.pieces and self.vectors.kind != "model":
            raise ValueError(
                "`pieces` are a model's word pieces: let `vectors` be of kind model, or set 0; "
                "`extra_words` adds words of a file"
            )
        return self
