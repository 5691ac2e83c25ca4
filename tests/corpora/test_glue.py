"""The official SST-2 and CoLA, where ``DISTILLERY_GLUE`` names the folder that holds them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_lib.corpora.fetching import fetch_data
from pipeline_lib.corpora.labelled import read_examples

FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
FOLDER = os.environ.get("DISTILLERY_GLUE")

pytestmark = pytest.mark.skipif(
    not FOLDER, reason="set DISTILLERY_GLUE to a folder with the official SST-2 and CoLA"
)


# Rows of the official files; the counts of class 1 in train and dev are the published ones.
@pytest.mark.parametrize(
    ("name", "columns", "sizes", "ones"),
    [
        ("SST-2", None, [67349, 872, 1821], [37569, 444]),
        ("CoLA", ["source", "label", "mark", "sentence"], [8551, 1043, 1063], [6023, 721]),
    ],
)
def test_official_files(
    tmp_path: Path,
    make_task: Callable,
    name: str,
    columns: list[str] | None,
    sizes: list[int],
    ones: list[int],
) -> None:
    source = {"kind": "glue", "folder": name, "files": FILES, "columns": columns}
    task = make_task(source=source)
    fetch_data(name, task.source, Path(FOLDER or ""), tmp_path / "raw")
    splits, counts = read_examples(tmp_path / "raw", task)
    assert [len(splits[split]) for split in ("train", "dev", "test")] == sizes
    assert [sum(e.label or 0 for e in splits[s]) for s in ("train", "dev")] == ones
    assert counts["test"]["hidden_label"] == sizes[2]
    assert counts["train"]["empty_text"] == 0
