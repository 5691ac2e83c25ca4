"""Pools of params.yaml: texts of no task, which a teacher can answer where a task has few."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.base.file_formats import Format
from pipeline_lib.params.base import PinnedPackage, Positive, Section


class TextColumn(Section):
    """Files, and their column of texts; ``columns`` are the names for headerless files."""

    files: Annotated[list[str], Field(min_length=1)]
    format: Format
    columns: list[str] | None
    text: str


class PackageTexts(PinnedPackage, TextColumn):
    """Texts inside a package of the package index."""

    kind: Literal["package"]


class OwnTexts(TextColumn):
    """Texts in the user's own files, below ``inputs``."""

    kind: Literal["files"]


class WikipediaTexts(Section):
    """The training sentences of ``wikipedia``."""

    kind: Literal["wikipedia"]


class Pool(Section):
    """Texts that join a task's unlabelled ones: only texts, never labels.

    Of all texts of ``sources``, so many ``rows`` are drawn by their hash: a smaller number draws a
    subset of a larger one's.
    """

    rows: Positive
    sources: Annotated[
        list[Annotated[PackageTexts | OwnTexts | WikipediaTexts, Field(discriminator="kind")]], Field(min_length=1)
    ]
