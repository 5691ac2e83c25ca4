"""Rankings: by vectors, by students, by a teacher's order, and scored."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.networks.encoders import build_encoder
from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.sentence_encoder import load_encoder, save_encoder
from pipeline_lib.models.students.student import build_student, load_student, save_student
from pipeline_lib.models.students.vector_targets import Targets
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.params import Params, Retrieval, student_settings
from pipeline_lib.results.schema import Rankings, SeedScores
from pipeline_lib.retrieval.embedders import EncoderReference
from pipeline_lib.retrieval.evaluation import rankings
from pipeline_lib.retrieval.evaluation.collection import Collection, read_collection
from pipeline_lib.retrieval.evaluation.measures import against_judgements
from pipeline_lib.retrieval.evaluation.rankings import in_order, log_odds, ranking, reranked, retrieval_scores
from pipeline_lib.retrieval.evaluation.sentence_vectors import model_encoder
from pipeline_lib.retrieval.scoring import CosineScorer
from pipeline_lib.shards.vectors import unit
from tests.kit.pretrained import write_model

from .test_collection import make_params, write_files

VECTORS = {"north": (0.0, 1.0), "east": (1.0, 0.0), "northeast": (1.0, 1.0), "up": (0.1, 2.0)}


def encode(texts: list[str]) -> np.ndarray:
    return np.array([VECTORS[text] for text in texts], np.float32)


def test_the_best_come_first_and_a_querys_own_text_is_left_out() -> None:
    judged = [("north", "up", 1.0), ("east", "east", 1.0)]
    collection = Collection.of(["north", "east"], VECTORS, judged, 1.0, False)
    assert collection.own == [0, None]
    vectors = encode(collection.queries), encode(collection.documents)
    found = ranking(*vectors, CosineScorer(), collection, 4)
    # Four documents: three are left of north's, and its own place is empty.
    assert found.tolist() == [[3, 2, 1, -1], [1, 2, 3, 0]]
    assert ranking(*vectors, CosineScorer(), collection, 2).tolist() == [[3, 2], [1, 2]]


def test_a_teacher_puts_the_first_into_its_order() -> None:
    found = np.array([[5, 3, 1, 0], [2, 4, -1, -1]])
    orders = [{5: 0.1, 3: 0.5, 1: 0.5, 9: 7.0}, {2: 1.0, 4: 2.0}]
    # Of equals the earlier document; what lies behind the first three stays.
    assert reranked(found, orders, 3).tolist() == [[1, 3, 5, 0], [4, 2, -1, -1]]
    assert found[0, 0] == 5
    assert in_order(orders[0]) == [9, 1, 3, 5]


def test_log_odds() -> None:
    logits = np.array([[0.0, 1.0, 2.0], [30.0, 0.0, 60.0]], np.float32)
    shares = np.exp(logits[0]) / np.exp(logits[0]).sum()
    assert log_odds(logits, 2)[0] == pytest.approx(np.log(shares[2] / (1 - shares[2])))
    # In float64 too the probability is 1; the odds are not.
    assert log_odds(logits, 2)[1] == pytest.approx(30.0)
    assert log_odds(logits[:, :2], 1).tolist() == pytest.approx([1.0, -30.0])
    assert log_odds(logits[:, :1], None).tolist() == [0.0, 30.0]


WORDS = ["about", "films", "plots", "no", "title", ".", "?"]
COMMON = {"hidden": 5, "classifier": 4, "embeddings": "trained", "dropout": 0.1, "max_words": 8}
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t1\nq2\td2\t1\n"
STUDENT = {"kind": "student", "task": "neighbours", "method": "bilstm"}
SYSTEMS = {
    "f": STUDENT | {"score": "f", "label": "apart"},
    "cosine": STUDENT | {"score": "cosine", "label": None},
    "sra": {"kind": "encoder", "encoder": "sra"},
}


@pytest.fixture
def world(tmp_path: Path) -> tuple[Params, Layout]:
    """Return a row of retrieval in files, and where random students and an encoder lie."""
    source, layout = write_files(tmp_path / "files", QRELS), Layout(tmp_path / "data")
    params = make_params(source, systems=SYSTEMS, at=[1, 2])
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    settings = student_settings({"architecture": "bilstm"} | COMMON)
    for seed in params.seeds:
        torch.manual_seed(seed)
        config = StudentConfig(len(WORDS) + 2, 6, settings, True, ["apart", "neighbours"])
        folder = layout.student("neighbours", "bilstm", seed)
        save_student(folder, build_student(config, None), tokenizer)
    own = student_settings({"architecture": "bilstm_sra", "width": 7} | COMMON)
    encoder = build_encoder(own, len(WORDS) + 2, 6)
    save_encoder(layout.encoder("sra"), encoder, tokenizer, own)
    return params.model_copy(update={"inputs": str(tmp_path)}), layout


def plain(scores: np.ndarray, collection: Collection) -> dict[str, float]:
    order = np.argsort(-scores, axis=1, kind="stable")
    return against_judgements(order, collection.relevant, collection.gains, [1, 2])


def means(found: Rankings) -> dict[str, float]:
    return {measure: value.mean for measure, value in found.judged.items()}


def test_students_and_encoders_rank_as_they_answer(world: tuple[Params, Layout]) -> None:
    params, layout = world
    found = retrieval_scores(params, "mine", layout)
    assert (found.queries, found.documents, found.relevant) == (2, 3, 3)
    assert found.teacher is None and found.systems["f"].teacher is None
    collection = read_collection(params, "mine", layout)
    pairs = [(query, text) for query in collection.queries for text in collection.documents]
    wanted: dict[str, list[dict[str, float]]] = {"f": [], "cosine": []}
    for seed in params.seeds:
        folder = layout.student("neighbours", "bilstm", seed)
        # The query is the first sentence, and f ranks by the class `apart`.
        logits = load_student(folder).logits(pairs)
        wanted["f"].append(plain((logits[:, 0] - logits[:, 1]).reshape(2, 3), collection))
        wanted["cosine"].append(plain(_cosines(folder, collection), collection))
    for system, by_seed in wanted.items():
        for measure, value in found.systems[system].judged.items():
            expected = {str(seed): own[measure] for seed, own in zip(params.seeds, by_seed, strict=True)}
            assert value == SeedScores.of(expected)
    wanted_of_encoder = plain(_cosines(layout.encoder("sra"), collection), collection)
    assert means(found.systems["sra"]) == pytest.approx(wanted_of_encoder, abs=1e-6)


@pytest.mark.parametrize(("storage", "same"), [("float32", 1e-6), ("int8", 0.05)])
def test_vectors_are_cut_and_kept_as_in_an_index(
    world: tuple[Params, Layout], monkeypatch: pytest.MonkeyPatch, storage: str, same: float
) -> None:
    params, layout = world
    given: list[tuple[np.ndarray, np.ndarray]] = []
    own = rankings.ranking

    def noting(queries: np.ndarray, documents: np.ndarray, *rest: Any) -> np.ndarray:
        given.append((queries, documents))
        return own(queries, documents, *rest)

    monkeypatch.setattr(rankings, "ranking", noting)
    system = SYSTEMS["sra"] | {"dimensions": 3, "storage": storage}
    retrieval_scores(with_system(params, system), "mine", layout)
    collection = read_collection(params, "mine", layout)
    encode = load_encoder(layout.encoder("sra")).encode
    [(queries, documents)] = given
    np.testing.assert_allclose(queries, encode(collection.queries)[:, :3], atol=1e-6)
    np.testing.assert_allclose(documents, encode(collection.documents)[:, :3], atol=same)
    assert (storage == "float32") == (np.abs(documents - encode(collection.documents)[:, :3]).max() < 1e-6)
    with pytest.raises(PotstillError, match="dimensions: 8, but the vectors have 7 values"):
        retrieval_scores(with_system(params, SYSTEMS["sra"] | {"dimensions": 8}), "mine", layout)


def test_documents_by_the_model_and_queries_by_its_encoder(
    world: tuple[Params, Layout], monkeypatch: pytest.MonkeyPatch
) -> None:
    params, layout = world
    model = write_model(layout.model("minilm"), "bert")
    own = params.sentence_vectors.model_copy(update={"max_length": 16})
    settings = student_settings({"architecture": "bilstm_sra", "width": 16} | COMMON)
    encoder = build_encoder(settings, len(WORDS) + 2, 6)
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    save_encoder(layout.encoder("sra"), encoder, tokenizer, settings)
    system = SYSTEMS["sra"] | {"documents": "model"}
    given = with_system(params.model_copy(update={"sentence_vectors": own}), system)
    collection = read_collection(params, "mine", layout)
    documents = EncoderReference.to(model, own.pooling, 16).load().encode(collection.documents)
    for mean in (None, documents.mean(0)):
        Targets(digest_model(model), own.pooling, 16, mean).save(layout.encoder("sra"))
        found = retrieval_scores(given, "mine", layout)
        queries = load_encoder(layout.encoder("sra")).encode(collection.queries)
        shifted = documents if mean is None else documents - mean
        wanted = plain(unit(queries) @ unit(shifted).T, collection)
        assert means(found.systems["sra"]) == pytest.approx(wanted, abs=1e-6)
    # However many systems search among the model's vectors, it embeds the collection once.
    opened: list[str] = []

    def counted(params: Params, layout: Layout, *own: Any) -> Any:
        opened.append(own[0])
        return model_encoder(params, layout, *own)

    monkeypatch.setattr(rankings, "model_encoder", counted)
    alone = {"kind": "model", "model": "minilm", "pooling": own.pooling, "max_length": 16}
    systems = {"sra": system, "cut": system | {"dimensions": 4}, "model": alone}
    row = given.retrieval["mine"].model_dump() | {"systems": systems}
    several = given.model_copy(update={"retrieval": {"mine": Retrieval.model_validate(row)}})
    assert {*retrieval_scores(several, "mine", layout).systems} == {*systems}
    assert opened == ["minilm"]
    Targets("0" * 64, own.pooling, 16, None).save(layout.encoder("sra"))
    with pytest.raises(PotstillError, match="vectors of another model"):
        retrieval_scores(given, "mine", layout)


def with_system(params: Params, system: dict[str, Any]) -> Params:
    """Return the parameters with one system in their row."""
    row = params.retrieval["mine"].model_dump() | {"systems": {"sra": system}}
    return params.model_copy(update={"retrieval": {"mine": Retrieval.model_validate(row)}})


def _cosines(folder: Path, collection: Collection) -> np.ndarray:
    encode = load_encoder(folder).encode
    return unit(encode(collection.queries)) @ unit(encode(collection.documents)).T


def test_a_student_that_is_not_there_is_named(world: tuple[Params, Layout]) -> None:
    params, layout = world
    (layout.student("neighbours", "bilstm", params.seeds[-1]) / "config.json").unlink()
    with pytest.raises(PotstillError, match=r"bilstm.3: no model here\. Run `dvc repro`"):
        retrieval_scores(params, "mine", layout)
