"""Students of params.yaml: one class of settings per architecture.

The networks are built in :mod:`pipeline_lib.models.networks.architectures`; this module needs no torch.
:func:`~pipeline_lib.models.students.student.register_student` adds an architecture.
"""

from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union

from pydantic import BaseModel, Field, model_validator

from pipeline_lib.params.base import Count, Fraction, Positive, Ref, Section

Channels = Literal["trained", "static", "multichannel"]
Pool = Literal["max", "mean", "self", "min"]
Reads = Literal["words", "pieces", "sentences", "sequence"]
"""What a student reads: words; bare word pieces, each sentence separately; each sentence separately
with the model's special tokens; or both sentences of a pair in one sequence with them."""


class StudentSettings(Section):
    """The settings that every student has.

    :cvar word_vectors: whether it starts from the vocabulary's vectors.
    :cvar recurrent: whether it has an LSTM, which not every processor can run in bfloat16.
    :cvar joint: whether it reads both sentences of a pair at once; otherwise each becomes a vector.
    :cvar pretrained: whether it is made of a pretrained model's layers.
    :cvar fitted: whether it is fitted to all rows at once, not trained in steps.
    """

    word_vectors: ClassVar[bool] = True
    recurrent: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    pretrained: ClassVar[bool] = False
    fitted: ClassVar[bool] = False

    dropout: Fraction
    max_words: Positive

    @classmethod
    def name(cls) -> str:
        """Return the architecture's name in params.yaml."""
        return cls.model_fields["architecture"].annotation.__args__[0]

    @property
    def reads(self) -> Reads:
        """What it reads: the task's words, or a pretrained model's word pieces."""
        return "words"

    @property
    def source_model(self) -> str | None:
        """The name in ``models`` of the model whose word pieces it reads or whose layers it has."""
        return getattr(self, "model", None)

    @property
    def state_count(self) -> int:
        """How many layers' states of the first token it returns; most students return none."""
        return 0

    @property
    def is_frozen(self) -> bool:
        """Whether its encoder is frozen, and only the layers above it are trained."""
        return getattr(self, "frozen", False)

    @property
    def classifier_units(self) -> int | None:
        """Units of the ReLU layer before the outputs, if there is one."""
        return getattr(self, "classifier", None)

    @property
    def sentence_width(self) -> int | None:
        """Size of its sentence vector if that has the teacher's width, as encoders need."""
        return getattr(self, "width", None)


class WordStudent(StudentSettings):
    """A student that starts from the vocabulary's vectors, and ends in a ReLU layer of ``classifier`` units."""

    classifier: Positive
    embeddings: Channels


class BiLSTM(WordStudent):
    """The student of Tang et al. 2019, section 3.1.

    ``rank``: static vectors are factorised to so many values after training; left out: they stay whole.
    """

    recurrent: ClassVar[bool] = True

    architecture: Literal["bilstm"]
    hidden: Positive
    rank: Positive | None = None

    @model_validator(mode="after")
    def _frozen(self) -> "BiLSTM":
        if self.rank is not None and self.embeddings != "static":
            raise ValueError("`rank` is of vectors that are not trained: set `embeddings: static`, or leave it out")
        return self


class SentenceBiLSTM(BiLSTM):
    """The student of Wu et al. 2020, section 3.1: its sentence vector has the teacher's width."""

    architecture: Literal["bilstm_sra"]
    width: Positive


class CNN(WordStudent):
    """Convolutions over words (Kim 2014), future work in Tang et al. 2019, section 6."""

    architecture: Literal["cnn"]
    widths: Annotated[list[Positive], Field(min_length=1)]
    filters: Positive


class Static(WordStudent):
    """The mean of word vectors."""

    architecture: Literal["static"]


class RegressionStudent(StudentSettings):
    """A linear model, fitted by L-BFGS in seconds: of mean word vectors, of n-grams, or of both.

    ``mean``: whether the mean of the words' vectors is a feature.  ``ngrams`` of up to so many words are features with
    TF-IDF weights, hashed into ``buckets``; 0: none, as for pairs, whose means are compared.
    """

    fitted: ClassVar[bool] = True

    architecture: Literal["regression"]
    dropout: Literal[0.0] = 0.0
    mean: bool = True
    ngrams: Count
    buckets: Positive = 2**15

    @model_validator(mode="after")
    def _consistent(self) -> "RegressionStudent":
        if not (self.mean or self.ngrams):
            raise ValueError("`mean` is false and `ngrams` is 0, so that nothing is left to read: set one of them")
        return self


class BiAttentive(StudentSettings):
    """MKD-LSTM of Liu 2020, section 4.1.2: two BiLSTMs with attention between the sentences.

    ``tokens`` are the word pieces of ``model``, a name in ``models``, with vectors of ``embedding_size`` values, or
    the task's words (then both are null).  ``feedforward``, ``shared`` and ``classifier`` are the units of ReLU
    layers: before the first BiLSTM, after pooling, and before the outputs.
    """

    recurrent: ClassVar[bool] = True
    joint: ClassVar[bool] = True

    architecture: Literal["biattentive"]
    tokens: Literal["pieces", "words"]
    model: Annotated[str | None, Ref("models")]
    embedding_size: Positive | None
    feedforward: Positive
    hidden: Positive
    pools: Annotated[list[Pool], Field(min_length=1)]
    shared: Positive
    classifier: Positive

    @property
    def reads(self) -> Reads:
        """Its tokens."""
        return self.tokens

    @model_validator(mode="after")
    def _consistent(self) -> "BiAttentive":
        for key in ("model", "embedding_size"):
            if (self.tokens == "pieces") != (getattr(self, key) is not None):
                raise ValueError(f"`{key}` goes with `tokens: pieces`, and is null for words")
        return _without_repeats(self, "pools")


class SequenceStudent(StudentSettings):
    """A Transformer that reads the whole input in one sequence, as its model was trained.

    ``model`` is a name in ``models``.  ``pool``: the mean of the layers' states of the first token (Liu), or the last
    layer's (Sun).  ``classifier`` null: no ReLU layer.  ``max_words`` counts word pieces, including special tokens.
    """

    word_vectors: ClassVar[bool] = False
    joint: ClassVar[bool] = True

    model: Annotated[str, Ref("models")]
    pool: Literal["mean", "last"]
    classifier: Positive | None

    @property
    def reads(self) -> Reads:
        """The whole input in one sequence."""
        return "sequence"


class TransformerLayers(SequenceStudent):
    """Layers of a pretrained model: Liu 2020, section 4.1.3, and Sun et al. 2019 (BERT-PKD).

    ``layers`` are those of the model to use, counted from 0.  ``dropout`` null: the model's own.
    """

    pretrained: ClassVar[bool] = True

    architecture: Literal["transformer"]
    layers: Annotated[list[Count], Field(min_length=1)]
    dropout: Fraction | None

    @property
    def state_count(self) -> int:
        """One per layer."""
        return len(self.layers)

    @model_validator(mode="after")
    def _consistent(self) -> "TransformerLayers":
        return _without_repeats(self, "layers")


class SiameseTransformer(StudentSettings):
    """A pretrained model that reads sentences separately: Barkan et al. 2019, section 3.4 (DSE).

    ``model`` is a name in ``models``; ``layers`` are those of the model to use, counted from 0 (null: all of them).
    The sentence vector concatenates the ``last`` layers' states, each averaged over the tokens except [CLS], or with
    ``pooling: cls`` that of [CLS], which the paper advises against; with a ``width``, a linear map projects it to
    that size (Vujanic and Rueckstiess 2025, LEAF), so that an encoder can have its teacher's width.  ``classifier``
    is the number of units of the ReLU layer before the outputs.  ``dropout`` null: the model's own. ``frozen``: the
    model is not trained, only the layers above it are.  ``max_words`` counts the word pieces of a sentence,
    including special tokens.
    """

    word_vectors: ClassVar[bool] = False
    pretrained: ClassVar[bool] = True

    architecture: Literal["dse"]
    model: Annotated[str, Ref("models")]
    layers: Annotated[list[Count], Field(min_length=1)] | None
    last: Positive
    pooling: Literal["mean", "cls"] = "mean"
    width: Positive | None = None
    classifier: Positive
    dropout: Fraction | None
    frozen: bool
    max_words: Annotated[int, Field(ge=4)]

    @property
    def reads(self) -> Reads:
        """Each sentence as the model was trained to read one."""
        return "sentences"

    @model_validator(mode="after")
    def _consistent(self) -> "SiameseTransformer":
        if self.frozen and self.width is not None:
            raise ValueError("`width`: nothing in a frozen model is trained; leave it out")
        if self.layers is None:
            return self
        if self.last > len(self.layers):
            raise ValueError(f"`last` is {self.last}, but `layers` names {len(self.layers)}")
        return _without_repeats(self, "layers")


class BERT(SequenceStudent):
    """A BERT of any size, such as those of Jiao et al. 2020 (TinyBERT), section 4.2.

    It reads the word pieces of ``model``, and general distillation imitates that.  ``depth`` is the number of layers,
    ``width`` the hidden size, which must be divisible by ``heads``, and ``feedforward`` the inner size of a layer.
    ``max_words`` is the number of its positions.
    """

    architecture: Literal["bert"]
    depth: Positive
    width: Positive
    heads: Positive
    feedforward: Positive

    @property
    def layers(self) -> list[int]:
        """The numbers of its layers, from 0."""
        return list(range(self.depth))

    @property
    def state_count(self) -> int:
        """One per layer."""
        return self.depth

    @property
    def sentence_width(self) -> None:
        """None: it imitates no sentence vectors."""
        return None

    @model_validator(mode="after")
    def _consistent(self) -> "BERT":
        if self.width % self.heads:
            raise ValueError("`width` must be divisible by `heads`: each has an equal share of it")
        return self


Settings = TypeVar("Settings", bound=StudentSettings)


def _without_repeats(settings: Settings, key: str) -> Settings:
    values = getattr(settings, key)
    if len(set(values)) < len(values):
        raise ValueError(f"`{key}`: each may appear only once")
    return settings


_BUILT_IN = (
    BiLSTM,
    SentenceBiLSTM,
    CNN,
    Static,
    RegressionStudent,
    BiAttentive,
    TransformerLayers,
    BERT,
    SiameseTransformer,
)
ARCHITECTURES: dict[str, type[StudentSettings]] = {settings.name(): settings for settings in _BUILT_IN}
"""The settings by architecture name."""
AnyStudent = Annotated[
    BiLSTM
    | SentenceBiLSTM
    | CNN
    | Static
    | RegressionStudent
    | BiAttentive
    | TransformerLayers
    | BERT
    | SiameseTransformer,
    Field(discriminator="architecture"),
]
_HOLDERS: list[tuple[type[BaseModel], str, Any]] = []


def holds_students(field: str, type_of: Any) -> Any:
    """Return a class decorator that keeps a field's type up to date with registered students.

    :param type_of: maps the type of a student to that of the field.
    """

    def hold(model: type[BaseModel]) -> type[BaseModel]:
        _HOLDERS.append((model, field, type_of))
        _update(model, field, type_of)
        return model

    return hold


def register_settings(settings: type[StudentSettings]) -> None:
    """Register another architecture for the students of params.yaml."""
    ARCHITECTURES[settings.name()] = settings
    for holder in _HOLDERS:
        _update(*holder)


def _update(model: type[BaseModel], field: str, type_of: Any) -> None:
    union = Union[tuple(ARCHITECTURES.values())]  # noqa: UP007  made at run time
    student = Annotated[union, Field(discriminator="architecture")]
    model.__annotations__[field] = type_of(student)
    model.model_fields[field].annotation = type_of(student)
    model.model_rebuild(force=True)


def student_settings(values: dict[str, Any]) -> StudentSettings:
    """Return the settings that a saved student's config.json holds.

    :raises KeyError: if there is no such architecture; :raises ValueError: for unknown keys.
    """
    return ARCHITECTURES[values["architecture"]].model_validate(values)
