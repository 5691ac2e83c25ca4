"""Which words a prediction hangs on, with models whose answer is known."""

from collections.abc import Sequence

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import Text
from pipeline_lib.models.word_importance import as_json, masked_variants, word_counts, word_importance

NAMES = ["negative", "positive"]


def reads_good(texts: Sequence[Text]) -> np.ndarray:
    """A model that is sure where it reads "good", and else cannot tell."""
    return np.array([[0.0, 30.0 if "good" in str(text) else 0.0] for text in texts])


def test_the_word_that_tells_costs_a_bit() -> None:
    found = word_importance("A good film.", reads_good, "[MASK]", False)
    assert found.words == (["A", "good", "film", "."],)
    assert found.entropy == pytest.approx(0.0, abs=1e-9)
    assert found.changes == pytest.approx([0.0, 1.0, 0.0, 0.0], abs=1e-9)
    # A masked word keeps its place among spaces and signs.
    assert masked_variants("It  isn't, no", "#") == [
        "# isn't, no",
        "It #n't, no",
        "It is#, no",
        "It isn't# no",
        "It isn't, #",
    ]
    # A text without words is refused.
    with pytest.raises(PotstillError, match="no word to mask"):
        word_importance("  ", reads_good, "[MASK]", False)
    # Words are counted up to a character.
    assert word_counts("one two three", [7]) == [2]
    assert word_counts(("one two", "three"), [0, 9]) == [0, 1]
    assert word_counts("one two") == [2]


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


def test_json_holds_plain_values() -> None:
    def either(texts: Sequence[Text]) -> np.ndarray:
        return np.array([[1.0, 3.0] if "good" in text else [2.0, 0.0] for text in texts])

    found = as_json("good film", {"a": word_importance("good film", either, "[MASK]", False)}, NAMES)
    assert (found["text"], found["words"]) == (["good film"], [["good", "film"]])
    own = found["models"]["a"]
    assert own["label"] == "positive" and own["masked_labels"] == ["negative", "positive"]
    assert sum(own["probabilities"].values()) == pytest.approx(1.0)
    assert own["changes"] == [0.0, 0.0]

    # Of a regression the change of the score counts.
    def counts(texts: Sequence[Text]) -> np.ndarray:
        return np.array([[3.0 * ("good" in text) - ("dull" in text)] for text in texts])

    found = word_importance("A good dull film", counts, "[MASK]", True)
    assert found.changes.tolist() == [0.0, -3.0, 1.0, 0.0]
    own = as_json("A good dull film", {"a": found}, ["score"])["models"]["a"]
    assert own == {"score": 2.0, "changes": [0.0, -3.0, 1.0, 0.0]}


def test_words_that_are_not_read_have_no_number_and_cost_nothing() -> None:
    asked: list[Text] = []

    def predict(texts: Sequence[Text]) -> np.ndarray:
        asked.extend(texts)
        return reads_good(texts)

    found = word_importance("a good film too", predict, "#", False, [2])
    assert asked == ["a good film too", "# good film too", "a # film too"]
    assert found.read == (2,)
    np.testing.assert_allclose(found.changes, [0.0, 1.0, np.nan, np.nan], atol=1e-9)
    plain = as_json("a good film too", {"a": found}, NAMES)["models"]["a"]
    assert plain["words_read"] == [2] and plain["changes"][2:] == [None, None]
    assert plain["masked_labels"][2:] == [None, None]
    pair = word_importance(("a good", "film too"), predict, "#", False, [0, 1])
    assert pair.read == (0, 1) and np.isnan(pair.changes).tolist() == [True, True, False, True]
