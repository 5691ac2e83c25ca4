"""Documents whose vectors come from files, searched by an encoder trained on such vectors.

An embedding API, or a model that is not run here, embeds the documents once; the small encoder that
learned its vectors embeds the queries (asymmetric search).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.students.vector_targets import Targets
from pipeline_lib.outputs.files.keyed_table import KeyedTable, content_keys, digest_of, loaded
from pipeline_lib.retrieval.embedders import Embedder
from pipeline_lib.retrieval.sentence_rows import Rows
from pipeline_lib.shards.vectors import unit

MIN_ROWS, MAX_ROWS = 32, 512
"""Documents needed to check the space, and the maximum used."""
LEAD = 3.0
"""Standard errors by which the encoder's vectors must be closer to their own documents'."""


@dataclass(frozen=True)
class GivenDocuments:
    """Document vectors read from files, gathered in a folder.

    :ivar digest: of their content.
    """

    folder: Path
    digest: str

    @classmethod
    def gathered(cls, folder: Path) -> Self:
        """Return the vectors that were gathered in a folder."""
        return cls(folder, digest_of(folder, "vectors"))

    @property
    def vectors(self) -> KeyedTable:
        """The vectors, memory-mapped once per process."""
        return loaded(self.folder, "vectors", self.digest)

    @property
    def width(self) -> int:
        """Values per vector."""
        return self.vectors.width

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vector of each text, float32 (texts, width), in their order."""
        return self.vectors.of_keys(content_keys([texts]))

    def checked(self, segments: Iterable[Rows], encoder: Embedder, mean: np.ndarray | None) -> Iterator[Rows]:
        """Yield segments, having checked that all sentences have a vector in the encoder's space.

        :param mean: what is subtracted from the vectors, float32 (width,); None: nothing.
        """
        for number, rows in enumerate(segments):
            missing = np.flatnonzero(self.vectors.find(content_keys([rows.texts])) < 0)
            if len(missing):
                raise PotstillError(
                    f"{rows.texts[missing[0]]!r:.80}: no vector in the files of `--vectors`, nor "
                    f"have {len(missing) - 1:,} of the {len(rows) - 1:,} sentences around it. Have "
                    "them embedded, and add their rows to the files."
                )
            if number == 0:
                texts = rows.texts[:MAX_ROWS]
                check_space(encoder.encode(texts), self.encode(texts), mean)
            yield rows


def check_space(vectors: np.ndarray, documents: np.ndarray, mean: np.ndarray | None) -> None:
    """Check that an encoder's vectors are closer to the given ones of their texts than to others.

    :param vectors: the encoder's, float32 (texts, width).
    :param documents: the given ones, likewise.
    :param mean: what is subtracted from the given ones first; None: nothing.
    """
    count = len(vectors)
    if count < MIN_ROWS:
        return
    cosines = unit(vectors) @ unit(documents if mean is None else documents - mean).T
    others = (cosines.sum(axis=1) - cosines.diagonal()) / (count - 1)
    leads = cosines.diagonal() - others
    if leads.mean() < LEAD * leads.std() / math.sqrt(count):
        raise PotstillError(
            f"--vectors: the encoder's own vectors of {count} sentences are no closer to those in "
            f"the files (mean cosine {cosines.diagonal().mean():.3f}) than to other sentences' "
            f"({others.mean():.3f}): the files hold another model's vectors, or each in the row "
            "of another text. Give those of the model that the encoder was trained on."
        )


def targets_in_files(encoder: Path) -> Targets:
    """Return an encoder's targets, if these were vectors from files."""
    targets = Targets.read(encoder)
    if targets.pooling is not None:
        raise PotstillError(
            f"{encoder}: trained on the vectors of a model that runs here. Build the index with "
            "`--model` and its folder instead of `--vectors`."
        )
    return targets
