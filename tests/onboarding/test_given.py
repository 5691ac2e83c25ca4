"""Which files were given, and which split each of them is."""

from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.onboarding.input_files import files_by_split


def touch(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return [folder / name for name in names]


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["reviews.csv"], ["all"]),
        # One file is what all is drawn from, whatever its name.
        (["train.csv"], ["all"]),
        (["sts-test.csv", "sts-dev.csv", "sts-train.csv"], ["train", "dev", "test"]),
        (["training.jsonl", "validation.jsonl"], ["train", "dev"]),
        (["train.csv", "eval.csv"], ["train", "dev"]),
        (["train_a.csv.gz", "train_b.csv.gz", "dev.csv"], ["train", "dev"]),
        (["train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"], ["train", "dev", "dev_mismatched"]),
    ],
)
def test_names_say_the_split(tmp_path: Path, names: list[str], splits: list[str]) -> None:
    found = files_by_split(touch(tmp_path, *names))
    assert list(found) == splits


def test_flags_name_files(tmp_path: Path) -> None:
    one, two, three = touch(tmp_path, "a.csv", "b.csv", "c.csv")
    found = files_by_split([one], two, three)
    assert found == {"train": [one], "dev": [two], "test": [three]}


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        # GLUE, with files that are no split or another form of one.
        (["train.tsv", "dev.tsv", "dev_ids.tsv", "test.tsv", "original/x.txt"], [1, 1, 1]),
        # The hub, where a split may be in parts.
        (
            [
                "README.md",
                "data/train-00000-of-00002.parquet",
                "data/train-00001-of-00002.parquet",
                "data/test-00000-of-00001.parquet",
            ],
            [2, 1],
        ),
        # Newer shards of the hub, with a hash.
        (
            [
                "train-00000-of-00002-a1b2c3d4e5f60718.parquet",
                "train-00001-of-00002-0718a1b2c3d4e5f6.parquet",
                "validation.parquet",
            ],
            [2, 1],
        ),
        # Spark, which splits no data set.
        ([f"part-0000{n}-1c9f2f1e-1111-2222-3333-abcdefabcdef-c000.snappy.parquet" for n in range(3)], [3]),
        (["train_a.csv", "train_b.csv", "dev.csv"], [2, 1]),
        # datasets' save_to_disk; what it cached beside it does not count.
        (
            [
                "dataset_dict.json",
                "train/data-00000-of-00001.arrow",
                "train/cache-1.arrow",
                "validation/data-00000-of-00001.arrow",
            ],
            [1, 1],
        ),
    ],
)
def test_folders(tmp_path: Path, names: list[str], splits: list[int]) -> None:
    touch(tmp_path / "set", *names)
    assert [len(files) for files in files_by_split([tmp_path / "set"]).values()] == splits


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.csv", "b.csv"], r"a\.csv: its name does not tell its split .* --dev and --test"),
        (["train.csv", "train.tsv"], r"train is .*train\.csv already"),
        (["dev.csv", "test.csv"], r"no training file, only dev, test"),
        (["a.xlsx"], r"unknown file suffix; .*a spreadsheet as CSV"),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path: Path, names: list[str], message: str) -> None:
    with pytest.raises(PotstillError, match=message):
        files_by_split(touch(tmp_path, *names))


def test_a_folder_of_two_data_sets_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "cola/train.parquet", "rte/train.parquet")
    with pytest.raises(PotstillError, match="the folder of one data set"):
        files_by_split([tmp_path])


def test_files_of_a_folder_that_are_not_read_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    *_, extra = touch(tmp_path, "train.csv", "dev.csv", "extra_reviews.csv")
    assert [*files_by_split([tmp_path])] == ["train", "dev"]
    assert caplog.messages == [f"{extra}: not read, since others are named as splits and it is not."]
