"""Documents whose vectors stand in files: built, added to, searched; foreign ones refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.vector_targets import Targets
from pipeline_lib.outputs.files.gathering import gather
from pipeline_lib.outputs.files.vector_files import Vectors
from pipeline_lib.retrieval.building import Form, add, build
from pipeline_lib.retrieval.catalogue import Catalogue
from pipeline_lib.retrieval.documents import GivenDocuments, check_space, targets_in_files
from pipeline_lib.retrieval.embedders import EncoderReference
from pipeline_lib.retrieval.search import QueryEncoder, pair_scorer
from pipeline_lib.retrieval.sentence_rows import Rows
from pipeline_lib.shards.vectors import unit

from .made_up import ENGINE, TEXTS, WIDTH, by_cosine, write_encoder

QUERIES = ["word3 word4", "word10", "word7 word31"]
OFFSET = np.full(WIDTH, 3.0, np.float32)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an encoder that was trained to vectors out of files, less their mean."""
    folder = write_encoder(tmp_path_factory.mktemp("encoders") / "one")
    Targets("0" * 64, None, None, OFFSET).save(folder)
    return folder


@pytest.fixture(scope="module")
def documents(encoder: Path) -> np.ndarray:
    """Return the service's vectors: the encoder's with some noise, and away from the origin."""
    noise = np.random.default_rng(1).normal(scale=0.1, size=(len(TEXTS), WIDTH))
    return (load_encoder(encoder).encode(TEXTS) + noise + OFFSET).astype(np.float32)


def given(folder: Path, vectors: np.ndarray, texts: list[str] = TEXTS, model: str = "some") -> GivenDocuments:
    """Write a file of vectors and gather it."""
    pairs = zip(texts, vectors.tolist(), strict=True)
    rows = [{"metadata": {"provenance": {"model": model}}}]
    rows += [{"text": text, "embedding": vector} for text, vector in pairs]
    folder.mkdir()
    file = folder / "vectors.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    gather([file], Vectors.by_default(), folder / "gathered")
    return GivenDocuments.gathered(folder / "gathered")


def made(folder: Path, encoder: Path, own: GivenDocuments, texts: list[str]) -> Catalogue:
    reference, form = (EncoderReference.to(encoder), Form("float32", mean=targets_in_files(encoder).mean))
    return build(folder, reference, [Rows(texts)], form, ENGINE, documents=own)[0]


def test_queries_of_the_encoder_find_the_given_vectors(tmp_path: Path, encoder: Path, documents: np.ndarray) -> None:
    catalogue = made(tmp_path / "index", encoder, given(tmp_path / "files", documents), TEXTS)
    np.testing.assert_allclose(next(catalogue.blocks())[1], documents - OFFSET, atol=1e-5)
    assert catalogue.contents.given == {"model": "some"}
    queries = load_encoder(encoder).encode(QUERIES)
    order = np.argsort(-(unit(queries) @ unit(documents - OFFSET).T), axis=1)
    found = by_cosine(catalogue).find(QUERIES, 5)
    assert [[hit.row for hit in hits] for hits in found] == order[:, :5].tolist()
    with pytest.raises(PotstillError, match="came from files, but a student compares its own"):
        pair_scorer(catalogue, None, None)
    other = write_encoder(tmp_path / "other", seed=2)
    with pytest.raises(PotstillError, match="not the encoder of these vectors"):
        QueryEncoder.of(catalogue, other)


def test_added_sentences_have_theirs_out_of_files_too(tmp_path: Path, encoder: Path, documents: np.ndarray) -> None:
    first = made(tmp_path / "index", encoder, given(tmp_path / "a", documents[:40], TEXTS[:40]), TEXTS[:40])
    more, rows = given(tmp_path / "b", documents[40:], TEXTS[40:]), [Rows(TEXTS[40:])]
    whole, report = add(first, rows, ENGINE, documents=more)
    assert len(whole) == 50 and report.rows_computed == 10
    np.testing.assert_allclose(whole.vectors[np.arange(50)], documents - OFFSET, atol=1e-5)
    with pytest.raises(PotstillError, match="Name those of the new sentences by `--vectors`"):
        add(whole, rows, ENGINE)
    other = given(tmp_path / "c", documents[40:], TEXTS[40:], model="another")
    with pytest.raises(PotstillError, match="of model another, but the index holds those of some"):
        add(whole, rows, ENGINE, documents=other)
    own = build(tmp_path / "own", EncoderReference.to(encoder), [Rows(TEXTS)], Form(), ENGINE)[0]
    with pytest.raises(PotstillError, match="are its encoder's"):
        add(own, rows, ENGINE, documents=more)


def test_a_sentence_without_a_vector_is_named(tmp_path: Path, encoder: Path, documents: np.ndarray) -> None:
    some = given(tmp_path / "files", documents[:-2], TEXTS[:-2])
    with pytest.raises(PotstillError, match=f"{TEXTS[-2]}.*no vector in the files.* 1 of the 49"):
        made(tmp_path / "index", encoder, some, TEXTS)
    # What has been embedded since is found; the build goes on.
    whole = made(tmp_path / "index", encoder, given(tmp_path / "more", documents), TEXTS)
    assert len(whole) == 50


def test_another_space_is_refused(tmp_path: Path, encoder: Path, documents: np.ndarray) -> None:
    foreign = np.random.default_rng(2).normal(size=documents.shape).astype(np.float32)
    shifted = np.roll(documents, 1, axis=0)
    for name, vectors in (("foreign", foreign), ("shifted", shifted)):
        own = given(tmp_path / name, vectors)
        with pytest.raises(PotstillError, match="no closer to those in the files"):
            made(tmp_path / f"{name}-index", encoder, own, TEXTS)
        assert len(made(tmp_path / f"{name}-few", encoder, own, TEXTS[:31])) == 31
    narrow = given(tmp_path / "narrow", documents[:, :8])
    with pytest.raises(PotstillError, match="8 values each, but the encoder's vectors have 16"):
        made(tmp_path / "narrow-index", encoder, narrow, TEXTS)
    of_a_model = write_encoder(tmp_path / "of-a-model")
    Targets("0" * 64, "mean", 16, None).save(of_a_model)
    with pytest.raises(PotstillError, match="`--model` and its folder instead of `--vectors`"):
        targets_in_files(of_a_model)


def test_a_weak_encoder_in_the_same_space_is_not_refused(encoder: Path, documents: np.ndarray) -> None:
    own, noise = documents - OFFSET, np.random.default_rng(3).normal(size=documents.shape)
    weak = own + 3 * own.std() * noise
    cosines = (unit(weak) * unit(own)).sum(1)
    assert cosines.mean() < 0.45
    check_space(weak.astype(np.float32), documents, OFFSET)


def test_a_file_that_grew_builds_the_same_index(tmp_path: Path, encoder: Path, documents: np.ndarray) -> None:
    some = given(tmp_path / "a", documents[:40], TEXTS[:40])
    first = made(tmp_path / "index", encoder, some, TEXTS[:40])
    again = made(tmp_path / "index", encoder, given(tmp_path / "b", documents), TEXTS)
    assert replace(again.contents, approximate=None) == first.contents and len(again) == 50
