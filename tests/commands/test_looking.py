"""``distill shards stats``, ``sample``, ``worklist``, ``diff`` and ``export`` of small sets."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.inspection.made_up import write_set

from .conftest import OUTPUTS, TRANSFER, transfer_table
from .running import Fails, distill

SET = str(TRANSFER)


class TestStats:
    def test_figures_and_bars(self) -> None:
        found = distill("shards", "stats", SET)
        assert f"{SET}: 4 rows" in found
        assert "length, words" in found and "2 – 2  4 100.0%" in found
        assert "negative  0   0.0%\n  positive  1  25.0%" in found
        assert re.search(r"ngram +1  25\.0%", found)
        assert "The teacher agrees with 1 of 1 labels, 100.0%." in found

    def test_as_json_of_one_rule(self) -> None:
        found = json.loads(distill("shards", "stats", str(OUTPUTS), "--rule", "mask", "--json"))
        assert found["rows"] == 1 and found["numbers"]["teacher's entropy"]["greatest"] == 1.0
        assert found["rules"]["mask"] == 1


class TestSample:
    def test_rows_of_one_rule(self) -> None:
        found = distill("shards", "sample", SET, "--rule", "replace")
        assert "bad plot" in found and "replaced 1 (plot)" in found
        assert "from: good film" in found
        assert "1 of 1 rows drawn" in found

    def test_as_lines_of_json(self) -> None:
        lines = distill("shards", "sample", SET, "--rows", "2", "--json").splitlines()
        rows = [json.loads(line) for line in lines]
        assert len(rows) == 2 and rows == sorted(rows, key=lambda row: row["place"])


class TestWorklist:
    def test_of_a_set(self) -> None:
        found = distill("shards", "worklist", SET, "--kind", "augmentation", "--rows", "1")
        assert "Most changed by augmentation" in found and "bad plot" in found
        assert "teacher to that: positive" in found and "1 of 3 rows" in found

    def test_of_a_task(self) -> None:
        found = {one["name"]: one for one in json.loads(distill("shards", "worklist", "movies", "--json"))}
        assert [*found] == ["uncertain", "labels", "student", "augmentation"]
        assert [row["key"] for row in found["labels"]["rows"]] == ["0" * 16]
        assert found["student"]["missing"] and not found["uncertain"]["missing"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["movies", "--student", "folder"], "choose stored answers with --method"),
            ([SET, "--method", "bilstm"], "--method is for a task"),
            (["nothing"], "no 'nothing' in params.yaml"),
        ],
    )
    def test_what_does_not_go_together_is_refused(self, fails: Fails, options: list[str], message: str) -> None:
        assert message in fails("shards", "worklist", *options)


class TestDiff:
    def test_rows_and_answers(self) -> None:
        other = Path("other/data/transfer/movies/full")
        outputs = Path("other/data/outputs/movies/minilm/full")
        rows = transfer_table(0, 3)
        write_set(other, {"b000-i000": rows}, outputs, [[-3, 3], [5, -5], [2, -2]])
        found = distill("shards", "diff", SET, str(other))
        assert "gone: 1 rows, 1 of them synthetic" in found and "a joy" in found
        assert "added: 0 rows" in found and "common: 3 rows" in found
        # A toss-up counts as the first class.
        assert "answers: 1 moved; how far, bits" in found
        assert "before: negative, 1.000 bits" in found
        as_json = json.loads(distill("shards", "diff", SET, str(other), "--json"))
        assert as_json["gone"]["first"][0]["sentences"][0]["text"] == "a joy"
        assert as_json["answers"]["changed"] == 1 and as_json["answers"]["other"] == 0

    def test_a_set_and_itself(self) -> None:
        found = distill("shards", "diff", SET, str(OUTPUTS))
        assert "common: 4 rows\n  4 of them in byte-identical shards" in found
        assert "answers: 0 moved" in found


class TestExport:
    def test_a_flat_file(self) -> None:
        told = distill("shards", "export", SET, "--to", "flat.parquet", "--label", "none")
        assert told == "flat.parquet: 3 of 4 rows\n"
        table = pq.read_table("flat.parquet")
        assert table["rule"].to_pylist() == ["mask", "replace", "ngram"]
        assert table["teacher"].to_pylist() == ["negative", "negative", "positive"]
