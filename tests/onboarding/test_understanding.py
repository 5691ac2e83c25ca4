"""What files are about: usual names and only candidates decide, flags overrule, all else is asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.onboarding import columns
from pipeline_lib.onboarding.questions import Question, Request, refuse
from pipeline_lib.onboarding.understanding import TaskGuess, understand
from pipeline_lib.tables.contents import Content

from .made_up import content_of, find, review

TEXTS, OTHERS = ([review(n + start) for n in range(40)] for start in (0, 500))
SHORT = [f"lamp {n}" for n in range(40)]
LABELS, USERS = ["go", "stay"] * 20, [f"u{n % 7}" for n in range(40)]
SCORES = [n / 8 for n in range(40)]
DATES = [f"Mon Apr {1 + n % 28:02d} 22:{n:02d}:45 PDT 2009" for n in range(40)]


def content(name: str = "all.csv", **given: Sequence[Any]) -> Content:
    return content_of(name, given)


def about(given: Content, answered: Sequence[str] | None = None, ask: Any = refuse, **overrides: Any) -> TaskGuess:
    return understand({"all": given}, Request(**overrides), answered, ask)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"id": range(40), "review": TEXTS}, ["review"]),
        ({"tweet ": SHORT, "lang": USERS}, ["tweet "]),
        ({"date": DATES, "note": TEXTS}, ["note"]),
        ({"created_at": DATES, "text": SHORT}, ["text"]),
        ({"data.text": SHORT}, ["data.text"]),
        ({"sentence1": TEXTS, "sentence2": OTHERS}, ["sentence1", "sentence2"]),
        ({"premise": TEXTS, "hypothesis": SHORT}, ["premise", "hypothesis"]),
        ({"text_a": TEXTS, "text_b": OTHERS}, ["text_a", "text_b"]),
        ({"#1 String": TEXTS, "#2 String": OTHERS}, ["#1 String", "#2 String"]),
        ({"query": SHORT, "passage": TEXTS}, ["query", "passage"]),
        (
            {"title": TEXTS, "body": OTHERS},
            r"several columns may be the text.* body \| title \| body,title.*--text body",
        ),
        ({"text": SHORT, "explanation": TEXTS}, r"several columns may be the text"),
        ({"q": SHORT}, r"no column reads like text.* q\. .*--text q"),
        ({"n": range(40)}, r"no column can be the text; there are n, label"),
    ],
)
def test_texts(given: dict[str, Any], text: list[str] | str) -> None:
    given = given | {"label": LABELS}
    if isinstance(text, list):
        assert about(content_of("all.csv", given)).text == text
    else:
        with pytest.raises(PotstillError, match=text):
            about(content_of("all.csv", given))


def test_columns_without_names_are_no_pair() -> None:
    given = {f"column_{n}": values for n, values in enumerate((TEXTS, USERS, LABELS), 1)}
    nameless = content_of("all.csv", given, columns=[*given])
    assert about(nameless, label="column_3").text == ["column_1"]
    assert about(content(text=TEXTS, **{"0": OTHERS, "1": OTHERS, "label": LABELS}), text=["text"]).text == ["text"]


def test_texts_by_flag() -> None:
    given = content(review=TEXTS, title=OTHERS, label=LABELS)
    assert about(given, text=["title"]).text == ["title"]
    assert about(given, ask=lambda question: question.choices[-1]).text == ["review", "title"]
    name = "What did you like, if anything"
    parts = [part.strip() for part in name.split(",")]
    assert about(content_of("all.csv", {name: TEXTS, "label": LABELS}), text=parts).text == [name]
    others = content_of("all.csv", {"n": range(40), "label": LABELS}, others={"text": "binary"})
    with pytest.raises(PotstillError, match=r"no column 'text'; .* neither text nor numbers: text \(binary\)"):
        about(others, text=["text"])


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ({"label": LABELS, "user": USERS}, "label"),
        ({"airlineSentiment": LABELS, "user": USERS}, "airlineSentiment"),
        ({"star_rating": LABELS, "user": USERS}, "star_rating"),
        ({"meta.label": LABELS, "user": USERS}, "meta.label"),
        ({"Quality": LABELS, "user": USERS}, "Quality"),
        ({"user": USERS}, r"'user', whose name does not suggest it.*--label user.*--unlabelled all\.csv"),
        ({"a": LABELS, "b": LABELS}, r"which column is the label\?.*--label"),
        ({"label": ["x"] * 40}, r"no column can be the label.*\(label: 1 different value in 40 rows\).*--teacher FILE"),
    ],
)
def test_labels(given: dict[str, Any], label: str) -> None:
    given = {"text": TEXTS} | given
    if label in given:
        assert about(content_of("all.csv", given)).label == label
    else:
        with pytest.raises(PotstillError, match=label):
            about(content_of("all.csv", given))


def test_what_names_its_classes_or_has_no_name_is_the_label() -> None:
    given = {"text": TEXTS, "user": USERS, "coarse": [0, 1] * 20}
    guessed = about(content_of("all.csv", given, class_names={"coarse": ["food", "rooms"]}))
    assert guessed.label == "coarse" and guessed.labels == {"food": ["0"], "rooms": ["1"]}
    nameless = {"column_1": TEXTS, "column_2": USERS}
    assert about(content_of("all.csv", nameless, columns=[*nameless])).label == "column_2"
    assert about(content_of("all.csv", {"0": TEXTS, "1": USERS})).label == "1"


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("label", [0, 1, 2, 3], "classification"),
        ("label", range(77), "classification"),
        ("target", ["0.5", "1.5", "2", "3"], "4 different numbers, 0.5 to 3"),
        ("stars", [1, 2], "classification"),
        ("stars", [1, 2, 3, 5], "4 different whole numbers, 1 to 5.*--kind classification or --kind regression"),
        ("rating", range(30), "30 different whole numbers"),
        ("label", [f"c{n}" for n in range(250)], "or give --kind classification to keep them all"),
        ("score", [f"{n % 5},{n % 10}" for n in range(40)], r"decimal commas .*Write 4\.5 instead of 4,5"),
        ("score", ["4", "4,5", "5", "x"] + [f"{n},25" for n in range(96)], "decimal commas"),
        ("score", [f"{n} %" for n in range(40)], "45 instead of 45%"),
    ],
)
def test_classes_or_scores(name: str, values: Sequence[Any], kind: str) -> None:
    rows = [*values] * 4
    given = content_of("all.csv", {"review": [review(n) for n in range(len(rows))], name: rows})
    if kind in ("classification", "regression"):
        assert about(given, label=name).kind == kind
        return
    with pytest.raises(PotstillError, match=kind):
        about(given, label=name)
    assert about(given, label=name, kind="classification").kind == "classification"


def test_values_are_sampled_from_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_SAMPLE", 50)
    turns = columns.Column.of("label", pa.chunked_array([pa.array(["0.5", "1"] * 500)]))
    assert not turns.whole and turns.distinct == 2 and turns.filled == 1000
    rare = content(text=[review(n) for n in range(1000)], label=["ham"] * 999 + ["spam"])
    assert about(rare).labels == {"ham": ["ham"], "spam": ["spam"]}


def test_metrics_and_the_class_of_f1() -> None:
    rare, even = content(review=TEXTS, spam=["no"] * 35 + ["yes"] * 5), content(review=TEXTS, spam=["no", "yes"] * 20)
    guessed = about(rare)
    assert guessed.metrics == ["f1", "accuracy"] and guessed.positive == "yes"
    assert about(rare, positive="no").positive == "no" and about(even).metrics == ["accuracy"]
    assert about(rare, metrics=["matthews_correlation"]).positive is None
    assert about(even, metrics=["f1"]).f1_class == "yes" and about(even).f1_class is None
    three = content(review=TEXTS, spam=["no", "yes", "unsure", "no"] * 10)
    assert about(three, metrics=["f1"]).f1_class is None
    for given, overrides, message in (
        (rare, {"metrics": ["pearson"]}, "'pearson' is not a metric of a classification"),
        (rare, {"positive": "maybe"}, r"no class 'maybe'; there are no, yes"),
        (even, {"positive": "no"}, r"F1 is not among the metrics.*--metrics accuracy,f1"),
        (three, {"positive": "no", "metrics": ["f1"]}, "these are not two"),
        (content(review=TEXTS, score=SCORES), {"positive": "no"}, "these are not two"),
    ):
        with pytest.raises(PotstillError, match=message):
            about(given, **overrides)


def test_splits_are_drawn_or_given() -> None:
    given = content(review=TEXTS, label=[0, 1] * 20)
    assert about(given).split == {"dev": 0.2, "test": 0.2}
    with pytest.raises(PotstillError, match="--dev 0: learning rates"):
        about(given, dev=0.0)
    for wrong in ({"dev": 0.6, "test": 0.5}, {"text": ["label"], "label": "label"}):
        with pytest.raises(PotstillError, match="Correct the flag"):
            find(about(given, **wrong))


def test_nothing_labelled_needs_answers() -> None:
    given, classes = content(review=TEXTS), {"bad": ["bad"], "good": ["good"]}
    guessed = about(given, ["bad", "good"])
    assert guessed.label is None and guessed.labels == classes
    assert about(given, [], labels="bad;good").labels == classes
    scores = about(given, [], labels="0..5")
    assert scores.kind == "regression" and scores.labels == {"min": 0.0, "max": 5.0}
    for answered, message in (([], r"--labels 'bad;good', or the range"), (["bad"], "--teacher: only one class, bad")):
        with pytest.raises(PotstillError, match=message):
            about(given, answered)
    splits = {"train": given, "dev": content(review=TEXTS, label=[0, 1] * 20)}
    assert understand(splits, Request(), ["0", "1"], refuse).label == {"dev": "label"}
    with pytest.raises(PotstillError, match="column 'label' is only in dev"):
        understand(splits, Request(), None, refuse)
    asked: list[Question] = []
    with pytest.raises(PotstillError, match="or give these texts with --unlabelled"):
        about(content(text=TEXTS, user=USERS), ask=lambda question: asked.append(question) or "none")
    assert asked[0].choices == ["user", "none"]


def test_odd_rows_have_their_numbers() -> None:
    labels, texts = ["bad", "good"] * 20, [*TEXTS]
    labels[3], labels[9], labels[11] = "", "godo", "bad "
    texts[5], texts[7], texts[8] = "", texts[6], texts[1]
    given = content(review=texts, label=labels)
    findings = find(about(given))
    rows = {odd.reason: [row for _, row in odd.places] for odd in findings.odd}
    assert rows == {"with empty text": [7], "without a label": [5], "alone in their class": [11]}
    # What is alone in its class is in train.
    assert [odd.reason for odd in findings.stopping] == ["without a label"]
    assert findings.repeated == 2 and findings.conflicts == 2 and findings.classes["train"]["godo"] == 1
    others = find(about(given, labels="bad;good"))
    assert "with a label that belongs to no class" in {odd.reason for odd in others.stopping}
    assert sum(others.rows.values()) == 37
    given = content(review=TEXTS, score=[*(n / 10 for n in range(38)), "7.5", "x"])
    odd = find(about(given, label="score", kind="regression", labels="0..5")).stopping
    outside, words = "with a score outside the range 0 to 5", "with a label that is not a number"
    assert {one.reason: one.rows for one in odd} == {outside: [38], words: [39]}


def test_a_class_without_rows_to_learn_it_from() -> None:
    part = content(review=TEXTS, label=["a", "b"] * 20)
    splits = {"train": part, "dev": part, "test": content(review=TEXTS, label=["a", "b", "c", "a"] * 10)}
    with pytest.raises(PotstillError, match=r"all\.csv: no row has the label c"):
        find(understand(splits, Request(), None, refuse))
    # Without it, its rows are odd ones of the test set.
    findings = find(understand(splits, Request(labels="a;b"), None, refuse))
    assert [(odd.split, len(odd.rows)) for odd in findings.stopping] == [("test", 10)]


def test_leaks_between_splits() -> None:
    def part(name: str, start: int, label: Sequence[Any]) -> Content:
        return content(f"{name}.csv", review=[review(n) for n in range(start, start + 10)], label=label)

    splits = {
        "train": part("train", 0, [0, 1] * 5),
        "dev": part("dev", 8, [1] * 10),
        "test": part("test", 30, [""] * 10),
    }
    findings = find(understand(splits, Request(), None, refuse))
    [shared] = findings.shared
    assert (shared.split, shared.earlier, shared.rows, shared.other_label) == ("dev", "train", 2, 1)
    assert shared.places == [(Path("dev.csv"), 2), (Path("dev.csv"), 3)]
    assert findings.hidden == ["test"] and "test" not in findings.classes
    # Hidden scores are no scores.
    scored = content(review=TEXTS, score=[n / 10 for n in range(40)])
    splits = {"train": scored, "dev": scored, "test": content(review=TEXTS, score=["-1"] * 40)}
    guessed = understand(splits, Request(), None, refuse)
    assert guessed.labels == {"min": 0.0, "max": 4.0} and find(guessed).hidden == ["test"]
