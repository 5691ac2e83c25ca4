"""``distill init`` on folders as GLUE, the hub and ``datasets`` lay them out."""

from pathlib import Path

from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import Example, read_examples
from pipeline_lib.params import load_params
from tests.onboarding.made_up import review, write_reviews

from .running import Fails, distill

FEATURES = Features({"sentence": Value("string"), "label": ClassLabel(names=["bad", "good"]), "idx": Value("int32")})


def rows_of(start: int, stop: int) -> Dataset:
    numbers = range(start, stop)
    columns = {
        "sentence": [review(number) for number in numbers],
        "label": [number % 2 for number in numbers],
        "idx": list(numbers),
    }
    return Dataset.from_dict(columns, features=FEATURES)


def examples_of(name: str) -> dict[str, list[Example]]:
    task = load_params().tasks[name]
    fetch_data(name, task.source, Path("data/input"), Path("raw"))
    return read_examples(Path("raw"), task)[0]


def test_a_folder_that_datasets_saved() -> None:
    splits = {"train": rows_of(0, 60), "validation": rows_of(60, 80), "test": rows_of(80, 100)}
    DatasetDict(splits).save_to_disk("saved")
    printed = distill("init", "saved", "--name", "opinions")
    assert "label: classification, 2 classes: bad (0), good (1)" in printed
    examples = examples_of("opinions")
    assert {name: len(own) for name, own in examples.items()} == dict(train=60, dev=20, test=20)


def test_a_folder_without_header_lines_as_colas(fails: Fails) -> None:
    folder = Path("CoLA")
    folder.mkdir()
    for split, start, stop in (("train", 0, 60), ("dev", 60, 80)):
        lines = [
            f"{('gj04', 'bc01')[n % 3 // 2]}\t{n % 2}\t{('*', '')[n % 2]}\t{review(n)}" for n in range(start, stop)
        ]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    # The official test set has other columns, and a header line.
    tests = [f"{n}\t{review(n)}" for n in range(80, 90)]
    (folder / "test.tsv").write_text("\n".join(["index\tsentence", *tests]) + "\n")
    error = fails("init", "CoLA")
    assert "CoLA/test.tsv: no column 'column_4', as in CoLA/train.tsv" in error
    assert "distill init TRAIN --dev DEV" in error
    files = ("CoLA/train.tsv", "--dev", "CoLA/dev.tsv", "--name", "cola")
    assert "--label column_1" in fails("init", *files)
    printed = distill("init", *files, "--label", "column_2")
    assert "60 rows, column_1, column_2, column_3, column_4 (no header line)" in printed
    assert [row.texts for row in examples_of("cola")["dev"]] == [(review(number),) for number in range(60, 80)]


def test_another_projects_parameters_are_kept(fails: Fails) -> None:
    write_reviews(Path("reviews.csv"))
    Path("params.yaml").write_text("lr: 0.1\n")
    for flags in ([], ["--force"]):
        assert "params.yaml: it" in fails("init", "reviews.csv", *flags)
        assert Path("params.yaml").read_text() == "lr: 0.1\n" and not Path("dvc.yaml").exists()
