"""Raw label values to class numbers; what is dropped and counted, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.tasks.labelled import Example, read_examples

HEADER = "sentence\tlabel\n"
TRAIN = "good \t1\n dull\t0\n"
RANGES = {"low": {"min": -4, "max": -0.5}, "high": {"min": 0.5, "max": 4}}
ALL = {"kind": "files", "files": {"all": "all.tsv"}, "format": "tsv", "columns": None}
SPLIT = {"dev": 0.1, "test": 0.1}


def lay(folder: Path, **files: str) -> Path:
    """Write one TSV per split, with the header line, and return the folder."""
    defaults = {"train": TRAIN, "dev": "fine\t1\n", "test": "so so\t0\n"}
    for split, content in (defaults | files).items():
        header = "" if content.startswith("index") else HEADER
        (folder / f"{split}.tsv").write_text(header + content, encoding="utf-8")
    return folder


def test_splits_and_counts(tmp_path: Path, make_task: Callable) -> None:
    splits, counts = read_examples(lay(tmp_path, train=TRAIN + " \t1\n"), make_task())
    assert splits == {
        "train": [Example(("good",), 1), Example(("dull",), 0)],
        "dev": [Example(("fine",), 1)],
        "test": [Example(("so so",), 0)],
    }
    assert counts["train"] == {"rows": 3, "kept": 2, "empty_text": 1, "outside_label_ranges": 0, "hidden_label": 0}
    # Minus one can be a label.
    task = make_task(labels={"no": ["-1", "0"], "yes": ["1"]})
    splits, _ = read_examples(lay(tmp_path, test="a\t-1\n"), task)
    assert splits["test"] == [Example(("a",), 0)]
    lay(tmp_path, all="a\t-0.5\nb\t0.49\nc\t4\nd\t-1\ne\t0\n")
    splits, counts = read_examples(tmp_path, make_task(source=ALL, split=SPLIT, labels=RANGES))
    assert [example.label for example in splits["all"]] == [0, 1, 0]
    assert counts["all"]["outside_label_ranges"] == 2
    # A split without labels is read without.
    lay(tmp_path, train="index\tsentence\n0\ta\n", dev="b\t1\n")
    splits, counts = read_examples(tmp_path, make_task(label={"dev": "label", "test": "label"}))
    assert splits["train"] == [Example(("a",), None)] and splits["dev"] == [Example(("b",), 1)]
    assert counts["train"]["hidden_label"] == 1
    # Its labels are there, and not read.
    lay(tmp_path)
    splits, _ = read_examples(tmp_path, make_task(label=None))
    assert {example.label for rows in splits.values() for example in rows} == {None}


@pytest.mark.parametrize("test", ["a\t-1\nb\t-1\n", "a\t\nb\t\n", "index\tsentence\n0\ta\n1\tb\n"])
def test_hidden_test_labels(tmp_path: Path, make_task: Callable, test: str) -> None:
    splits, counts = read_examples(lay(tmp_path, test=test), make_task())
    assert splits["test"] == [Example(("a",), None), Example(("b",), None)]
    assert counts["test"]["hidden_label"] == 2


@pytest.mark.parametrize("mark", ["", "-1", "-1.0", "-", "NaN", "nan", "null", "N/A", "<NA>"])
def test_marks_of_a_missing_label(tmp_path: Path, make_task: Callable, mark: str) -> None:
    splits, _ = read_examples(lay(tmp_path, test=f"a\t{mark}\n"), make_task())
    assert splits["test"] == [Example(("a",), None)]
    # Unless a label claims it.
    task = make_task(labels={"no": ["0", mark], "yes": ["1"]})
    splits, _ = read_examples(lay(tmp_path, test=f"a\t{mark}\n"), task)
    assert splits["test"] == [Example(("a",), 0)]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train": TRAIN + "x\tmaybe\n"}, "train.tsv: row 4, column 'label': 'maybe' is not a label.*'0', '1'"),
        ({"train": TRAIN + "x\t-1\n"}, "train.tsv: row 4.*hidden label '-1'"),
        ({"dev": "x\t\n"}, "dev.tsv: row 2.*hidden label ''"),
        ({"dev": " \t1\n"}, "dev.tsv: row 2, column 'sentence': empty text"),
        ({"test": "x\t1\n \t1\n"}, "test.tsv: row 3.*empty text"),
        ({"train": "good\t1\n"}, "no train example has the label no"),
    ],
)
def test_errors(tmp_path: Path, make_task: Callable, files: dict[str, str], message: str) -> None:
    with pytest.raises(PotstillError, match=message):
        read_examples(lay(tmp_path, **files), make_task())


def test_faults_of_files(tmp_path: Path, make_task: Callable) -> None:
    lay(tmp_path, all="a\t-1\nb\t1\nc\tsome\n")
    with pytest.raises(PotstillError, match=r"row 4.*'some' is not a number.*-4 to -0.5, 0.5 to 4"):
        read_examples(tmp_path, make_task(source=ALL, split=SPLIT, labels=RANGES))
    lay(tmp_path, train="a\t107.5\n")
    scores = make_task(kind="regression", labels={"min": 0.0, "max": 100.0}, metrics=["pearson"])
    with pytest.raises(PotstillError, match=r"row 2.*'107.5' is not a label.*numbers from 0 to 100"):
        read_examples(tmp_path, scores)
    with pytest.raises(PotstillError, match=r"train.tsv: not found"):
        read_examples(tmp_path / "absent", make_task())
