"""What all sections of params.yaml share: strictness, and the types of single values."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Times = Annotated[int, Field(ge=1, le=10_000)]
"""How often something is done: more would run for weeks, and is a slip of the keyboard."""
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
"""The range that every random generator in use accepts: NumPy's is the narrowest."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Revision = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Select = Literal["metric", "loss", "last"]
"""What chooses a training's evaluation and learning rate on dev: the task's first metric, or the loss of dev's
labels; or the last step's weights are kept, and the metric chooses the rate."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$", max_length=100)]


class Section(BaseModel):
    """A mapping of params.yaml: unknown keys, infinities and NaN are errors; all is immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Ref(NamedTuple):
    """Marks a value, or each of a list's or a mapping's keys, as the name of a row of ``section``.

    ``Annotated[str, Ref("models")]``: :func:`references` yields it, and a name without a row is refused.
    """

    section: str


def references(value: Any, where: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (key, name, section) of each name of a row below a section of params.yaml."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from references(item, f"{where}.{name}".lstrip("."))
    elif isinstance(value, Section):
        fields = type(value).model_fields
        for key, field in fields.items():
            item, at = getattr(value, key), f"{where}.{key}".lstrip(".")
            yield from references(item, at)
            names = [item] if isinstance(item, str) else item or []
            for ref in (mark for mark in field.metadata if isinstance(mark, Ref)):
                yield from ((at, name, ref.section) for name in names)


TaskNames = Annotated[Annotated[list[str], Field(min_length=1)] | None, Ref("tasks")]
"""The tasks that a row is restricted to; null: none."""


class PinnedPackage(Section):
    """An archive of the package index, pinned by version and digest."""

    requirement: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")]
    artifact: Literal["wheel", "sdist"]
    sha256: Sha256


class InPackage(PinnedPackage):
    """A source inside a package of the package index."""

    kind: Literal["package"]


class InFiles(Section):
    """A source in the user's own files, below ``inputs``."""

    kind: Literal["files"]


class OnHub(Section):
    """A source on the Hugging Face hub at a pinned revision, or a local folder in its layout."""

    kind: Literal["hub"]
    revision: Revision


class DataOnHub(OnHub):
    """A data set on the hub, and one of its configurations (null: it has none)."""

    dataset: str
    config: str | None
