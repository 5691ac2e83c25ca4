"""``distill shards worklist``, ``diff`` and ``export`` of small sets."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.inspection.made_up import write_set

from .conftest import OUTPUTS, TRANSFER, transfer_table
from .running import Fails, distill

SET = str(TRANSFER)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("worklist movies --kind augmentation --rows 1", ["Most changed by augmentation", "bad plot", "1 of 3 rows"]),
        ("worklist movies --kind augmentation --rows 1", ["teacher to that: positive"]),
        (f"diff {SET} {OUTPUTS}", ["common: 4 rows\n  4 of them in byte-identical shards", "answers: 0 moved"]),
    ],
)
def test_what_is_shown_of_a_set(command: str, shown: list[str]) -> None:
    found = distill("shards", *command.split())
    assert [part for part in shown if part not in found] == []


def test_as_json() -> None:
    found = {one["name"]: one for one in json.loads(distill("shards", "worklist", "movies", "--json"))}
    assert [*found] == ["uncertain", "labels", "student", "augmentation"]
    assert [row["key"] for row in found["labels"]["rows"]] == ["0" * 16]
    assert found["student"]["missing"] and not found["uncertain"]["missing"]


def test_a_list_is_of_a_task(fails: Fails) -> None:
    assert "no 'nothing' in params.yaml" in fails("shards", "worklist", "nothing")


def test_rows_and_answers() -> None:
    other = Path("other/data/transfer/movies/full")
    outputs = Path("other/data/outputs/movies/minilm/full")
    rows = transfer_table(0, 3)
    write_set(other, {"b000-i000": rows}, outputs, [[-3, 3], [5, -5], [2, -2]])
    found = distill("shards", "diff", SET, str(other))
    assert "gone: 1 rows, 1 of them synthetic" in found and "a joy" in found
    assert "added: 0 rows" in found and "common: 3 rows" in found
    # A toss-up counts as the first class.
    assert "answers: 1 moved; how far, bits" in found and "2  66.7%" in found
    assert "before: negative, 1.000 bits" in found
    as_json = json.loads(distill("shards", "diff", SET, str(other), "--json"))
    assert as_json["gone"]["first"][0]["sentences"][0]["text"] == "a joy"
    assert as_json["answers"]["changed"] == 1 and as_json["answers"]["other"] == 0


def test_a_flat_file() -> None:
    told = distill("shards", "export", SET, "--to", "flat.parquet", "--label", "none")
    assert told == "flat.parquet: 3 of 4 rows\n"
    table = pq.read_table("flat.parquet")
    assert table["rule"].to_pylist() == ["mask", "replace", "ngram"]
    assert table["teacher"].to_pylist() == ["negative", "negative", "positive"]
