"""Students of params.yaml: one class of settings per architecture.

What the settings build stands in :mod:`pipeline_lib.networks.encoders`; this module is read where
no torch is.  :func:`~pipeline_lib.networks.encoders.register_student` adds an architecture.
"""

from typing import Annotated, Any, ClassVar, Literal, Union

from pydantic import BaseModel, Field

from pipeline_lib.params.base import Fraction, Positive, Section

Channels = Literal["trained", "static", "multichannel"]


class StudentSettings(Section):
    """What every student has.

    :cvar word_vectors: whether it starts from the vocabulary's vectors.
    :cvar recurrent: whether it has an LSTM, which not every processor runs in bfloat16.
    """

    word_vectors: ClassVar[bool] = True
    recurrent: ClassVar[bool] = False

    dropout: Fraction
    max_words: Positive

    @classmethod
    def name(cls) -> str:
        """Return the architecture's name in params.yaml."""
        return cls.model_fields["architecture"].annotation.__args__[0]

    @property
    def classifier_units(self) -> int | None:
        """Units of the ReLU layer before the outputs, where there is one."""
        return getattr(self, "classifier", None)

    @property
    def sentence_width(self) -> int | None:
        """Values of its sentence vector where that has the teacher's width, as encoders need."""
        return getattr(self, "width", None)


class BiLSTM(StudentSettings):
    """The student of Tang et al. 2019, section 3.1."""

    recurrent: ClassVar[bool] = True

    architecture: Literal["bilstm"]
    hidden: Positive
    classifier: Positive
    embeddings: Channels


class SentenceBiLSTM(StudentSettings):
    """The student of Wu et al. 2020, section 3.1: its sentence vector has the teacher's width."""

    recurrent: ClassVar[bool] = True

    architecture: Literal["bilstm_sra"]
    hidden: Positive
    width: Positive
    classifier: Positive
    embeddings: Channels


class CNN(StudentSettings):
    """Convolutions over the words, as Kim 2014; Tang et al. 2019, section 6, leave it open."""

    architecture: Literal["cnn"]
    widths: Annotated[list[Positive], Field(min_length=1)]
    filters: Positive
    classifier: Positive
    embeddings: Channels


class Static(StudentSettings):
    """The mean of word vectors, and a ReLU layer."""

    architecture: Literal["static"]
    classifier: Positive
    embeddings: Channels


class Linear(StudentSettings):
    """A linear classifier over hashed n-grams; it uses no word vectors."""

    word_vectors: ClassVar[bool] = False

    architecture: Literal["linear"]
    ngrams: Positive
    buckets: Positive
    dimensions: Positive


ARCHITECTURES: dict[str, type[StudentSettings]] = {
    settings.name(): settings for settings in (BiLSTM, SentenceBiLSTM, CNN, Static, Linear)
}
"""The settings by the architecture's name."""
Student = Annotated[
    BiLSTM | SentenceBiLSTM | CNN | Static | Linear, Field(discriminator="architecture")
]
_HOLDERS: list[tuple[type[BaseModel], str, Any]] = []


def holds_students(field: str, type_of: Any) -> Any:
    """Return a class decorator that keeps a field's type up to date with what is registered.

    :param type_of: the type of a student to that of the field.
    """

    def hold(model: type[BaseModel]) -> type[BaseModel]:
        _HOLDERS.append((model, field, type_of))
        _update(model, field, type_of)
        return model

    return hold


def register_settings(settings: type[StudentSettings]) -> None:
    """Let params.yaml have students of another architecture."""
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

    :raises KeyError: if there is no such architecture; :raises ValueError: for other keys.
    """
    return ARCHITECTURES[values["architecture"]].model_validate(values)
