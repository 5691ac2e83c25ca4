"""Tiny encoders and students of random vectors, and the sentences that they know."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.sentence_encoder import save_encoder
from pipeline_lib.models.students.student import build_student, save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import student_settings
from pipeline_lib.retrieval import index as indexes
from pipeline_lib.retrieval import search
from pipeline_lib.retrieval.approximate import Blocks, Candidates
from pipeline_lib.retrieval.embedders import EncoderReference, IndexPass
from pipeline_lib.retrieval.index import Index, build
from pipeline_lib.retrieval.scoring import CosineScorer
from pipeline_lib.retrieval.search import Search
from pipeline_lib.retrieval.sentence_rows import Rows
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.vectors import unit

WORDS = [f"word{number}" for number in range(60)]
TEXTS = [f"{WORDS[n % 60]} {WORDS[(7 * n + 3) % 60]} {WORDS[n * n % 59]}" for n in range(50)]
ENGINE = LocalEngine(1)
WIDTH = 16
VALUES = {"architecture": "static", "embeddings": "trained", "dropout": 0.0, "max_words": 8}
SETTINGS = student_settings(VALUES | {"classifier": 4})


def vectors(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(len(WORDS) + 2, WIDTH)).astype(np.float32)


def write_encoder(folder: Path, seed: int = 1) -> Path:
    """Write an encoder whose vector is the mean of random word vectors."""
    config = StudentConfig(len(WORDS) + 2, WIDTH, SETTINGS, False, ["no", "yes"])
    model = build_student(config, vectors(seed)).encoder
    save_encoder(folder, model, build_tokenizer(WORDS, True), SETTINGS)
    return folder


def write_student(folder: Path, labels: list[str]) -> Path:
    config = StudentConfig(len(WORDS) + 2, WIDTH, SETTINGS, True, labels)
    save_student(folder, build_student(config, vectors(2)), build_tokenizer(WORDS, True))
    return folder


def by_cosine(index: Index) -> Search:
    """Return the exact search by cosine, with the index's encoder for the queries."""
    return Search(index, index.encoder.located().load(), CosineScorer())


def made(
    folder: Path,
    encoder: Path,
    texts: list[str] = TEXTS,
    ids: list[str] | None = None,
    approximate: bool = False,
    storage: str | None = None,
) -> Index:
    index_pass = IndexPass.of(EncoderReference.to(encoder))
    index_pass = index_pass if storage is None else replace(index_pass, storage=storage)
    return build(folder, index_pass, [Rows(texts, ids)], ENGINE, approximate, block_rows=8)[0]


def cosine_order(queries: np.ndarray, documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines of all pairs, and each query's documents from the nearest on."""
    scores = unit(queries.astype(np.float64)) @ unit(documents.astype(np.float64)).T
    return scores, np.argsort(-scores, axis=1, kind="stable")


def write_brute_force(path: Path, blocks: Blocks, _: int) -> None:
    """Stands for a library's index: looks at all vectors."""
    with open(path, "wb") as sink:
        np.save(sink, np.concatenate([vectors for _, vectors in blocks]))


def open_brute_force(path: Path) -> Candidates:
    vectors = np.load(path)
    return lambda queries, count: [*cosine_order(queries, vectors)[1][:, :count]]


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "graph_type", lambda: None)
    monkeypatch.setattr(indexes, "write_approximate", write_brute_force)
    monkeypatch.setattr(search, "open_approximate", open_brute_force)
