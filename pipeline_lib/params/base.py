"""What all sections of params.yaml share: strictness, and the types of single values."""

from typing import Annotated, Literal

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
Select = Literal["metric", "loss"]
"""What chooses a training's evaluation and learning rate on dev: the task's first metric, or the
loss of dev's labels."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$", max_length=100)]


class Section(BaseModel):
    """A mapping of params.yaml: unknown keys, infinities and NaN are errors; all is immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class PinnedPackage(Section):
    """An archive of the package index, pinned by version and digest."""

    requirement: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")]
    artifact: Literal["wheel", "sdist"]
    sha256: Sha256
