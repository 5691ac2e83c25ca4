"""``distill shards worklist`` and ``export`` of small sets."""

import json

import pyarrow.parquet as pq
import pytest

from .conftest import TRANSFER
from .running import Fails, distill

SET = str(TRANSFER)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("worklist movies --kind augmentation --rows 1", ["Most changed by augmentation", "bad plot", "1 of 3 rows"]),
        ("worklist movies --kind augmentation --rows 1", ["teacher to that: positive"]),
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


def test_a_flat_file() -> None:
    told = distill("shards", "export", SET, "--to", "flat.parquet", "--label", "none")
    assert told == "flat.parquet: 3 of 4 rows\n"
    table = pq.read_table("flat.parquet")
    assert table["rule"].to_pylist() == ["mask", "replace", "ngram"]
    assert table["teacher"].to_pylist() == ["negative", "negative", "positive"]
