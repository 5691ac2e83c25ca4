"""Texts without a label beside a task's examples, from many files."""

from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.onboarding.findings import Further, find
from pipeline_lib.onboarding.input_files import files_of_texts, read_further
from pipeline_lib.onboarding.questions import Question, refuse
from pipeline_lib.onboarding.understanding import Overrides, understand
from pipeline_lib.tables.contents import read_content
from pipeline_lib.tables.reader import ReadOptions

from .made_up import review, write_csv, write_reviews


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
    task = understand({"all": read_content([write_reviews(tmp_path / "all.csv")])}, Overrides(), None, refuse)
    assert find(task, found).further == Further(texts=31, known=10, repeated=20)
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
    with pytest.raises(PotstillError, match=r"2 text columns .q, place., but the task reads 1"):
        read_further(paths[:1], ["text"], ReadOptions(), lambda _: "q,place")


def test_columns_of_the_task_name_those_of_files_without_header_line(tmp_path: Path) -> None:
    path = tmp_path / "more.tsv"
    path.write_text("".join(f"gj04\t1\t{review(n)}\n" for n in range(5)))
    names = ["source", "label", "sentence"]
    assert read_further([path], ["sentence"], ReadOptions(columns=names), refuse).values("sentence")[0] == review(0)
