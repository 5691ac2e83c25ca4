"""Label columns as people have them: missing labels, numbers of classes, several marks."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.onboarding.copy_files import taken_back
from pipeline_lib.onboarding.labels import classes_of, score_range, with_label
from pipeline_lib.onboarding.questions import Question, refuse
from pipeline_lib.onboarding.teachers import in_model_order
from pipeline_lib.onboarding.understanding import Overrides, TaskGuess, understand

from .made_up import content_of, review

MARKS = ["", "-", "nan", "NaN", "null", "N/A", "NA", "<NA>", "#N/A"]


def guess(column: str, values: list[Any], ask: Any = refuse, **overrides: Any) -> TaskGuess:
    texts = [review(n) for n in range(len(values))]
    contents = {"all": content_of("all.csv", {"text": texts, column: values})}
    return understand(contents, Overrides(**overrides), None, ask)


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_a_missing_label_is_no_class(mark: str) -> None:
    guessed = guess("label", (["neg", "pos"] * 20) + [mark] * 5)
    assert guessed.labels == {"neg": ["neg"], "pos": ["pos"]} and guessed.kind == "classification"


@pytest.mark.parametrize(
    ("values", "names", "labels"),
    [
        (["0", "1", "2", "-1"], None, ["0", "1", "2"]),
        (["0.0", "1.0", "2.0", "-1.0"], None, ["0.0", "1.0", "2.0"]),
        (["0", "1", "-1"], ["no", "yes"], ["0", "1"]),
        # Polarity.
        (["-1", "1"], None, ["-1", "1"]),
        (["-1", "0", "1"], None, ["-1", "0", "1"]),
        (["-2", "-1", "0", "1", "2"], None, ["-2", "-1", "0", "1", "2"]),
        (["-", "+"], None, ["-", "+"]),
        (["-", "a", "b"], None, ["a", "b"]),
    ],
)
def test_minus_one_and_minus(values: list[str], names: list[str] | None, labels: list[str]) -> None:
    assert with_label(values, names) == labels


def test_whatever_order_they_come_in() -> None:
    draw = random.Random(1)
    for _ in range(200):
        classes = draw.sample(["a", "B", "0", "1", "yes", "Nein", "+1", "ü"], draw.randint(2, 5))
        values = [draw.choice(classes + MARKS[2:]) for _ in range(40)] + classes
        draw.shuffle(values)
        assert {v for members in classes_of(values, None).values() for v in members} == {*classes}


def test_a_missing_score_does_not_widen_the_range() -> None:
    assert score_range(["0.5", "-1", "2.5", "4.5", "nan", ""], None) == {"min": 0.0, "max": 5.0}
    assert score_range(["-1", "-0.5", "1"], None) == {"min": -1.0, "max": 1.0}


@pytest.mark.parametrize("name", ["intent_id", "category_id", "class_idx", "labelCode", "label"])
def test_numbers_of_classes_by_other_names(name: str) -> None:
    values = [n % 77 for n in range(400)]
    guessed = guess(name, values, label=name)
    assert guessed.kind == "classification" and len(guessed.labels) == 77


def test_many_whole_numbers_are_asked_about() -> None:
    asked: list[Question] = []

    def ask(question: Question) -> str:
        asked.append(question)
        return "regression"

    values = [n % 30 for n in range(300)]
    assert guess("kind_of_thing", values, ask, label="kind_of_thing").kind == "regression"
    assert asked[0].flag == "--kind classification or --kind regression"
    assert guess("rating", values, label="rating").kind == "regression"
    with pytest.raises(PotstillError, match="Answer with --kind classification or --kind reg"):
        guess("kind_of_thing", values, label="kind_of_thing")


def test_too_many_classes_say_how_to_keep_them() -> None:
    values = [f"c{n % 250}" for n in range(1000)]
    with pytest.raises(PotstillError, match="or give --kind classification to keep them all"):
        guess("label", values, label="label")
    assert len(guess("label", values, label="label", kind="classification").labels) == 250


def test_a_columns_name_may_have_commas() -> None:
    name = "What did you like, if anything"
    texts, labels = [review(n) for n in range(40)], ["a", "b"] * 20
    contents = {"all": content_of("all.csv", {name: texts, "label": labels})}
    parts = [part.strip() for part in name.split(",")]
    assert understand(contents, Overrides(text=parts), None, refuse).text == [name]


def test_classes_stand_in_the_order_of_a_models_outputs(tmp_path: Path) -> None:
    named = {"id2label": {"0": "Pos", "1": " neg ", "10": "odd"}}
    (tmp_path / "config.json").write_text(json.dumps(named))
    labels = {"neg": ["0"], "odd": ["2"], "pos": ["1"]}
    assert [*in_model_order(tmp_path, labels).items()] == [("pos", ["1"]), ("neg", ["0"]), ("odd", ["2"])]
    assert in_model_order(tmp_path, {"a": ["a"], "b": ["b"]}) == {"a": ["a"], "b": ["b"]}


def test_what_a_failed_init_wrote_is_taken_back(tmp_path: Path) -> None:
    old, new = tmp_path / "params.yaml", tmp_path / "profile.yaml"
    old.write_text("as it was")
    deep = tmp_path / "a/b/new"
    with pytest.raises(PotstillError, match="no"), taken_back([old, new, deep]):
        deep.parent.mkdir(parents=True)
        deep.touch()
        old.write_text("changed")
        new.write_text("new")
        raise PotstillError("no")
    assert old.read_text() == "as it was" and not new.exists()
    assert not (tmp_path / "a").exists()
    with taken_back([old, new]):
        old.write_text("changed")
        new.write_text("new")
    assert old.read_text() == "changed" and new.exists()
