"""Which words a prediction hangs on, with models whose answer is known."""

from collections.abc import Sequence

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import Text
from pipeline_lib.models.word_importance import as_json, masked_variants, word_importance

NAMES = ["negative", "positive"]


def reads_good(texts: Sequence[Text]) -> np.ndarray:
    """A model that is sure where it reads "good", and else cannot tell."""
    return np.array([[0.0, 30.0 if "good" in str(text) else 0.0] for text in texts])


def test_the_word_that_tells_costs_a_bit() -> None:
    found = word_importance("A good film.", reads_good, "[MASK]", False)
    assert found.words == (["A", "good", "film", "."],)
    assert found.entropy == pytest.approx(0.0, abs=1e-9)
    assert found.changes == pytest.approx([0.0, 1.0, 0.0, 0.0], abs=1e-9)


def test_the_words_of_both_sentences_of_a_pair_are_masked_in_turn() -> None:
    asked: list[Text] = []

    def predict(texts: Sequence[Text]) -> np.ndarray:
        asked.extend(texts)
        return reads_good(texts)

    found = word_importance(("good", "a good plot"), predict, "<mask>", False)
    assert asked == [
        ("good", "a good plot"),
        ("<mask>", "a good plot"),
        ("good", "<mask> good plot"),
        ("good", "a <mask> plot"),
        ("good", "a good <mask>"),
    ]
    assert found.words == (["good"], ["a", "good", "plot"])
    # What stands twice is not missed once.
    assert np.abs(found.changes).max() < 1e-9


def test_a_masked_word_keeps_its_place_among_spaces_and_signs() -> None:
    assert masked_variants("It  isn't, no", "#") == [
        "# isn't, no",
        "It #n't, no",
        "It is#, no",
        "It isn't# no",
        "It isn't, #",
    ]


def test_json_holds_plain_values_and_the_class_without_each_word() -> None:
    def either(texts: Sequence[Text]) -> np.ndarray:
        return np.array([[1.0, 3.0] if "good" in text else [2.0, 0.0] for text in texts])

    found = as_json("good film", {"a": word_importance("good film", either, "[MASK]", False)}, NAMES)
    assert (found["text"], found["words"]) == (["good film"], [["good", "film"]])
    own = found["models"]["a"]
    assert own["label"] == "positive" and own["masked_labels"] == ["negative", "positive"]
    assert sum(own["probabilities"].values()) == pytest.approx(1.0)
    assert own["changes"] == [0.0, 0.0]


def test_of_a_regression_the_change_of_the_score_counts() -> None:
    def counts(texts: Sequence[Text]) -> np.ndarray:
        return np.array([[3.0 * ("good" in text) - ("dull" in text)] for text in texts])

    found = word_importance("A good dull film", counts, "[MASK]", True)
    assert found.changes.tolist() == [0.0, -3.0, 1.0, 0.0]
    own = as_json("A good dull film", {"a": found}, ["score"])["models"]["a"]
    assert own == {"score": 2.0, "changes": [0.0, -3.0, 1.0, 0.0]}


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(PotstillError, match="no word to mask"):
        word_importance("  ", reads_good, "[MASK]", False)
