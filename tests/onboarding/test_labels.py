"""Label columns as people have them: missing labels, names, ranges; and what follows for teachers and profiles."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.onboarding.copy_files import taken_back
from pipeline_lib.onboarding.labels import classes_of, parse_labels, score_range, with_label
from pipeline_lib.onboarding.profile_writer import overlay_text
from pipeline_lib.onboarding.teachers import Chosen, class_order, in_model_order, tuning_of
from pipeline_lib.outputs.files.answer_rows import named_classes

MARKS = ["", "-", "nan", "NaN", "null", "N/A", "NA", "<NA>", "#N/A"]
RANGES = {"bad": {"min": 1.0, "max": 2.0}, "good": {"min": 4.0, "max": 5.0}}
STARS = ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("values", "names", "labels"),
    [
        (["neg", *MARKS, "pos"], None, ["neg", "pos"]),
        (["0", "1", "2", "-1"], None, ["0", "1", "2"]),
        (["0.0", "1.0", "2.0", "-1.0"], None, ["0.0", "1.0", "2.0"]),
        (["0", "1", "-1"], ["no", "yes"], ["0", "1"]),
        # Polarity.
        (["-1", "0", "1"], None, ["-1", "0", "1"]),
        (["-2", "-1", "0", "1", "2"], None, ["-2", "-1", "0", "1", "2"]),
        (["-", "+"], None, ["-", "+"]),
        (["-", "a", "b"], None, ["a", "b"]),
    ],
)
def test_what_is_no_label(values: list[str], names: list[str] | None, labels: list[str]) -> None:
    assert with_label(values, names) == labels


def test_classes() -> None:
    assert classes_of(["bad", "good", "Good", "good"], None) == {"bad": ["bad"], "good": ["Good", "good"]}
    assert classes_of(["1", "0", "0"], ["neg", "pos"]) == {"neg": ["0"], "pos": ["1"]}
    assert list(classes_of(["10", "9", ""], None)) == ["9", "10"]
    # A column with gaps has 1.0 for 1 in many tools.
    assert classes_of(["0.0", "", "1.0", "1"], None) == {"0": ["0.0"], "1": ["1", "1.0"]}


@pytest.mark.parametrize(
    ("spec", "values", "labels"),
    [
        # What no class has lies outside of ranges, and is left out.
        ("bad=1,2;good=4,5", STARS, RANGES),
        ("bad=1..2; good=4..5", STARS, RANGES),
        ("bad=1,2;good=4,5", [f"{star}.0" for star in STARS], RANGES),
        ("bad=1,2,3;good=4,5", STARS, {"bad": ["1", "2", "3"], "good": ["4", "5"]}),
        ("no;yes", [], {"no": ["no"], "yes": ["yes"]}),
        # 3 is within 2 to 4: no range can leave it out.
        ("odd=1,5;even=2,4", STARS, {"odd": ["1", "5"], "even": ["2", "4"]}),
    ],
)
def test_labels_can_be_merged(spec: str, values: list[str], labels: dict[str, object]) -> None:
    assert parse_labels(spec, values) == labels


def test_ranges_of_scores() -> None:
    assert score_range(["0.1", "0.9", "x"], None) == {"min": 0.0, "max": 1.0}
    assert score_range(["0.5", "-1", "2.5", "4.5", "nan", ""], None) == {"min": 0.0, "max": 5.0}
    assert score_range(["-1", "-0.5", "1"], None) == {"min": -1.0, "max": 1.0}
    assert score_range([], "-4..4") == {"min": -4.0, "max": 4.0}
    for fault, message in (("good=1", "names 1 classes"), ("a=1..x;b", "not a range of numbers")):
        with pytest.raises(PotstillError, match=message):
            parse_labels(fault, STARS)


def test_classes_stand_in_the_order_of_a_models_outputs(tmp_path: Path) -> None:
    named = {"id2label": {"0": "Pos", "1": " neg ", "10": "odd"}}
    (tmp_path / "config.json").write_text(json.dumps(named))
    labels = {"neg": ["0"], "odd": ["2"], "pos": ["1"]}
    assert [*in_model_order(tmp_path, labels).items()] == [("pos", ["1"]), ("neg", ["0"]), ("odd", ["2"])]
    assert in_model_order(tmp_path, {"a": ["a"], "b": ["b"]}) == {"a": ["a"], "b": ["b"]}


@pytest.mark.parametrize(
    ("names", "is_ordered", "order"),
    [
        (["bad", "good"], True, ["bad", "good"]),
        (["bad", "good"], False, None),
        (["0", "1"], False, ["0", "1"]),
        # A number is one of these, and counts none.
        (["1", "2"], True, None),
    ],
)
def test_the_order_of_classes_in_a_file_of_answers(names: list[str], is_ordered: bool, order: list[str] | None) -> None:
    assert class_order(dict.fromkeys(names), is_ordered) == order


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        ([{"probs": {"bad": 0.2, "good": 0.8}}], ["bad", "good"]),
        ([{"label": "good"}, {"label": "bad"}], ["good", "bad"]),
        ([{"label": 1}, {"label": "2"}, {"probs": [0.5, 0.5]}, {"label": "['a', 'b']"}], []),
    ],
)
def test_classes_that_answers_name(tmp_path: Path, answers: list[dict[str, object]], names: list[str]) -> None:
    lines = (json.dumps({"text": f"so {n}"} | answer) for n, answer in enumerate(answers))
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    assert named_classes(tmp_path / "answers.jsonl") == names


@pytest.mark.parametrize(
    ("rows", "batch_size", "epochs"),
    [(0, 16, 10), (192, 16, 10), (300, 16, 7), (385, 32, 10), (770, 64, 10), (1000, 64, 8), (4028, 64, 2)],
)
def test_few_rows_get_smaller_batches_before_more_epochs(rows: int, batch_size: int, epochs: int) -> None:
    base = {"kind": "single", "batch_size": 64, "epochs": 3, "learning_rates": [2.0e-4]}
    tuning = tuning_of(Chosen("minilm", "single", "minilm"), "", rows, 2, False, base | {"head": "probe"})
    assert tuning == base | {"batch_size": batch_size, "epochs": epochs}
    few = [tuning_of(Chosen("minilm", "single", "minilm"), "", 100, classes, True, base) for classes in (6, 7)]
    assert few[0]["head"] == "probe" and few[1] == {"kind": "probe"}


@pytest.mark.parametrize("count", [2, 40])
def test_class_names_of_several_words_are_not_broken_over_lines(count: int) -> None:
    names = [f"a class of some more words {n}" for n in range(count)]
    values = {"tasks": {"r": {"labels": {name: [name] for name in names}}}}
    text = overlay_text(values, "default.yaml", "Of files.")
    assert YAML(typ="safe", pure=True).load(text) == {"extends": "default.yaml", **values}


def test_what_a_failed_init_wrote_is_taken_back(tmp_path: Path) -> None:
    old, new, deep = tmp_path / "params.yaml", tmp_path / "profile.yaml", tmp_path / "a/b/new"
    old.write_text("as it was")
    with pytest.raises(PotstillError, match="no"), taken_back([old, new, deep]):
        deep.parent.mkdir(parents=True)
        for path in (old, new, deep):
            path.write_text("changed")
        raise PotstillError("no")
    assert old.read_text() == "as it was" and not new.exists() and not (tmp_path / "a").exists()
    with taken_back([old]):
        old.write_text("changed")
    assert old.read_text() == "changed"
