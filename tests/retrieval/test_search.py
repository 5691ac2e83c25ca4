"""Searching: exactly, by the student's comparison, by candidates, asymmetrically."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.student import load_student
from pipeline_lib.models.students.vector_targets import Targets
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.retrieval import approximate
from pipeline_lib.retrieval.building import Form, add, build
from pipeline_lib.retrieval.catalogue import Catalogue
from pipeline_lib.retrieval.embedders import EncoderReference, targets_in_space
from pipeline_lib.retrieval.scoring import CosineScorer
from pipeline_lib.retrieval.search import CrossEncoder, Hit, QueryEncoder, Search, pair_scorer
from pipeline_lib.retrieval.sentence_rows import Rows
from tests.kit.pretrained import WORDS as MODEL_WORDS
from tests.kit.pretrained import write_model
from tests.pipeline.workspace import flip_byte

from .made_up import ENGINE, TEXTS, WIDTH, BruteForce, by_cosine, cosine_order, made, write_encoder, write_student

QUERIES = ["word3 word4", "word10", "unknown words"]
FILMS = [f"{first} {second}" for first in MODEL_WORDS[:7] for second in MODEL_WORDS[:7]]
"""Texts that the transformers model tells apart: to it those of the encoder are unknown words."""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoders") / "one")


def rows_of(hits: list[list[Hit]]) -> list[list[int]]:
    return [[hit.row for hit in own] for own in hits]


def test_an_exact_search_is_that_of_numpy(tmp_path: Path, encoder: Path) -> None:
    catalogue = made(tmp_path / "index", encoder, storage="float32")
    own = load_encoder(encoder)
    scores, order = cosine_order(own.encode(QUERIES), own.encode(TEXTS))
    found = by_cosine(catalogue).find(QUERIES, 7)
    assert rows_of(found) == order[:, :7].tolist()
    wanted = np.take_along_axis(scores, order[:, :7], 1)
    np.testing.assert_allclose([[hit.score for hit in own] for own in found], wanted, atol=1e-5)
    assert [len(own) for own in by_cosine(catalogue).find(QUERIES, 70)] == [50] * 3


def test_a_cut_and_centred_index_is_searched_in_its_own_space(tmp_path: Path, encoder: Path) -> None:
    own = load_encoder(encoder)
    documents = own.encode(TEXTS)
    mean = documents.mean(0)
    catalogue = made(tmp_path / "index", encoder, dimensions=5, mean=mean, storage="float32")
    queries = (own.encode(QUERIES) - mean)[:, :5]
    _, order = cosine_order(queries, (documents - mean)[:, :5])
    assert rows_of(by_cosine(catalogue).find(QUERIES, 9)) == order[:, :9].tolist()


def test_the_student_of_an_index_compares(tmp_path: Path) -> None:
    folder = write_student(tmp_path / "student", ["apart", "alike"])
    catalogue = made(tmp_path / "index", folder, storage="float32")
    way = Search(catalogue, QueryEncoder.of(catalogue), pair_scorer(catalogue, None, None))
    found = way.find(QUERIES, 50)
    student = load_student(folder)
    for query, hits in zip(QUERIES, found, strict=True):
        logits = student.logits([(query, TEXTS[hit.row]) for hit in hits])
        np.testing.assert_allclose([hit.score for hit in hits], logits[:, 1] - logits[:, 0], atol=0.01)
        assert sorted(hit.row for hit in hits) == list(range(50))
    of_the_other = pair_scorer(catalogue, None, "apart")
    assert rows_of(Search(catalogue, way.encoder, of_the_other).find(QUERIES, 3)) != rows_of(way.find(QUERIES, 3))
    rounded = pair_scorer(catalogue, None, None, precision="bfloat16")
    near = Search(catalogue, way.encoder, rounded).find(QUERIES, 50)
    exact = {hit.row: hit.score for hit in found[0]}
    away = [abs(exact[hit.row] - hit.score) for hit in near[0]]
    assert 0 < max(away) < 0.1 * np.std([*exact.values()])
    with pytest.raises(PotstillError, match="no class 'no'; there are apart, alike"):
        pair_scorer(catalogue, None, "no")
    cut = made(tmp_path / "cut", folder, dimensions=4)
    with pytest.raises(PotstillError, match="Build the index without `--normalise`"):
        pair_scorer(cut, None, None)


class CountingTeacher:
    """Prefers sentences whose first word has the greater number."""

    device, label_names, kind = torch.device("cpu"), ("score",), "regression"

    def __init__(self) -> None:
        self.pairs = 0

    def predict(self, pairs: list[tuple[str, str]], *_: int) -> np.ndarray:
        self.pairs += len(pairs)
        return np.array([[float(text.split()[0][4:])] for _, text in pairs], np.float32)


def test_a_teacher_orders_the_best_once_more(tmp_path: Path, encoder: Path) -> None:
    catalogue = made(tmp_path / "index", encoder)
    plain, teacher = by_cosine(catalogue), CountingTeacher()
    way = Search(catalogue, plain.encoder, plain.scorer, None, CrossEncoder(teacher, 0, 16), rescored=8)
    found = way.find(QUERIES, 3)
    for first, hits in zip(plain.find(QUERIES, 8), found, strict=True):
        numbers = sorted((float(TEXTS[hit.row].split()[0][4:]) for hit in first), reverse=True)
        assert [hit.score for hit in hits] == numbers[:3]
    assert teacher.pairs == 8 * len(QUERIES)
    with pytest.raises(PotstillError, match="rescore: 8, but 9 answers are asked for"):
        way.find(QUERIES, 9)


class SureTeacher:
    """The greater the number of a sentence's first word, the surer of the second class."""

    kind = "classification"
    device, label_names = torch.device("cpu"), ("no", "yes")

    def predict(self, pairs: list[tuple[str, str]], *_: int) -> np.ndarray:
        return np.array([[0.0, float(text.split()[0][4:]) / 4] for _, text in pairs], np.float32)


def test_a_teacher_of_classes_ranks_by_the_probability_of_one(tmp_path: Path, encoder: Path) -> None:
    catalogue = made(tmp_path / "index", encoder)
    plain, texts = by_cosine(catalogue), ["word0", "word2", "word40"]
    for output, sign in enumerate((1, -1)):
        teacher = CrossEncoder(SureTeacher(), output, 16)
        numbers = np.array([0.0, 0.5, 10.0])
        np.testing.assert_allclose(teacher.scores("", texts), 1 / (1 + np.exp(sign * numbers)))
        way = Search(catalogue, plain.encoder, plain.scorer, None, teacher, rescored=8)
        for hits in way.find(QUERIES, 8):
            found = [sign * float(TEXTS[hit.row].split()[0][4:]) for hit in hits]
            assert found == sorted(found)


def test_a_teacher_reads_as_much_as_it_was_tuned_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_model(tmp_path / "bert", "bert")
    names = ["no", "yes"]
    config = SimpleNamespace(to_dict=lambda: {"max_position_embeddings": 32, "model_type": "bert"})
    found = SimpleNamespace(label_names=names, model=SimpleNamespace(config=config))
    monkeypatch.setattr("pipeline_lib.retrieval.search.load_teacher", lambda *_: found)
    assert CrossEncoder.of(folder).max_length == 32
    write_json(folder / "training.json", {"max_length": 20})
    assert (CrossEncoder.of(folder).max_length, CrossEncoder.of(folder).output) == (20, 1)


class Everything:
    """Stands for an approximate index that finds the last rows."""

    def candidates(self, queries: np.ndarray, count: int) -> list[np.ndarray]:
        return [np.arange(49, 49 - count, -1)] * len(queries)


def test_candidates_are_scored_again(tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = made(tmp_path / "index", encoder)
    own = load_encoder(encoder)
    _, order = cosine_order(own.encode(QUERIES), catalogue.vectors[np.arange(40, 50)])
    plain = by_cosine(catalogue)
    way = Search(catalogue, plain.encoder, plain.scorer, candidates=10)
    with pytest.raises(PotstillError, match=r"has no approximate index\. Build it with"):
        way.find(QUERIES, 3)
    monkeypatch.setattr(Search, "_approximate", Everything())
    assert rows_of(way.find(QUERIES, 3)) == (40 + order[:, :3]).tolist()
    with pytest.raises(PotstillError, match="first: 10 candidates, fewer than the 11"):
        way.find(QUERIES, 11)


def test_candidates_are_scored_again_by_the_students_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_student(tmp_path / "student", ["apart", "alike"])
    catalogue = made(tmp_path / "index", folder, storage="float32")
    scorer = pair_scorer(catalogue, None, None)
    exact = Search(catalogue, QueryEncoder.of(catalogue), scorer)
    wanted = [[hit for hit in own if hit.row >= 40] for own in exact.find(QUERIES, 50)]
    monkeypatch.setattr(Search, "_approximate", Everything())
    found = replace(exact, candidates=10).find(QUERIES, 10)
    assert rows_of(found) == rows_of(wanted)
    scores = [[[hit.score for hit in own] for own in hits] for hits in (found, wanted)]
    np.testing.assert_allclose(*scores, atol=1e-5)
    assert rows_of(found) != rows_of(replace(exact, scorer=CosineScorer(), candidates=10).find(QUERIES, 10))


def test_the_approximate_index_grows_with_the_rows(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(approximate.KINDS, "usearch", BruteForce)
    monkeypatch.setitem(sys.modules, "usearch", sys)
    first = made(tmp_path / "index", encoder, TEXTS[:30], approximate="usearch")
    grown, _ = add(first, [Rows(TEXTS)], ENGINE, segment_rows=16)
    assert grown.faults() == [] and len(list((tmp_path / "index").glob("approx*"))) == 1
    plain = by_cosine(grown)
    way = Search(grown, plain.encoder, plain.scorer, candidates=20)
    assert rows_of(way.find(QUERIES, 5)) == rows_of(plain.find(QUERIES, 5))
    assert add(grown, [Rows(TEXTS)], ENGINE)[0].contents == grown.contents
    # Building again keeps it, and the rows of other segments join it.
    made(tmp_path / "same", encoder, TEXTS[:32], approximate="usearch")
    with monkeypatch.context() as patched:
        patched.setattr(BruteForce, "new", None)
        for count in (32, 50):
            again = made(tmp_path / "same", encoder, TEXTS[:count], approximate="usearch")
            assert len(again) == count and again.faults() == []
            way = Search(again, plain.encoder, plain.scorer, candidates=20)
            assert rows_of(way.find(QUERIES, 5)) == rows_of(by_cosine(again).find(QUERIES, 5))
    # One of other rows, of another kind or a damaged one is made anew.
    monkeypatch.setitem(approximate.KINDS, "faiss", BruteForce)
    monkeypatch.setitem(sys.modules, "faiss", sys)
    flip_byte(again.folder / again.contents.approximate.name)
    for kind, texts in (("usearch", TEXTS), ("faiss", TEXTS), ("faiss", TEXTS[::-1])):
        again = made(tmp_path / "same", encoder, texts, approximate=kind)
        way = Search(again, plain.encoder, plain.scorer, candidates=20)
        assert rows_of(way.find(QUERIES, 5)) == rows_of(by_cosine(again).find(QUERIES, 5))
        assert again.faults() == [] and len(list(again.folder.glob("approx*"))) == 1
    # Another index of the same name is noticed by its digest, one of other rows before it is read.
    flip_byte(grown.folder / grown.contents.approximate.name)
    assert len(grown.faults()) == 1
    stale = replace(grown.contents.approximate, answers_to="0" * 64)
    other = replace(grown, contents=replace(grown.contents, approximate=stale))
    with pytest.raises(PotstillError, match="missing, truncated or of other rows"):
        Search(other, plain.encoder, plain.scorer, candidates=20).find(QUERIES, 5)


@pytest.mark.parametrize("kind", ["usearch", "faiss"])
def test_an_approximate_index_finds_nearly_all(tmp_path: Path, encoder: Path, kind: str) -> None:
    pytest.importorskip(kind, reason=f"{kind} is an extra")
    catalogue = made(tmp_path / "index", encoder, TEXTS[:30], approximate=kind)
    catalogue, _ = add(catalogue, [Rows(TEXTS)], ENGINE)
    assert catalogue.faults() == [] and len(list((tmp_path / "index").glob("approx*"))) == 1
    assert share_found(catalogue) >= 0.95
    path = catalogue.folder / catalogue.contents.approximate.name
    whole, text = path.read_bytes(), TEXTS[0]
    for damaged in (None, whole[:-8], whole[:50]):
        path.write_bytes(damaged) if damaged else path.unlink()
        with pytest.raises(PotstillError, match=r"missing, truncated .* `distill index add`"):
            share_found(catalogue)
        # Adding, even what is known, builds it again.
        assert add(catalogue, [Rows([text])], ENGINE)[0].faults() == []
    # One of other vectors is not added to.
    other = made(tmp_path / "other", encoder, TEXTS[::-1], approximate=kind)
    path.write_bytes((other.folder / other.contents.approximate.name).read_bytes())
    assert share_found(add(catalogue, [Rows([f"{text} {text}"])], ENGINE)[0]) >= 0.95


@pytest.mark.parametrize("kind", ["usearch", "faiss"])
def test_the_same_vectors_give_the_same_approximate_index(tmp_path: Path, kind: str) -> None:
    pytest.importorskip(kind, reason=f"{kind} is an extra")
    vectors = np.random.default_rng(1).standard_normal((2000, 16)).astype(np.float32)
    built = []
    for number in range(3):
        path = tmp_path / str(number)
        blocks = [(0, vectors[:900]), (900, vectors[900:])]
        approximate.write_approximate(kind, path, blocks, 16)
        built.append(path.read_bytes())
    assert built[0] == built[1] == built[2]


def share_found(catalogue: Catalogue) -> float:
    """Return which share of the five nearest rows is found approximately."""
    plain = by_cosine(catalogue)
    way = Search(catalogue, plain.encoder, plain.scorer, candidates=20)
    wanted, found = rows_of(plain.find(TEXTS, 5)), rows_of(way.find(TEXTS, 5))
    shared = [len({*a} & {*b}) for a, b in zip(wanted, found, strict=True)]
    return sum(shared) / (5 * len(TEXTS))


def test_a_library_that_is_not_installed_is_named(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "usearch", None)
    with pytest.raises(PotstillError, match=r"pip install 'potstill\[usearch\]'"):
        made(tmp_path / "index", encoder, approximate="usearch")
    assert not (tmp_path / "index").exists()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "bert", "bert")


class TestAsymmetric:
    """Documents by a transformers model, queries by an encoder that was trained to it."""

    def index(self, folder: Path, model: Path, **form: object) -> Catalogue:
        own = EncoderReference.to(model, "mean", 16)
        return build(folder, own, [Rows(FILMS)], Form("float32", **form), ENGINE)[0]

    def trained(
        self, folder: Path, model: str, mean: np.ndarray | None, pooling: str = "mean",
        max_length: int = 16,
    ) -> Path:  # fmt: skip
        write_encoder(folder)
        Targets(model, pooling, max_length, mean).save(folder)
        return folder

    def test_documents_are_embedded_by_the_model(self, tmp_path: Path, model: Path) -> None:
        catalogue = self.index(tmp_path / "index", model)
        documents = EncoderReference.to(model, "mean", 16).load().encode(FILMS)
        assert documents.shape == (len(FILMS), WIDTH)
        np.testing.assert_allclose(next(catalogue.blocks())[1], documents, atol=1e-6)
        found = by_cosine(catalogue).find(FILMS[:1], 1)
        assert found[0][0].score == pytest.approx(1.0, abs=1e-5)

    def test_queries_of_an_encoder_trained_to_it(self, tmp_path: Path, model: Path) -> None:
        catalogue = self.index(tmp_path / "index", model)
        documents = next(catalogue.blocks())[1]
        mean = documents.mean(0)
        queries = load_encoder(write_encoder(tmp_path / "same")).encode(QUERIES)
        for name, own in (("plain", None), ("centred", mean)):
            folder = self.trained(tmp_path / name, digest_model(model), own)
            way = Search(catalogue, QueryEncoder.of(catalogue, folder), CosineScorer())
            _, order = cosine_order(queries, documents if own is None else documents - mean)
            assert rows_of(way.find(QUERIES, 6)) == order[:, :6].tolist()

    def test_a_centred_index_answers_as_one_centred_while_searching(self, tmp_path: Path, model: Path) -> None:
        plain = self.index(tmp_path / "plain", model)
        mean = next(plain.blocks())[1].mean(0)
        folder = self.trained(tmp_path / "encoder", digest_model(model), mean)
        form = {"mean": mean, "normalised": True}
        centred = self.index(tmp_path / "centred", model, **form)
        ways = [Search(c, QueryEncoder.of(c, folder), CosineScorer()) for c in (plain, centred)]
        first, second = (rows_of(way.find(QUERIES, 6)) for way in ways)
        assert first == second
        # The model's own queries are centred as its documents are.
        own = by_cosine(centred).find(FILMS[:1], 1)
        assert own[0][0].score == pytest.approx(1.0, abs=1e-5)

    def test_another_space_is_refused(self, tmp_path: Path, model: Path) -> None:
        catalogue = self.index(tmp_path / "index", model)
        mean = next(catalogue.blocks())[1].mean(0)
        cases = {
            "untrained": (write_encoder(tmp_path / "untrained"), "not trained on a model's vectors"),
            "other": (self.trained(tmp_path / "other", "0" * 64, None), "vectors of another model"),
            "pooling": (
                self.trained(tmp_path / "pooling", digest_model(model), None, pooling="cls"),
                "Build the index with `--pooling cls`",
            ),
            "longer": (
                self.trained(tmp_path / "longer", digest_model(model), None, max_length=32),
                "Build the index with `--max-length 32`",
            ),
        }
        for folder, message in cases.values():
            with pytest.raises(PotstillError, match=message):
                QueryEncoder.of(catalogue, folder)
        with pytest.raises(PotstillError, match="not trained on a model's vectors"):
            targets_in_space(tmp_path / "untrained", catalogue.contents.encoder)
        normalised = self.index(tmp_path / "normalised", model, normalised=True)
        centred = self.trained(tmp_path / "encoder", digest_model(model), mean)
        with pytest.raises(PotstillError, match=r"were normalised uncentred\. .* `--centre"):
            QueryEncoder.of(normalised, centred)
        taken = self.index(tmp_path / "taken", model, mean=mean)
        with pytest.raises(PotstillError, match="Build the index without `--centre`"):
            QueryEncoder.of(taken, self.trained(tmp_path / "raw", digest_model(model), None))
        with pytest.raises(PotstillError, match="different means subtracted"):
            QueryEncoder.of(taken, self.trained(tmp_path / "elsewhere", digest_model(model), mean + 1))
        # An index of an encoder's own vectors is searched by that encoder alone.
        own = made(tmp_path / "own", centred)
        with pytest.raises(PotstillError, match="not the encoder of these vectors"):
            QueryEncoder.of(own, write_encoder(tmp_path / "second", seed=9))
