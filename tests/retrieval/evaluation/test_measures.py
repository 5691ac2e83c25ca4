"""Measures of rankings: by hand, and against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score, ndcg_score

from pipeline_lib.retrieval.evaluation.measures import against_judgements, against_order, ndcg, recall, reciprocal_rank

RANKINGS = np.array([[4, 0, 2, 1], [3, 1, 0, 4], [2, 1, 0, -1]])
RELEVANT = [{0, 1}, {3}, {4}]


def test_by_hand() -> None:
    assert recall(RANKINGS, RELEVANT, 1).tolist() == [0.0, 1.0, 0.0]
    assert recall(RANKINGS, RELEVANT, 2).tolist() == [0.5, 1.0, 0.0]
    assert recall(RANKINGS, RELEVANT, 4).tolist() == [1.0, 1.0, 0.0]
    assert reciprocal_rank(RANKINGS, RELEVANT, 4).tolist() == [0.5, 1.0, 0.0]
    assert reciprocal_rank(RANKINGS, RELEVANT, 1).tolist() == [0.0, 1.0, 0.0]
    binary = [dict.fromkeys(own, 1.0) for own in RELEVANT]
    second, fourth = 1 / np.log2(3), 1 / np.log2(5)
    found = ndcg(RANKINGS, binary, 4)
    assert found == pytest.approx([(second + fourth) / (1 + second), 1.0, 0.0])
    # Of two answers only one fits: the best order has one, too.
    assert ndcg(RANKINGS, binary, 1).tolist() == [0.0, 1.0, 0.0]
    graded = [{0: 1.0, 1: 3.0}, {3: 2.0}, {4: 1.0}]
    assert ndcg(RANKINGS, graded, 4)[0] == pytest.approx((second + 3 * fourth) / (3 + second))


def test_a_query_without_answers_has_zero() -> None:
    assert recall(RANKINGS[:1], [set()], 4).tolist() == [0.0]
    assert reciprocal_rank(RANKINGS[:1], [set()], 4).tolist() == [0.0]
    assert ndcg(RANKINGS[:1], [{}], 4).tolist() == [0.0]
    assert ndcg(RANKINGS[:1], [{4: 0.0}], 4).tolist() == [0.0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3, 20])
def test_as_scikit_learn(seed: int, k: int) -> None:
    drawn = np.random.default_rng(seed)
    # Scores with ties: the ranking has the lower number first, as ignore_ties takes them.
    scores = drawn.integers(0, 6, (5, 12)).astype(float)
    worth = drawn.integers(0, 4, (5, 12)) * (drawn.random((5, 12)) < 0.4)
    worth[:, 3] = 1
    rankings = np.argsort(-scores, axis=1, kind="stable")
    gains = [{n: float(w) for n, w in enumerate(row)} for row in worth]
    # Its own order of ties is another: the distance is less than any between two scores.
    broken = scores - np.arange(12) * 1e-6
    wanted = [ndcg_score([w], [s], k=k, ignore_ties=True) for w, s in zip(worth, broken, strict=True)]
    assert ndcg(rankings, gains, k) == pytest.approx(wanted)
    # With one answer a query's average precision is its reciprocal rank.
    one = np.zeros((5, 12), int)
    one[np.arange(5), drawn.integers(0, 12, 5)] = 1
    relevant = [{int(row.argmax())} for row in one]
    precision = label_ranking_average_precision_score(one, broken)
    assert reciprocal_rank(rankings, relevant, 12).mean() == pytest.approx(precision)


def test_against_judgements_names_every_measure() -> None:
    binary = [dict.fromkeys(own, 1.0) for own in RELEVANT]
    found = against_judgements(RANKINGS, RELEVANT, binary, [1, 4])
    assert list(found) == ["recall@1", "recall@4", "mrr@4", "ndcg@1", "ndcg@4"]
    assert found["recall@4"] == pytest.approx(2 / 3)
    assert found["mrr@4"] == pytest.approx(0.5)


def test_against_another_order() -> None:
    order = [[0, 4, 2]]
    same = against_order(np.array([[0, 4, 2]]), order, [1, 3])
    assert set(same.values()) == {1.0}
    found = against_order(np.array([[4, 0, 1]]), order, [1, 3])
    assert (found["recall@1"], found["recall@3"]) == (0.0, pytest.approx(2 / 3))
    assert (found["mrr@3"], found["ndcg@1"]) == (0.5, 0.0)
    # Gains 3, 2, 1 for 0, 4, 2.
    second, third = 1 / np.log2(3), 0.5
    assert found["ndcg@3"] == pytest.approx((2 + 3 * second) / (3 + 2 * second + third))
