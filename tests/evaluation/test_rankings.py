"""Rankings: by vectors, by a teacher's order, and scored."""

import numpy as np
import pytest

from pipeline_lib.evaluation.collection import Collection
from pipeline_lib.evaluation.rankings import in_order, log_odds, ranking, reranked
from pipeline_lib.retrieval.scoring import CosineScorer

VECTORS = {"north": (0.0, 1.0), "east": (1.0, 0.0), "northeast": (1.0, 1.0), "up": (0.1, 2.0)}


def encode(texts: list[str]) -> np.ndarray:
    return np.array([VECTORS[text] for text in texts], np.float32)


def test_the_best_come_first_and_a_querys_own_text_is_left_out() -> None:
    judged = [("north", "up", 1.0), ("east", "east", 1.0)]
    collection = Collection.of(["north", "east"], VECTORS, judged, 1.0, False)
    assert collection.own == [0, None]
    found = ranking(encode, CosineScorer(), collection, 4)
    # Four documents: three are left of north's, and its own place is empty.
    assert found.tolist() == [[3, 2, 1, -1], [1, 2, 3, 0]]
    assert ranking(encode, CosineScorer(), collection, 2).tolist() == [[3, 2], [1, 2]]


def test_a_teacher_puts_the_first_into_its_order() -> None:
    rankings = np.array([[5, 3, 1, 0], [2, 4, -1, -1]])
    orders = [{5: 0.1, 3: 0.5, 1: 0.5, 9: 7.0}, {2: 1.0, 4: 2.0}]
    # Of equals the earlier document; what lies behind the first three stays.
    assert reranked(rankings, orders, 3).tolist() == [[1, 3, 5, 0], [4, 2, -1, -1]]
    assert rankings[0, 0] == 5
    assert in_order(orders[0]) == [9, 1, 3, 5]


def test_log_odds() -> None:
    logits = np.array([[0.0, 1.0, 2.0], [30.0, 0.0, 60.0]], np.float32)
    shares = np.exp(logits[0]) / np.exp(logits[0]).sum()
    assert log_odds(logits, 2)[0] == pytest.approx(np.log(shares[2] / (1 - shares[2])))
    # In float64 too the probability is 1; the odds are not.
    assert log_odds(logits, 2)[1] == pytest.approx(30.0)
    assert log_odds(logits[:, :2], 1).tolist() == pytest.approx([1.0, -30.0])
    assert log_odds(logits[:, :1], None).tolist() == [0.0, 30.0]
