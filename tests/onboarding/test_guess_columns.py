"""Which columns are texts and which one is the label: rows of all over a file, names, questions."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.onboarding import columns
from pipeline_lib.onboarding.findings import find
from pipeline_lib.onboarding.questions import Question, refuse
from pipeline_lib.onboarding.understanding import AnswerHints, Overrides, TaskGuess, understand
from pipeline_lib.tables.contents import Content, read_content

from .made_up import content_of, review


def content(given: dict[str, Sequence[Any]], **further: Any) -> Content:
    return content_of("all.csv", given, **further)


def about(given: Content, hints: AnswerHints | None = None, **overrides: Any) -> TaskGuess:
    return understand({"all": given}, Overrides(**overrides), hints, refuse)


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    """Write texts and labels in the format of the file's ending."""
    if path.suffix == ".parquet":
        texts, labels = zip(*rows, strict=True)
        pq.write_table(pa.table({"text": texts, "label": labels}), path)
        return path
    lines = [f"{text}\t{label}" for text, label in [("text", "label"), *rows]]
    if path.suffix == ".csv":
        lines = [",".join(f'"{value}"' for value in line.split("\t")) for line in lines]
    if path.suffix == ".jsonl":
        lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_file_that_is_sorted_by_its_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(columns, "_SAMPLE", 20)
    rows = [(review(n) if n != 58 else "", "neg" if n < 30 else "pos") for n in range(60)]
    found = about(read_content([write(tmp_path / f"all.{ending}", rows)]))
    assert found.text == ["text"] and found.labels == {"neg": ["neg"], "pos": ["pos"]}
    # What is said of rows and classes is of all rows.
    own = find(found)
    assert sum(sum(counts.values()) for counts in own.classes.values()) == 59
    assert [odd.rows for odd in own.odd] == [[58]] and sum(own.rows.values()) == 59


def test_classes_that_take_turns_and_rare_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_SAMPLE", 50)
    texts = [review(n) for n in range(1000)]
    turns = columns.Column.of("label", pa.chunked_array([pa.array(["0.5", "1"] * 500)]))
    assert not turns.whole and turns.distinct == 2 and turns.filled == 1000
    rare = ["ham"] * 999 + ["spam"]
    assert about(content({"text": texts, "label": rare})).labels == {"ham": ["ham"], "spam": ["spam"]}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["text"], ["text"]),
        (["tweet ", "lang"], ["tweet "]),
        (["data.text"], ["data.text"]),
        (["query", "passage"], ["query", "passage"]),
        (["sentence1", "sentence2"], ["sentence1", "sentence2"]),
    ],
)
def test_names_tell_where_texts_are_short(names: list[str], text: list[str]) -> None:
    given: dict[str, Sequence[Any]] = {
        name: [f"n{n}{place} off" for n in range(40)] for place, name in enumerate(names)
    }
    found = about(content(given | {"label": ["go", "stay"] * 20}))
    assert found.text == text and found.label == "label"


def test_short_texts_under_other_names_are_asked_about() -> None:
    short = [f"lamp {n}" for n in range(40)]
    given = {"q": short, "topic": ["go", "stay"] * 20}
    with pytest.raises(PotstillError, match=r"no column reads like text.* q\. .*--text q"):
        about(content(given))
    assert about(content(given), text=["q"]).text == ["q"]
    # What is called so may be meant where another column is longer, too.
    longer = {"text": short, "explanation": [review(n) for n in range(40)]}
    with pytest.raises(PotstillError, match=r"may be the text.*text \| explanation"):
        about(content(longer | {"label": ["go", "stay"] * 20}))
    given, message = {"n": range(40), "label": ["go", "stay"] * 20}, "there are n, label; neither"
    others = {"text": "binary"}
    with pytest.raises(PotstillError, match=rf"no column can be the text; {message}"):
        about(content(given, others=others))
    message = rf"no column 'text'; {message} text nor numbers: text \(binary\)"
    with pytest.raises(PotstillError, match=message):
        about(content(given, others=others), text=["text"])


USERS = {"text": [review(n) for n in range(40)], "user": [f"u{n % 7}" for n in range(40)]}


def test_a_name_that_says_nothing_of_a_label_is_asked_about() -> None:
    message = r"'user', whose name does not suggest it.*--label user.*--unlabelled all\.csv"
    with pytest.raises(PotstillError, match=message):
        about(content(USERS))
    with pytest.raises(PotstillError, match="does not suggest it"):
        about(content(USERS), AnswerHints("classification", ["bad", "good"]))
    asked: list[Question] = []

    def ask(question: Question) -> str:
        asked.append(question)
        return question.choices[-1]

    with pytest.raises(PotstillError, match="or give these texts with --unlabelled"):
        understand({"all": content(USERS)}, Overrides(), None, ask)
    assert asked[0].choices == ["user", "none"]
    assert about(content(USERS), label="user").label == "user"
    # A label that is none is said to be so.
    with pytest.raises(PotstillError, match=r"\(label: 1 different value in 40 rows\)"):
        about(content(USERS | {"label": ["x"] * 40}))


@pytest.mark.parametrize("name", ["airlineSentiment", "star_rating", "meta.label", "Quality"])
def test_names_of_labels(name: str) -> None:
    assert about(content(USERS | {name: ["x", "y"] * 20})).label == name


def test_what_names_its_classes_or_has_no_name_is_the_label() -> None:
    given = USERS | {"coarse": [0, 1] * 20}
    found = about(content(given, class_names={"coarse": ["food", "rooms"]}))
    assert found.label == "coarse" and found.labels == {"food": ["0"], "rooms": ["1"]}
    nameless = {f"column_{n}": values for n, values in enumerate(USERS.values(), 1)}
    assert about(content(nameless, columns=[*nameless])).label == "column_2"
    counted = {str(n): values for n, values in enumerate(USERS.values())}
    assert about(content(counted)).label == "1"
