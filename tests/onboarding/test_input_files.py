"""Which files were given, which split each of them is, and texts without a label from many files."""

import os
from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.tasks.findings import Further
from pipeline_lib.onboarding.input_files import files_by_split, files_of_texts, read_further
from pipeline_lib.onboarding.questions import Question, Request, refuse
from pipeline_lib.onboarding.understanding import understand
from pipeline_lib.tables.contents import read_content
from pipeline_lib.tables.reader import ReadOptions

from .made_up import find, review, write_csv, write_reviews


def texts(start: int, stop: int) -> list[list[str]]:
    return [[review(n)] for n in range(start, stop)]


def test_files_of_any_format_and_folders(tmp_path: Path) -> None:
    one = write_csv(tmp_path / "one.csv", ["comment"], texts(50, 70))
    folder = tmp_path / "more"
    write_csv(folder / "inner" / "two.csv", ["id", "body"], [[n, review(n)] for n in range(60, 80)])
    # A first line that is a text is no header line; a last one of blanks is no text.
    lines = [review(n) for n in range(80, 90)]
    (folder / "three.tsv").write_text("\n".join(lines) + "\n")
    (folder / "four.txt").write_text("\n".join(lines) + "\nshort one\n")
    (folder / "README.md").touch()
    files, skipped = files_of_texts([one, folder, one])
    assert skipped == [folder / "README.md"] and len(files) == 4
    found = read_further(files, ["review"], ReadOptions(), refuse)
    assert found.names == ["review"] and found.format is None and found.table.num_rows == 61
    assert found.place(60) == (folder / "three.tsv", 10)
    # Each text once, and none of the task's own: as `prepare` counts them.
    task = understand({"all": read_content([write_reviews(tmp_path / "all.csv")])}, Request(), None, refuse)
    assert find(task, found).further == Further(texts=31, among_rows=10, repeated=20)
    with pytest.raises(PotstillError, match=r"all 10 texts are among the task's rows"):
        own = write_csv(tmp_path / "own.csv", ["review"], texts(0, 10))
        find(task, read_further([own], ["review"], ReadOptions(), refuse))


def test_all_that_cannot_be_taken_is_named_at_once(tmp_path: Path) -> None:
    good = write_csv(tmp_path / "good.csv", ["review"], texts(0, 5))
    (tmp_path / "bad.parquet").write_bytes(b"x")
    (tmp_path / "west.csv").write_bytes(b"review,n\ncafe\n")
    numbers = write_csv(tmp_path / "numbers.csv", ["n"], [[1], [2]])
    paths = [good, tmp_path / "bad.parquet", tmp_path / "west.csv", numbers]
    with pytest.raises(PotstillError, match=r"3 of 4 files cannot be used") as caught:
        read_further(paths, ["review"], ReadOptions(), refuse)
    for said in ("bad.parquet: not a readable", "west.csv: row 2 has 1 columns", "numbers.csv: no column"):
        assert said in str(caught.value)
    with pytest.raises(PotstillError, match=r"there are n\. Name it with the task's names"):
        read_further([numbers], ["review"], ReadOptions(), refuse)
    with pytest.raises(PotstillError, match=r"no data files in this folder"):
        (tmp_path / "empty").mkdir()
        files_of_texts([tmp_path / "empty"])


def test_files_alike_are_asked_about_once(tmp_path: Path) -> None:
    paths = [
        write_csv(tmp_path / f"{n}.csv", ["q", "place"], [[f"q{n}{m}", f"at {m}"] for m in "abcd"]) for n in range(3)
    ]
    asked: list[Question] = []

    def ask(question: Question) -> str:
        asked.append(question)
        return "q"

    assert read_further(paths, ["text"], ReadOptions(), ask).values("text")[3:5] == ["q0d", "q1a"]
    assert len(asked) == 1
    (tmp_path / "more.tsv").write_text("".join(f"gj04\t1\t{review(n)}\n" for n in range(5)))
    options = ReadOptions(columns=["source", "label", "sentence"])
    nameless = read_further([tmp_path / "more.tsv"], ["sentence"], options, refuse)
    assert nameless.values("sentence")[0] == review(0)
    with pytest.raises(PotstillError, match=r"2 text columns .q, place., but the task reads 1"):
        read_further(paths[:1], ["text"], ReadOptions(), lambda _: "q,place")


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
    assert list(files_by_split(touch(tmp_path, *names))) == splits
    one, two, three = touch(tmp_path, "a.csv", "b.csv", "c.csv")
    assert files_by_split([one], two, three) == {"train": [one], "dev": [two], "test": [three]}


SAVED = ("train", "validation")


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        # GLUE, with files that are no split or another form of one.
        (["train.tsv", "dev.tsv", "dev_ids.tsv", "test.tsv", "original/x.txt"], [1, 1, 1]),
        # The hub, where a split may be in parts.
        (
            [
                "README.md",
                *(f"data/train-0000{n}-of-00002.parquet" for n in (0, 1)),
                "data/test-00000-of-00001.parquet",
            ],
            [2, 1],
        ),
        # Newer shards of the hub, with a hash.
        ([*(f"train-0000{n}-of-00002-a1b2c3d4e5f6071{n}.parquet" for n in (0, 1)), "validation.parquet"], [2, 1]),
        # Spark, which splits no data set.
        ([f"part-0000{n}-1c9f2f1e-1111-2222-3333-abcdefabcdef-c000.snappy.parquet" for n in range(3)], [3]),
        (["train_a.csv", "train_b.csv", "dev.csv"], [2, 1]),
        # datasets' save_to_disk; what it cached beside it does not count.
        (["dataset_dict.json", "train/cache-1.arrow", *(f"{s}/data-00000-of-00001.arrow" for s in SAVED)], [1, 1]),
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
        (["set/a.txt", "set/b.txt"], r"text per line"),
        (["set/cola/train.parquet", "set/rte/train.parquet"], "the folder of one data set"),
        (["a.xlsx"], r"unknown file suffix; .*a spreadsheet as CSV"),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path: Path, names: list[str], message: str) -> None:
    with pytest.raises(PotstillError, match=message):
        paths = touch(tmp_path, *names)
        files_by_split([tmp_path / "set"] if names[0].startswith("set/") else paths)


def test_files_of_a_folder_that_are_not_read_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    *_, extra = touch(tmp_path, "train.csv", "dev.csv", "extra_reviews.csv")
    assert [*files_by_split([tmp_path])] == ["train", "dev"]
    assert caplog.messages == [f"{extra}: not read, since others are named as splits and it is not."]


@pytest.mark.parametrize("splits", [(), ("train", "test"), ("training", "validation", "testing")])
@pytest.mark.parametrize("classes", [("neg", "pos"), ("ham", "spam", "x y")])
def test_a_folder_per_class_is_read(
    tmp_path: Path, splits: tuple[str, ...], classes: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    for split in splits or (".",):
        for number, name in enumerate([*classes, "unsup"]):
            folder = tmp_path / "set" / split / name
            folder.mkdir(parents=True)
            for row in range(5):
                (folder / f"{row}.txt").write_text(f"{review(10 * number + row)}\nA second line.\n")
    (tmp_path / "set/vocab.txt").write_text("the\n")
    files = files_by_split([tmp_path / "set"])
    assert len(files) == max(len(splits), 1) and ("all" in files) == (not splits)
    for paths in files.values():
        content = read_content(paths)
        assert content.values("label") == [name for name in sorted(classes) for _ in range(5)]
        assert content.values("text")[0] == f"{review(0)} A second line." and content.place(0)[0].name == "0.txt"
    assert "unsup: not read" in caplog.text


def test_fasttexts_marks_are_labels(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("".join(f"__label__{'ab'[n % 2]} {review(n)}\n" for n in range(20)))
    guessed = understand({"all": read_content([path])}, Request(), None, refuse)
    assert (guessed.label, [*guessed.labels], guessed.kind) == ("label", ["a", "b"], "classification")
    more = path.read_text() + "".join(f"__label__a __label__b {review(n)}\n" for n in range(20, 30))
    path.write_text(f"\n{more}")
    assert read_content([path]).place(0) == (path, 2)
    guessed = understand({"all": read_content([path])}, Request(), None, refuse)
    assert guessed.kind == "multilabel" and guessed.contents["all"].values("text")[-1] == review(29)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("table.txt", f"{review(1)};joy\n{review(2)};fear\n", "a table needs the suffix .csv or .tsv"),
        ("field.json", '{"version": "1", "data": [{"text": "a"}, {"text": "b"}]}', "one JSON object, with version, "),
        ("byid.json", '{"1": {"text": "a", "label": 1}, "2": {"text": "b", "label": 0}}', "one JSON object, with 1, "),
        ("columns.json", '{"text": {"0": "a", "1": "b"}, "label": {"0": 1, "1": 0}}', "one JSON object, with text, "),
        ("lists.json", '{"text": ["a", "b"], "label": [1, 0]}', r"to_json\(orient='records'\)"),
    ],
)
def test_a_layout_that_is_not_read_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(PotstillError, match=message):
        understand({"all": read_content(files_by_split([tmp_path / name])["all"])}, Request(), None, refuse)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path, message in ((tmp_path / "pipe.csv", "a pipe"), (Path("https://a.org/b.csv"), "a web address")):
        with pytest.raises(PotstillError, match=message):
            files_by_split([path])
