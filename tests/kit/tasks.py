"""Prepared tasks of the small corpus, with a teacher's answers, for tests of trainings."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.words import split_words
from pipeline_lib.shards.columns import list_column
from tests.kit.shard_files import write_set
from tests.pipeline.corpus import sentences


def text_columns(texts: list[str], side: str) -> dict[str, Any]:
    return {f"text{side}": texts, f"words{side}": [split_words(text)[0] for text in texts]}


def write_rows(folder: Path, table: pa.Table, source: str | None = None) -> str:
    return write_set(folder, "rows", {"b000-i000.arrow": table}, [source]).manifest.shards[0].sha256


def write_task(layout: Layout, task: str, pair: bool) -> None:
    """Write training set, transfer set, teacher's outputs and dev set of a task."""
    for split, rows in sentences().items():
        texts, values = [text for _, text in rows], np.array([value for value, _ in rows])
        labels, columns = pa.array(values, pa.int32()), text_columns(texts, "")
        logits = np.stack([-2.0 * values + 1.0, 2.0 * values - 1.0], axis=1)
        if pair:
            columns |= text_columns(texts[1:] + texts[:1], "_2")
            scores = 20.0 * values + 10.0 * np.roll(values, -1) + 50.0
            labels, logits = pa.array(scores, pa.float32()), scores[:, None] + 0.5
        keys = pa.array(string_keys(texts))
        table = pa.table({"key": keys, "label": labels, **columns})
        write_rows(layout.split(task, split), table)
        if split == "train":
            iterations = pa.array([0] * len(texts), pa.int32())
            source = write_rows(layout.transfer(task, "original"), table.append_column("iteration", iterations))
            answers = {"key": keys, "logits": list_column(logits.astype(np.float32))}
            write_rows(layout.outputs(task, "minilm", "original"), pa.table(answers), source)
