"""``distill predict`` with an encoder: a vector per row, and none for a row that cannot be read."""

import json
from pathlib import Path

import numpy as np
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from pipeline_lib.models.students.sentence_encoder import load_encoder
from tests.retrieval.made_up import WIDTH, write_encoder

from .running import Fails, distill

GOOD = {"text": "word1 word2"}


@pytest.mark.parametrize("out", ["v.arrow", "v.parquet", "v.jsonl", "v.npy"])
def test_a_row_that_cannot_be_read_has_no_vector(world: Path, out: str) -> None:
    write_encoder(Path("encoder"))
    lines = [json.dumps(GOOD), '{"text": ', '{"text": [1, 2]}', json.dumps(GOOD)]
    Path("in.jsonl").write_text("\n".join(lines))
    output = distill("predict", "encoder", "--file", "in.jsonl", "--out", out, "--normalise")
    assert "rows that cannot be read, which get no vector: 2. in.jsonl: row 2 is not" in output
    if out == "v.npy":
        vectors = np.load(out)
        assert np.isnan(vectors).all(axis=1).tolist() == [False, True, True, False]
        return
    if out == "v.jsonl":
        rows = [json.loads(line) for line in Path(out).read_text().splitlines()]
    else:
        table = feather.read_table(out) if out == "v.arrow" else pq.read_table(out)
        rows = table.to_pylist()
    assert [row["vector"] is None for row in rows] == [False, True, True, False]
    assert len(rows[0]["vector"]) == WIDTH and rows[0]["vector"] == rows[3]["vector"]
    assert np.linalg.norm(rows[0]["vector"]) == pytest.approx(1.0, abs=1e-5)


def test_a_file_of_which_nothing_can_be_read_is_an_error(world: Path, fails: Fails) -> None:
    write_encoder(Path("encoder"))
    Path("in.jsonl").write_text("{\n[\n")
    error = fails("predict", "encoder", "--file", "in.jsonl", "--out", "v.npy")
    assert "in.jsonl: row 1 is not valid JSON" in error and not Path("v.npy").exists()


def test_what_does_not_go_together_is_refused(world: Path, fails: Fails) -> None:
    write_encoder(Path("encoder"))
    Path("in.txt").write_text("word1\n")
    for options, message in (
        ("encoder --file in.txt", "--out: name the file to write the vectors to"),
        ("encoder --file in.txt --out v.csv", "ends in .arrow, .parquet, .jsonl, .npy"),
        ("encoder --file in.txt --out v.npy --prefix a_", "vectors are written, not answers"),
        ("encoder --file in.txt --out v.npy --threshold 0", "vectors are written, not answers"),
        ("student --file in.txt --normalise", "Give --vectors, too"),
        ("none --vectors --file in.txt --out v.npy", "none: no such folder"),
    ):
        assert message in fails("predict", *options.split())


def test_sentences_of_the_command_line_are_embedded(world: Path) -> None:
    write_encoder(Path("encoder"))
    distill("predict", "encoder", "word1 word2", "", "--out", "v.npy")
    np.testing.assert_allclose(np.load("v.npy"), load_encoder(Path("encoder")).encode(["word1 word2", ""]), atol=1e-5)
