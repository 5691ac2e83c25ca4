"""A GLUE submission keeps the benchmark's rules, or is not written."""

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lib.errors import DistilleryError
from pipeline_lib.params import Classification, Regression
from pipeline_lib.submission import FILES, answers, faults, write_submission

COMMON: dict[str, Any] = {
    "source": {"kind": "glue", "folder": "X", "files": {"train": "a", "dev": "b"}, "columns": None},
    "text": ["a", "b"],
    "label": "label",
    "split": None,
    "blocks": 1,
    "lexicon": None,
    "train_fraction": 1.0,
    "augment": {"n_iter": 0, "cap": None},
    "submission": None,
}
INFERENCE = Classification.model_validate(
    COMMON
    | {
        "kind": "classification",
        "labels": {"no": ["not_entailment"], "yes": ["entailment"]},
        "metrics": ["accuracy"],
    }
)
SIMILARITY = Regression.model_validate(
    COMMON | {"kind": "regression", "labels": {"min": 0.0, "max": 5.0}, "metrics": ["pearson"]}
)


def test_classes_are_written_as_in_the_data() -> None:
    logits = np.array([[0.1, 0.3], [2.0, -1.0]])
    assert answers(INFERENCE, logits) == ["entailment", "not_entailment"]


def test_scores_are_clipped_to_the_range() -> None:
    assert answers(SIMILARITY, np.array([[-0.2], [2.34567], [5.1]])) == ["0.000", "2.346", "5.000"]


def test_a_submission_is_the_eleven_official_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    files = {
        "RTE.tsv": answers(INFERENCE, rng.normal(size=(3000, 2))),
        "STS-B.tsv": answers(SIMILARITY, rng.normal(2.5, 3.0, size=(1379, 1))),
    }
    filled = write_submission(tmp_path / "s.zip", files, fill=True)
    assert len(filled) == 9 and not set(filled) & set(files)
    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        assert sorted(archive.namelist()) == sorted(FILES) and len(FILES) == 11
        for name, official in FILES.items():
            text = io.TextIOWrapper(archive.open(name), "utf-8", newline="")
            header, *rows = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
            assert header == ["index", "prediction"]
            assert [row[0] for row in rows] == [str(i) for i in range(official.rows)]
            if name in files:
                assert [row[1] for row in rows] == list(files[name])
            if official.scores:
                assert all(0.0 <= float(row[1]) <= 5.0 for row in rows)
            else:
                assert {row[1] for row in rows} <= set(official.answers)


def test_equal_answers_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        write_submission(tmp_path / name, {"WNLI.tsv": ["1"] * 146}, fill=True)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("SST2.tsv", ["0"], "no file of the benchmark"),
        ("WNLI.tsv", ["0"] * 145, "145 answers, the official test set has 146"),
        ("WNLI.tsv", ["0"] * 145 + ["yes"], "row 145: answer 'yes'; it takes 0, 1"),
        ("STS-B.tsv", ["5.001"] * 1379, "row 0: score '5.001' is no number from 0 to 5"),
        ("STS-B.tsv", ["nan"] * 1379, "row 0: score 'nan'"),
    ],
)
def test_broken_rules_are_named_and_nothing_is_written(
    tmp_path: Path, name: str, given: list[str], message: str
) -> None:
    assert len(faults(name, given)) == 1
    with pytest.raises(DistilleryError, match=message):
        write_submission(tmp_path / "s.zip", {name: given}, fill=True)
    assert not list(tmp_path.iterdir())


def test_an_incomplete_submission_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DistilleryError, match=r"missing: AX\.tsv.*--fill"):
        write_submission(tmp_path / "s.zip", {"WNLI.tsv": ["1"] * 146}, fill=False)
