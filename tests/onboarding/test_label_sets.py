"""Labels of which a row may have several, as people have them: columns of marks, and lists."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.classes import LabelMap
from pipeline_lib.onboarding.questions import Question, Request, refuse
from pipeline_lib.onboarding.understanding import TaskGuess, understand
from pipeline_lib.tables.contents import Content, read_content

from .made_up import content_of, find, review

NAMES = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
LISTS = [["joy"], ["anger", "fear"], [], ["joy", "anger"], ["fear"]]


def marked(names: Sequence[str] = NAMES, rows: int = 120, **further: list[object]) -> Content:
    columns = {name: [int(n % (k + 2) == 0) for n in range(rows)] for k, name in enumerate(names)}
    texts = [review(n) for n in range(rows)]
    return content_of("all.csv", {"id": range(rows), "text": texts, **columns, **further})


def guess(content: Content, **overrides: Any) -> TaskGuess:
    return understand({"all": content}, Request(**overrides), None, refuse)


def of_classes(classes: int) -> Content:
    columns = {f"is_{k}": [int(n % classes == k) for n in range(60)] for k in range(classes)}
    return content_of("all.csv", {"text": [review(n) for n in range(60)], **columns})


def test_six_columns_of_marks_are_understood_without_a_flag() -> None:
    guessed = guess(marked())
    assert (guessed.kind, guessed.label, guessed.label_columns) == ("multilabel", NAMES, NAMES)
    assert guessed.labels == {name: ["1"] for name in NAMES}
    assert guessed.metrics == ["average_precision", "f1_micro", "f1_macro"]
    findings = find(guessed)
    assert sum(findings.rows.values()) == 120 and {*findings.classes["dev"]} == {*NAMES}
    # Labels that no row has are left out and named; others follow a model's order.
    guessed = guess(marked(NAMES[:3], spam=[0] * 120))
    assert guessed.label == NAMES[:3] and guessed.empty == ["spam"]
    ordered = guess(marked(NAMES[:3])).in_order(["obscene", "toxic", "severe_toxic"])
    assert ordered.label == [*ordered.labels] == ["obscene", "toxic", "severe_toxic"]


@pytest.mark.parametrize(
    ("overrides", "kind", "label"),
    [
        ({"label": "short"}, "classification", "short"),
        ({"label": "rude, odd"}, "multilabel", ["rude", "odd"]),
        # A label column beside marks is the label.
        ({}, "classification", "category"),
        ({"kind": "multilabel"}, "multilabel", ["rude", "short", "odd"]),
    ],
)
def test_a_label_column_and_flags_come_first(overrides: dict[str, str], kind: str, label: str | list[str]) -> None:
    guessed = guess(marked(["rude", "short", "odd"], category=["a", "b", "c"] * 40), **overrides)
    assert (guessed.kind, guessed.label) == (kind, label)


@pytest.mark.parametrize("marks", [("True", "False"), ("yes", "no"), ("1.0", "0.0")])
def test_marks_in_words(marks: tuple[str, str]) -> None:
    columns = {f"c{k}": [marks[n % (k + 2) > 0] for n in range(60)] for k in range(3)}
    guessed = guess(content_of("all.csv", {"text": [review(n) for n in range(60)], **columns}))
    assert guessed.labels == {name: [marks[0]] for name in columns} and not find(guessed).odd


def test_two_marks_or_one_each_are_asked_about() -> None:
    asked: list[Question] = []
    two = marked(["polite", "short"])
    all_of_them = lambda question: asked.append(question) or question.choices[0]  # noqa: E731
    assert understand({"all": two}, Request(), None, all_of_them).label == ["polite", "short"]
    assert asked[0].flag.startswith("--kind multilabel for all of them, or --label polite")
    for content in (two, of_classes(3)):
        with pytest.raises(PotstillError, match="columns of 0 and 1"):
            guess(content)
        assert guess(content, kind="multilabel").kind == "multilabel"


def test_odd_marks_are_listed_by_row() -> None:
    with pytest.raises(PotstillError, match="'toxic' holds other values than 0 and 1"):
        guess(marked(NAMES[:3], toxic=["maybe", *[0, 1] * 59, 0]), label=",".join(NAMES[:3]))
    [found] = find(guess(marked(NAMES[:3], toxic=["", *[0, 1] * 59, 0]))).odd
    assert (found.reason, found.places) == ("without a label", [(Path("all.csv"), 2)])


@pytest.mark.parametrize("style", ["{}", "['{}']", '["{}"]', "bars", "semicolons"])
def test_lists_in_a_cell_of_text(style: str) -> None:
    separators = {"{}": ", ", "bars": "|", "semicolons": ";", "['{}']": "', '", '["{}"]': '", "'}
    shape = style if "{}" in style else "{}"
    cells = [shape.format(separators[style].join(one)) if one else "" for one in LISTS * 12]
    texts = [review(n) for n in range(len(cells))]
    guessed = guess(content_of("all.csv", {"text": texts, "tags": cells}))
    assert (guessed.kind, guessed.label) == ("multilabel", "tags")
    assert guessed.labels == {name: [name] for name in ("anger", "fear", "joy")}
    found = find(guessed)
    assert not found.odd
    assert sum(count["joy"] for count in found.classes.values()) == 24


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "json"])
def test_lists_of_other_formats(tmp_path: Path, ending: str) -> None:
    rows = [{"text": review(n), "emotions": LISTS[n % 5]} for n in range(60)]
    path = tmp_path / f"all.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        lines = [json.dumps(rows)] if ending == "json" else map(json.dumps, rows)
        path.write_text("\n".join(lines))
    guessed = guess(read_content([path]))
    assert (guessed.kind, guessed.label) == ("multilabel", "emotions")
    assert [*guessed.labels] == ["anger", "fear", "joy"]
    assert not find(guessed).odd


def test_class_names_of_lists_of_numbers(tmp_path: Path) -> None:
    rows = [{"text": review(n), "labels": [n % 3, 3][: 1 + n % 2]} for n in range(60)]
    names = ["joy", "anger", "fear", "calm"]
    feature = {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"}
    described = {"info": {"features": {"labels": feature}}}
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"huggingface": json.dumps(described)})
    pq.write_table(table, tmp_path / "all.parquet")
    guessed = guess(read_content([tmp_path / "all.parquet"]))
    assert guessed.labels == {name: [str(number)] for number, name in enumerate(names)}


def test_lists_of_words_and_classes_of_two_words_are_no_label_sets(tmp_path: Path) -> None:
    texts = [review(n) for n in range(60)]
    rows = [{"text": t, "tokens": t.split(), "sentiment": n % 2} for n, t in enumerate(texts)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "all.parquet")
    guessed = guess(read_content([tmp_path / "all.parquet"]))
    assert (guessed.kind, guessed.label) == ("classification", "sentiment")
    classes = ["New York", "Los Angeles", "billing, refund", "other"] * 15
    guessed = guess(content_of("all.csv", {"text": texts, "label": classes}))
    assert guessed.kind == "classification" and len(guessed.labels) == 4


def test_what_is_said_of_several_labels_that_there_are_not() -> None:
    plain = content_of("a.csv", {"text": [review(n) for n in range(40)], "label": ["a", "b"] * 20})
    for given, flags, message in (
        (plain, {"kind": "multilabel"}, r"no labels of which a row may have several.*--label"),
        (marked(), {"label": "toxic,odious"}, "no column 'odious'; there are"),
        (marked(), {"metrics": ["f1"]}, "'f1' is not a metric of a multilabel"),
        (marked(), {"positive": "toxic"}, "--positive toxic: it names one of two classes"),
        (marked(), {"labels": "a;b"}, "labels are named by their columns"),
    ):
        with pytest.raises(PotstillError, match=message):
            guess(given, **flags)


@pytest.mark.parametrize("form", ["[0, 1, 0, 0, 1]", "[0 1 0 0 1]", "(1, 0, 0)", "[1.0, 0.0]", '{"joy": 1, "fear": 0}'])
@pytest.mark.parametrize("overrides", [{}, {"label": "labels"}, {"kind": "multilabel"}])
def test_marks_without_names_and_objects_are_refused(form: str, overrides: dict[str, Any]) -> None:
    content = content_of("all.csv", {"text": [review(n) for n in range(60)], "labels": [form] * 60})
    with pytest.raises(PotstillError, match=r"column 'labels' holds (lists of \d marks|JSON objects)"):
        guess(content, **overrides)


def test_rejected_labels_are_not_learned() -> None:
    columns = {"text": [review(n) for n in range(60)], "label": ["a", "b"] * 30}
    content = content_of("all.csv", columns | {"answer": ["accept", "accept", "reject"] * 20})
    with pytest.raises(PotstillError, match="column 'answer' says reject or ignore in 20 rows"):
        guess(content)
    assert [*guess(content, label="answer").labels] == ["accept", "reject"]
    assert guess(content_of("all.csv", columns | {"answer": ["accept"] * 60})).label == "label"


def test_labels_that_look_the_same_are_one() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    columns = {"text": [review(n) for n in range(60)], "label": [composed, decomposed, "bar"] * 20}
    guessed = guess(content_of("all.csv", columns))
    assert [*guessed.labels] == ["bar", composed]
    assert sum(find(guessed).classes["train"].values()) == find(guessed).rows["train"]
    assert LabelMap.of({"a": [decomposed], "b": ["bar"]}).classify(composed) == 0
