"""What models do not read of texts: scripts without spaces, other languages, what is cut."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing
from transformers import PreTrainedTokenizerFast

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json
from pipeline_lib.base.text import Text
from pipeline_lib.models.text_checks import count_pieces, english_share, other_script
from pipeline_lib.models.word_importance import as_json, masked_variants, word_importance

SCRIPTS = {
    "这部电影非常好看": ("Chinese or Japanese", True),
    "とても面白い映画でした": ("Chinese or Japanese", True),
    "หนังเรื่องนี้สนุกมาก": ("Thai", True),
    "ຮູບເງົານີ້ດີຫຼາຍ": ("Lao", True),
    "ဒီရုပ်ရှင်ကောင်းတယ်": ("Burmese", True),
    "ភាពយន្តនេះល្អណាស់": ("Khmer", True),
    "очень хороший фильм": ("Cyrillic", False),
    "πολύ καλή ταινία": ("Greek", False),
    "فيلم جيد جدا": ("Arabic", False),
    "סרט טוב מאוד": ("Hebrew", False),
    "बहुत अच्छी फिल्म": ("Indic", False),
    "아주 좋은 영화": ("Korean", False),
}
WORDS = ["a", "good", "film", "##s", "и", "##и", "ф", "##л", "##ь", "##м", "好", "看"]


@pytest.mark.parametrize("text", SCRIPTS)
def test_the_script_of_texts_is_named(text: str) -> None:
    script = other_script([text, ("ok", text)])
    assert (script.name, script.is_unspaced) == SCRIPTS[text]
    assert script.share > 0.8
    mixed = other_script([text, "and a long remark in English, with many more of its letters"])
    assert mixed.share < 0.4


@pytest.mark.parametrize("text", ["a good film", "één très gute película", "123 !?", "🎉🎉", ""])
def test_latin_has_no_other_script(text: str) -> None:
    assert other_script([text]) is None


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the tokenizer of a model of English, which has a few other letters."""
    signs = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = {word: number for number, word in enumerate([*signs, *WORDS])}
    tokenizer = Tokenizer(WordPiece(words, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    folder = tmp_path_factory.mktemp("model")
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), signs, strict=True))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{name}_token": sign for name, sign in names.items()}
    ).save_pretrained(folder)
    write_json(folder / "config.json", {"model_type": "bert"})
    return folder


@pytest.mark.parametrize(
    ("texts", "lengths", "foreign"),
    [
        (["a good film", "good films good films"], [5, 8], False),
        ([("a film", "good"), ("a", "a")], [6, 5], False),
        # Emoji and signs are no language.
        (["good film 🎉 🎉 🎉", "a film !? ☃"], [7, 7], False),
        # Unknown words, and a language that is spelt.
        (["ein sehr guter film", "a film"], [6, 4], True),
        (["фильм фильм"], [12], True),
        # A model of Chinese has a piece for each sign.
        (["好看好看"], [6], False),
    ],
)
def test_pieces_are_counted(model: Path, texts: list[str], lengths: list[int], foreign: bool) -> None:
    counts = count_pieces(model, texts)
    assert counts.lengths.tolist() == lengths
    assert counts.is_foreign(other_script(texts)) is foreign


def test_unknown_words_and_english(model: Path) -> None:
    counts = count_pieces(model, ["ein film 🎉", "ein guter film"])
    assert counts.examples == ["ein", "guter"]
    assert counts.unknown == pytest.approx((3 + 3 + 5) / (7 + 12))
    # Function words tell english from other languages.
    english = ["The plot is thin, but they have made the most of it.", "show flights to Boston"]
    assert english_share(english) > 0.25
    for others in (
        ["Der Film war so langweilig, dass ich in der Mitte einschlief."],
        ["No me gustó la película, a pesar de la música."],
        ["Deze film was over het algemeen goed, maar we hadden er meer van verwacht."],
        ["这部电影非常好看"],
        [],
    ):
        assert english_share(others) == 0.0


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
