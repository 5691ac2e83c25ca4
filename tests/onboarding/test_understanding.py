"""What files are about: guesses, flags in their place, questions where it is open."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.onboarding.findings import find, without_lonely
from pipeline_lib.onboarding.labels import classes_of, parse_labels, score_range, spelled
from pipeline_lib.onboarding.questions import Question, refuse
from pipeline_lib.onboarding.understanding import AnswerHints, Overrides, TaskGuess, understand
from pipeline_lib.tables.contents import Content

from .made_up import content_of, review

PAIRS = (("sentence1", "sentence2"), ("premise", "hypothesis"), ("text_a", "text_b"), ("#1 String", "#2 String"))


def content(name: str = "all.csv", **columns: Sequence[Any]) -> Content:
    return content_of(name, columns)


def reviews(rows: int = 40, **columns: Sequence[Any]) -> Content:
    return content(review=[review(n) for n in range(rows)], **columns)


def about(given: Content, **overrides: Any) -> TaskGuess:
    return understand({"all": given}, Overrides(**overrides), None, refuse)


def test_two_columns() -> None:
    found = about(reviews(id=range(40), sentiment=["bad", "good", "Good ", "good"] * 10))
    assert found.text == ["review"] and found.label == "sentiment"
    # What differs in case alone is one class.
    assert found.labels == {"bad": ["bad"], "good": ["Good", "good"]}
    assert found.kind == "classification" and found.metrics == ["accuracy"]
    assert found.split == {"dev": 0.2, "test": 0.2}


def test_a_rare_class_is_what_counts() -> None:
    found = about(reviews(spam=["no"] * 35 + ["yes"] * 5))
    assert found.metrics == ["f1", "accuracy"] and found.positive == "yes"
    own = about(reviews(spam=["no"] * 35 + ["yes"] * 5), metrics=["matthews_correlation"])
    assert own.metrics == ["matthews_correlation"] and own.positive is None
    with pytest.raises(PotstillError, match="'pearson' is not a metric of a classification"):
        about(reviews(spam=["no", "yes"] * 20), metrics=["pearson"])


def test_the_class_of_f1_can_be_named() -> None:
    rare, even = reviews(spam=["no"] * 35 + ["yes"] * 5), reviews(spam=["no", "yes"] * 20)
    assert about(rare, positive="no").positive == "no"
    assert about(even, metrics=["f1"]).f1_class == "yes"
    assert about(even, metrics=["f1"], positive="no").f1_class == "no"
    assert about(even).f1_class is None
    three = reviews(spam=["no", "yes", "unsure", "no"] * 10)
    assert about(three, metrics=["f1"]).f1_class is None
    for given, positive, metrics, message in (
        (rare, "maybe", [], r"no class 'maybe'; there are no, yes"),
        (even, "no", [], r"F1 is not among the metrics.*--metrics accuracy,f1"),
        (three, "no", ["f1"], r"3 classes"),
        (reviews(score=[n / 8 for n in range(40)]), "no", [], "scores have no classes"),
    ):
        with pytest.raises(PotstillError, match=f"--positive.*{message}"):
            about(given, positive=positive, metrics=metrics)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("label", [0, 1, 2, 3], "classification"),
        ("target", ["0.5", "1.5", "2", "3"], "regression"),
        ("stars", [1, 2], "classification"),
        ("stars", [1, 2, 3, 5], None),
        # Ids of classes, such as the 77 intents of BANKING77.
        ("intent", list(range(25)), "classification"),
        ("quality", list(range(25)), "regression"),
    ],
)
def test_classes_or_scores(name: str, values: list[Any], kind: str | None) -> None:
    given = reviews(len(values) * 4, **{name: values * 4})
    if kind is None:
        with pytest.raises(PotstillError, match=r"4 different whole numbers.*--kind"):
            about(given)
        assert about(given, kind="regression").labels == {"min": 1.0, "max": 5.0}
    else:
        assert about(given).kind == kind


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([f"{n % 5},{n % 10}" for n in range(40)], r"decimal commas\. Write 4\.5 instead of 4,5"),
        (["4", "4,5", "5", "x"] + [f"{n},25" for n in range(96)], "decimal commas"),
        ([f"{n} %" for n in range(40)], r"percent signs\. Write 45"),
    ],
)
def test_numbers_in_another_notation(values: list[str], message: str) -> None:
    given = reviews(len(values), score=values)
    for kind in (None, "regression"):
        with pytest.raises(PotstillError, match=rf"all\.csv: column 'score' has .*{message}"):
            about(given, kind=kind)
    assert about(given, kind="classification").kind == "classification"


def test_pairs_are_known_by_their_names() -> None:
    other = [review(n + 500) for n in range(40)]
    scores = [n / 8 for n in range(40)]
    for one, two in PAIRS:
        columns = {one: [review(n) for n in range(40)], two: other, "score": scores}
        found = about(content(**columns))
        assert found.text == [one, two] and found.labels == {"min": 0.0, "max": 5.0}


def test_what_is_open_is_asked() -> None:
    given = reviews(title=[review(n + 500) for n in range(40)], label=[0, 1] * 20)
    asked: list[Question] = []

    def ask(question: Question) -> str:
        asked.append(question)
        return question.choices[-1]

    found = understand({"all": given}, Overrides(), None, ask)
    assert found.text == ["review", "title"] and asked[0].choices[0] == "review"
    with pytest.raises(PotstillError, match=r"several columns read like text.*--text review"):
        about(given)
    assert about(given, text=["title"]).text == ["title"]
    assert about(reviews(reply=[review(n // 2) for n in range(40)]), label="reply").text == ["review"]
    with pytest.raises(PotstillError, match="--dev 0: learning rates"):
        about(reviews(label=[0, 1] * 20), dev=0.0)
    for wrong in ({"dev": 0.6, "test": 0.5}, {"text": ["label"], "label": "label"}):
        with pytest.raises(PotstillError, match="Correct the flag"):
            find(about(reviews(label=[0, 1] * 20), **wrong))
    with pytest.raises(PotstillError, match=r"which column is the label\?.*--label"):
        about(reviews(a=["x", "y"] * 20, b=["x", "y"] * 20))


def test_nothing_labelled_needs_answers() -> None:
    with pytest.raises(PotstillError, match=r"no column can be the label.*--teacher FILE"):
        about(reviews())
    hints = AnswerHints("classification", ["bad", "good"])
    found = understand({"all": reviews()}, Overrides(), hints, refuse)
    assert found.label is None and found.labels == {"bad": ["bad"], "good": ["good"]}
    logits = AnswerHints("regression", [], [1.5, 3.0])
    scores = understand({"all": reviews()}, Overrides(), logits, refuse)
    assert scores.kind == "regression" and scores.labels == {"min": 1.0, "max": 3.0}
    splits = {"train": reviews(), "dev": reviews(label=[0, 1] * 20)}
    assert understand(splits, Overrides(), hints, refuse).label == {"dev": "label"}


def of_numbers(numbers: Sequence[str | float], **overrides: Any) -> TaskGuess:
    """Understand unlabelled reviews, whose teacher's labels are numbers."""
    hints = AnswerHints(None, [], [*numbers])
    return understand({"all": reviews()}, Overrides(**overrides), hints, refuse)


def test_answers_that_are_numbers_may_be_classes() -> None:
    assert of_numbers([0, 1]).labels == of_numbers(["1", "0"]).labels == {"0": ["0"], "1": ["1"]}
    assert of_numbers([0.5, 1.5, 4]).labels == {"min": 0.0, "max": 4.0}
    with pytest.raises(PotstillError, match=r"5 different whole numbers, 1 to 5\..*--kind"):
        of_numbers([1, 2, 3, 4, 5])
    assert of_numbers([1, 2, 3, 4, 5], kind="regression").labels == {"min": 1.0, "max": 5.0}
    assert [*of_numbers(["1", "2", "3"], kind="classification").labels] == ["1", "2", "3"]
    # What --labels describes is not asked.
    assert [*of_numbers([0, 1, 2], labels="bad;fair;good").labels] == ["bad", "fair", "good"]
    assert of_numbers([1, 2, 3], labels="0..5").labels == {"min": 0.0, "max": 5.0}
    with pytest.raises(PotstillError, match=r"--teacher: only one class, 1\."):
        of_numbers([1])


def test_labels_can_be_merged() -> None:
    values = ["1", "2", "3", "4", "5"]
    # What no class has lies outside of ranges, and is left out.
    ranges = {"bad": {"min": 1.0, "max": 2.0}, "good": {"min": 4.0, "max": 5.0}}
    assert parse_labels("bad=1,2;good=4,5", values) == ranges
    assert parse_labels("bad=1..2; good=4..5", values) == ranges
    # 1.0 is 1, however it is written.
    assert parse_labels("bad=1,2;good=4,5", [f"{value}.0" for value in values]) == ranges
    assert parse_labels("bad=1,2,3;good=4,5", values) == {"bad": ["1", "2", "3"], "good": ["4", "5"]}
    for labels in (ranges, {"no": ["no"], "yes": ["y", "1"]}):
        assert parse_labels(spelled(labels), ()) == labels
    assert parse_labels("no;yes", ()) == {"no": ["no"], "yes": ["yes"]}
    # 3 is within 2 to 4: no range can leave it out.
    assert parse_labels("odd=1,5;even=2,4", values)["even"] == ["2", "4"]
    with pytest.raises(PotstillError, match="names 1 classes"):
        parse_labels("good=1", values)


def test_names_of_numbers() -> None:
    assert classes_of(["1", "0", "0"], ["neg", "pos"]) == {"neg": ["0"], "pos": ["1"]}
    assert list(classes_of(["10", "9", ""], None)) == ["9", "10"]
    # A column with gaps has 1.0 for 1 in many tools.
    assert classes_of(["0.0", "", "1.0", "1"], None) == {"0": ["0.0"], "1": ["1", "1.0"]}
    assert score_range(["0.1", "0.9", "x"], None) == {"min": 0.0, "max": 1.0}
    assert score_range([], "-4..4") == {"min": -4.0, "max": 4.0}


def test_odd_rows_have_their_numbers() -> None:
    labels = ["bad", "good"] * 20
    labels[3], labels[9], labels[11] = "", "godo", "bad "
    texts = [review(n) for n in range(40)]
    texts[5], texts[7], texts[8] = "", texts[6], texts[1]
    given = content(review=texts, label=labels)
    found = find(about(given))
    rows = {odd.reason: [row for _, row in odd.places] for odd in found.odd}
    assert rows == {"with empty text": [7], "without a label": [5], "alone in their class": [11]}
    # What is alone in its class is in train.
    assert [odd.reason for odd in found.stopping] == ["without a label"]
    assert found.repeated == 2 and found.conflicts == 2 and found.lonely == ["godo"]
    assert sum(found.rows.values()) == 38 and found.classes["train"]["godo"] == 1
    left = find(without_lonely(about(given)))
    assert {odd.reason for odd in left.odd} == {
        "with empty text",
        "without a label",
        "with a label that belongs to no class",
    }
    assert sum(left.rows.values()) == 37


def test_scores_outside_of_their_range() -> None:
    given = reviews(score=[*(n / 10 for n in range(38)), "7.5", "x"])
    found = find(about(given, label="score", kind="regression", labels="0..5"))
    assert {odd.reason: odd.rows for odd in found.stopping} == {
        "with a score outside the range 0 to 5": [38],
        "with a label that is not a number": [39],
    }


def test_a_class_without_rows_to_learn_it_from() -> None:
    splits = {
        "train": reviews(label=["a", "b"] * 20),
        "dev": reviews(label=["a", "b"] * 20),
        "test": reviews(label=["a", "b", "c", "a"] * 10),
    }
    with pytest.raises(PotstillError, match=r"all\.csv: no row has the label c"):
        find(understand(splits, Overrides(), None, refuse))
    # Without it, its rows are odd ones of the test set.
    own = find(understand(splits, Overrides(labels="a;b"), None, refuse))
    assert [(odd.split, len(odd.rows)) for odd in own.stopping] == [("test", 10)]
    with pytest.raises(PotstillError, match="no row has the label c, d"):
        find(about(reviews(label=["a", "b"] * 20), labels="a;b;c;d"))


def test_leaks_between_splits() -> None:
    def part(name: str, start: int, label: Sequence[Any]) -> Content:
        texts = [review(n) for n in range(start, start + 10)]
        return content(f"{name}.csv", review=texts, label=label)

    splits = {
        "train": part("train", 0, [0, 1] * 5),
        "dev": part("dev", 8, [1, 1] * 5),
        "test": part("test", 30, [""] * 10),
    }
    found = find(understand(splits, Overrides(), None, refuse))
    [shared] = found.shared
    assert (shared.split, shared.earlier, shared.rows, shared.other_label) == ("dev", "train", 2, 1)
    assert shared.places == [(Path("dev.csv"), 2), (Path("dev.csv"), 3)]
    assert found.hidden == ["test"] and "test" not in found.classes


def test_hidden_scores_are_no_scores() -> None:
    splits = {
        "train": reviews(score=[n / 10 for n in range(40)]),
        "dev": reviews(score=[n / 10 for n in range(40)]),
        "test": reviews(score=["-1"] * 40),
    }
    found = understand(splits, Overrides(), None, refuse)
    assert found.labels == {"min": 0.0, "max": 4.0} and find(found).hidden == ["test"]
