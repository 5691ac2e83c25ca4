"""Answering queries from a catalogue: exactly, or from an approximate index's candidates.

The cosine, or the comparison f of a siamese student (Barkan et al. 2019, section 3.4), scores all
vectors of the catalogue, or the candidates from an approximate index.  A cross-encoder can then
rescore the best of them (section 1 there: a pass per pair is affordable for a few).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from pipeline_lib.base.devices import resolve_batch_tokens, resolve_precision
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.models.students.student import load_student
from pipeline_lib.models.teacher import Teacher, load_teacher
from pipeline_lib.retrieval.approximate import ApproximateIndex, open_approximate
from pipeline_lib.retrieval.catalogue import Catalogue
from pipeline_lib.retrieval.embedders import EncoderReference, LoadedEmbedder, longest, targets_in_space
from pipeline_lib.retrieval.scoring import PairScorer, Scorer
from pipeline_lib.retrieval.top_k import best
from pipeline_lib.shards.training_records import tuned_length


@dataclass(frozen=True)
class Hit:
    """One answer to a query: its row in the catalogue, and its score."""

    row: int
    score: float


@dataclass(frozen=True)
class QueryEncoder:
    """Embeds queries so that they can be compared with a catalogue's vectors.

    :ivar mean: what is subtracted from its vectors, float32 (width,), or None.
    :ivar document_mean: what must be subtracted from the catalogue's vectors, if an encoder that
        was trained on centred vectors searches a catalogue of uncentred ones; else None.
    """

    embedder: LoadedEmbedder
    mean: np.ndarray | None = None
    document_mean: np.ndarray | None = None

    @classmethod
    def of(cls, catalogue: Catalogue, folder: Path | None = None, device: str = "cpu") -> "QueryEncoder":
        """Return the encoder in ``folder``; None: the one that computed the catalogue's vectors."""
        contents = catalogue.contents
        if contents.given is not None:
            # The mean subtracted from its targets was also subtracted from the documents.
            return cls(contents.encoder.found_in(folder).load(device))
        if folder is None or (contents.encoder.pooling is None):
            located = contents.encoder.found_in(folder)
            return cls(located.load(device), catalogue.mean)
        reference = EncoderReference.to(folder)
        if reference.digest == contents.encoder.digest:
            return cls(contents.encoder.found_in(folder).load(device), catalogue.mean)
        targets = targets_in_space(folder, contents.encoder)
        embedder = reference.load(device)
        if targets.mean is None and contents.mean is None:
            return cls(embedder)
        if targets.mean is None:
            raise PotstillError(
                f"{folder}: trained on uncentred vectors, but the index's are centred. Build the "
                "index without `--centre`."
            )
        if contents.mean is None:
            if contents.normalised or catalogue.contents.approximate:
                raise PotstillError(
                    f"{folder}: trained on centred vectors, but those of the index were "
                    f"{'normalised' if contents.normalised else 'indexed'} uncentred. Build it "
                    f"again with `--centre {folder}`."
                )
            return cls(embedder, None, targets.mean[: contents.width])
        if not np.array_equal(targets.mean, catalogue.mean):
            raise PotstillError(
                f"{folder}: its targets and the index's vectors had different means subtracted. "
                f"Build the index again with `--centre {folder}`."
            )
        return cls(embedder)

    def encode(self, catalogue: Catalogue, texts: Sequence[str]) -> np.ndarray:
        """Return the queries' vectors in the catalogue's space, float32 (queries, width)."""
        return catalogue.contents.shaped(self.embedder.encode(texts), self.mean)


@dataclass(frozen=True)
class CrossEncoder:
    """A teacher fine-tuned on pairs, which scores a query and a sentence in one pass.

    :ivar output: the class whose probability is the score; for a regression, its one output.
    :ivar max_length: the word-piece limit of a pair.
    """

    teacher: Teacher
    output: int
    max_length: int

    @classmethod
    def of(cls, folder: Path, label: str | None = None, device: str = "cpu") -> "CrossEncoder":
        """Load the classifier in ``folder``, with the length limit of its fine-tuning, if known."""
        import torch

        precision = resolve_precision("auto", torch.device(device))
        teacher = load_teacher(folder, device, precision)
        output = label_number(folder, teacher.label_names, label)
        length = tuned_length(folder) or longest(teacher.model.config.to_dict())
        return cls(teacher, output, length)

    def scores(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return the scores of a query with each sentence, (texts,).

        They are probabilities, float64 (in float32 more of them would round to 1), or a
        regression's outputs, float32.
        """
        pairs = [(query, text) for text in texts]
        tokens = resolve_batch_tokens(None, self.teacher.device)
        outputs = self.teacher.predict(pairs, self.max_length, tokens)
        kind = self.teacher.kind
        scored = KINDS[kind].probabilities(outputs) if KINDS[kind].has_probabilities else outputs
        return scored[:, self.output]


def label_number(folder: Path, names: Sequence[str], label: str | None) -> int:
    """Return the index of the class that counts: the named one, else the last of at most two."""
    if label is None and len(names) <= 2:
        return len(names) - 1
    if label not in names:
        raise PotstillError(
            f"{folder}: {'no class ' + repr(label) if label else 'several classes'}; there are "
            f"{', '.join(names)}. Name the one that counts by `--label`."
        )
    return list(names).index(label)


def pair_scorer(
    catalogue: Catalogue, folder: Path | None, label: str | None, device: str = "cpu", precision: str = "float32"
) -> PairScorer:
    """Return the comparison f of the student that computed the catalogue's vectors.

    It compares vectors as they are stored: those of a catalogue in float16 or int8 are rounded, so
    that the scores are near the student's own, but not the same.

    :param folder: the student's current folder; None: the recorded one.
    :param precision: of the products over all pairs: float32, bfloat16, auto.
    """
    contents = catalogue.contents
    if contents.given is not None:
        raise PotstillError(
            f"{catalogue.folder}: its vectors came from files, but a student compares its own. Search by the cosine."
        )
    located = contents.encoder.found_in(folder)
    if contents.normalised or contents.mean or contents.width < contents.encoder_width:
        raise PotstillError(
            f"{catalogue.folder}: its vectors are normalised, centred or truncated, but a student compares its vectors "
            "unaltered. Build the index without `--normalise`, `--centre` and `--dimensions`."
        )
    student = load_student(Path(located.folder), device)
    number = label_number(Path(located.folder), student.label_names, label)
    return PairScorer.of(student, number, device, precision)


@dataclass(frozen=True)
class Search:
    """A way to answer queries from a catalogue.

    :ivar scorer: determines the order of the answers.
    :ivar candidates: how many from the approximate index are scored; None: all rows.
    :ivar cross_encoder: rescores the best ``rescored``; None: no rescoring.
    """

    catalogue: Catalogue
    encoder: QueryEncoder
    scorer: Scorer
    candidates: int | None = None
    cross_encoder: CrossEncoder | None = None
    rescored: int = 0

    def find(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the ``k`` best answers to each query, best first; ties go to the lower row."""
        self._check(k)
        wanted = max(k, self.rescored)
        vectors = self.encoder.encode(self.catalogue, queries)
        hits = [
            [Hit(int(row), float(score)) for row, score in zip(rows, scores, strict=True)]
            for scores, rows in self._scored(vectors, wanted)
        ]
        if self.cross_encoder is None:
            return hits
        return [self._rescored(*one)[:k] for one in zip(queries, hits, strict=True)]

    def _scored(self, queries: np.ndarray, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the scores and rows of each query's best answers."""
        if self.candidates is None:
            scores, rows = best(self.scorer, queries, self._blocks(), k)
            yield from zip(scores, rows, strict=True)
            return
        candidates = self._approximate.candidates(queries, self.candidates)
        for query, rows in zip(queries, candidates, strict=True):
            rows = np.sort(rows)
            vectors = self.catalogue.vectors[rows]
            scores, places = best(self.scorer, query[None], [(0, vectors)], k)
            yield scores[0], rows[places[0]]

    def _blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        mean = self.encoder.document_mean
        for first, vectors in self.catalogue.blocks():
            yield first, vectors if mean is None else vectors - mean

    @cached_property
    def _approximate(self) -> ApproximateIndex:
        approximate, folder = self.catalogue.contents.approximate, self.catalogue.folder
        if approximate is None:
            raise PotstillError(
                f"{folder}: has no approximate index. Build it with `--approximate usearch`, or search exactly."
            )
        path = folder / approximate.name
        whole = path.exists() and path.stat().st_size == approximate.bytes
        if not whole or approximate.answers_to != self.catalogue.shards.manifest.digest:
            raise PotstillError(
                f"{path}: missing, truncated or of other rows. `distill index add` with any file "
                "of sentences builds it again."
            )
        return open_approximate(approximate.kind, path)

    def _rescored(self, query: str, hits: list[Hit]) -> list[Hit]:
        hits = hits[: self.rescored]
        texts = [self.catalogue.text(hit.row) for hit in hits]
        scores = self.cross_encoder.scores(query, texts).tolist()
        rescored = [Hit(hit.row, score) for hit, score in zip(hits, scores, strict=True)]
        return sorted(rescored, key=lambda hit: (-hit.score, hit.row))

    def _check(self, k: int) -> None:
        if self.cross_encoder is not None and self.rescored < k:
            raise PotstillError(
                f"rescore: {self.rescored}, but {k} answers are asked for, and all must be on one "
                "scale. Raise `--rescore`, or lower `--k`."
            )
        if self.candidates is not None and self.candidates < max(k, self.rescored):
            raise PotstillError(
                f"first: {self.candidates} candidates, fewer than the {max(k, self.rescored)} that "
                "are asked for. Raise their number."
            )
