"""Files of answers, and rows of a task, made up."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_lib.outputs.files.answers import Answers
from pipeline_lib.outputs.files.gathering import gather
from pipeline_lib.outputs.files.keyed_table import KeyedTable
from pipeline_lib.params import AnswerFiles, Task
from pipeline_lib.shards.shard_sets import ShardSet
from tests.kit.made_up import made_up_task
from tests.kit.shard_files import write_set

SETTINGS = {"kind": "answers", "files": ["-"], "classes": None}
SETTINGS |= {"mask": "[MASK]", "provenance": {}}
TASK = made_up_task()
"""Its classes are no and yes."""
Lines = list[dict[str, Any]]


def settings(**changes: Any) -> AnswerFiles:
    return AnswerFiles.model_validate(SETTINGS | changes)


def lines(path: Path, rows: Lines) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    return path


def score_task() -> Task:
    given = TASK.model_dump() | {"kind": "regression", "metrics": ["pearson"]}
    return Task.model_validate(given | {"labels": {"min": 0.0, "max": 5.0}})


def gather_answers(paths: list[Path], tuning: AnswerFiles, task: Task, folder: Path | None = None) -> KeyedTable:
    answers = gather(paths, Answers(tuning, task))
    if folder:
        answers.write(folder)
    return answers


def read_answers(paths: list[Path], tuning: AnswerFiles, task: Task) -> KeyedTable:
    """Read files in which there may be nothing, or always the same."""
    return gather(paths, Answers(tuning, task), partial=True)


TEXTS = [f"sentence {number}" for number in range(60)]


def write_rows(folder: Path, texts: list[str], labels: list[int | None], **columns: Any) -> ShardSet:
    keys = pa.array(range(len(texts)), pa.uint64())
    table = pa.table({"key": keys, "label": pa.array(labels, pa.int32()), "text": texts, **columns})
    return write_set(folder, "transfer", {"b000-i000.arrow": table})
