"""Rankings: by vectors, by students, by a teacher's order, and scored."""

from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.networks.architectures import build_encoder
from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.sentence_encoder import load_encoder, save_encoder
from pipeline_lib.models.students.student import build_student, load_student, save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import Params, student_settings
from pipeline_lib.retrieval.evaluation.collection import Collection, read_collection
from pipeline_lib.retrieval.evaluation.measures import against_judgements
from pipeline_lib.retrieval.evaluation.rankings import in_order, log_odds, ranking, reranked, retrieval_scores
from pipeline_lib.retrieval.scoring import CosineScorer
from pipeline_lib.shards.vectors import unit

from .test_collection import from_pairs, make_params, write_pairs

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
PAIRS = [("films ?", "about films .", 0), ("films ?", "no title", 0), ("plots ?", "about plots .", 0)]
STUDENT = {"kind": "student", "task": "neighbours", "method": "bilstm"}
SYSTEMS = {
    "f": STUDENT | {"score": "f", "label": "apart"},
    "cosine": STUDENT | {"score": "cosine", "label": None},
    "sra": {"kind": "encoder", "encoder": "sra"},
}


@pytest.fixture
def world(tmp_path: Path) -> tuple[Params, Layout]:
    """Return a row of retrieval, and where its pairs, random students and an encoder lie."""
    layout = Layout(tmp_path / "data")
    write_pairs(layout, "neighbours", "dev", [label for _, _, label in PAIRS], PAIRS)
    params = make_params(from_pairs(relevant="apart"), systems=SYSTEMS, at=[1, 2])
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
    return params, layout


def plain(scores: np.ndarray, collection: Collection) -> dict[str, float]:
    order = np.argsort(-scores, axis=1, kind="stable")
    return against_judgements(order, collection.relevant, collection.gains, [1, 2])


def test_students_and_encoders_rank_as_they_answer(world: tuple[Params, Layout]) -> None:
    params, layout = world
    found = retrieval_scores(params, "mine", layout)
    assert (found["queries"], found["documents"], found["relevant"]) == (2, 3, 3)
    assert found["teacher"] is None and found["systems"]["f"]["teacher"] is None
    collection = read_collection(params, "mine", layout)
    pairs = [(query, text) for query in collection.queries for text in collection.documents]
    wanted: dict[str, list[dict[str, float]]] = {"f": [], "cosine": []}
    for seed in params.seeds:
        folder = layout.student("neighbours", "bilstm", seed)
        # The query is the first sentence, and f ranks by the class `apart`.
        logits = load_student(folder).logits(pairs)
        wanted["f"].append(plain((logits[:, 0] - logits[:, 1]).reshape(2, 3), collection))
        wanted["cosine"].append(plain(_cosines(folder, collection), collection))
    wanted["sra"] = [plain(_cosines(layout.encoder("sra"), collection), collection)]
    for system, scores in wanted.items():
        judged = found["systems"][system]["judged"]
        assert [*judged] == ([""] if system == "sra" else [*map(str, params.seeds)])
        assert all(of_seed == pytest.approx(own) for of_seed, own in zip(judged.values(), scores, strict=True))


def _cosines(folder: Path, collection: Collection) -> np.ndarray:
    encode = load_encoder(folder).encode
    return unit(encode(collection.queries)) @ unit(encode(collection.documents)).T


def test_a_student_that_is_not_there_is_named(world: tuple[Params, Layout]) -> None:
    params, layout = world
    (layout.student("neighbours", "bilstm", params.seeds[-1]) / "config.json").unlink()
    with pytest.raises(PotstillError, match=r"bilstm.3: no model here\. Run `distill run`"):
        retrieval_scores(params, "mine", layout)
