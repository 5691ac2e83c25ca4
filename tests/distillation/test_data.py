"""Which rows of a transfer set are trained on, and what stands in for labels that are missing."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.storage.columns import list_column
from pipeline_lib.storage.shards import (
    Manifest,
    ShardSet,
    schema_of,
    shard_name,
    write_manifest,
    write_shard,
)
from pipeline_lib.text.ragged import Sentences
from tests.encoded import training_sentences

pytestmark = pytest.mark.usefixtures("store_home")

WORDS = ["[PAD]", "[UNK]", "[MASK]", "a", "b", "c", "d"]
ORIGINALS = [("a", 1), ("b", 0)]
SYNTHETIC = [("c", [4.0, 0.0]), ("d", [0.2, 0.0]), ("a", [0.0, 3.0])]
"""The last one has the words, and so the key, of an original."""


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))


@pytest.fixture
def sets(tmp_path: Path) -> tuple[ShardSet, ShardSet]:
    """Write two originals and three synthetic rows, with a teacher's logits for each."""
    tables = [
        _rows([w for w, _ in ORIGINALS], 0, [label for _, label in ORIGINALS]),
        _rows([w for w, _ in SYNTHETIC], 1, [None] * len(SYNTHETIC)),
    ]
    logits = [[[0.0, 1.0], [0.3, 0.0]], [given for _, given in SYNTHETIC]]
    folders = tmp_path / "inputs", tmp_path / "outputs"
    inputs = [write_shard(folders[0] / shard_name(0, i), table) for i, table in enumerate(tables)]
    answers = [
        pa.table({"key": t["key"], "logits": list_column(np.array(given, np.float32))})
        for t, given in zip(tables, logits, strict=True)
    ]
    outputs = [
        write_shard(folders[1] / shard.name, table, shard.sha256)
        for shard, table in zip(inputs, answers, strict=True)
    ]
    write_manifest(folders[0], Manifest("transfer", schema_of(tables[0]), inputs))
    write_manifest(folders[1], Manifest("logits", schema_of(answers[0]), outputs))
    return ShardSet.open(folders[0]), ShardSet.open(folders[1])


def _rows(words: list[str], iteration: int, labels: list[int | None]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([WORDS.index(word) for word in words], pa.uint64()),
            "iteration": pa.array([iteration] * len(words), pa.int32()),
            "label": pa.array(labels, pa.int32()),
            "text": words,
            "words": [[word] for word in words],
        }
    )


def read(sets: tuple[ShardSet, ShardSet], tokenizer: Tokenizer, *settings: float) -> list[str]:
    """Return the words of the rows that are trained on."""
    return [WORDS[i] for i in sentences(sets, tokenizer, *settings).ids]


def sentences(sets: tuple[ShardSet, ShardSet], tokenizer: Tokenizer, *settings: float) -> Sentences:
    return training_sentences(*sets, tokenizer, 10, *settings)


def test_a_synthetic_row_that_is_an_original_is_left_out(
    sets: tuple[ShardSet, ShardSet], tokenizer: Tokenizer
) -> None:
    assert read(sets, tokenizer) == ["a", "b", "c", "d"]


def test_the_teachers_answer_stands_in_for_a_missing_label(
    sets: tuple[ShardSet, ShardSet], tokenizer: Tokenizer
) -> None:
    assert sentences(sets, tokenizer).targets["labels"].tolist() == [1, 0, 0, 0]


def test_originals_are_repeated_with_their_targets(
    sets: tuple[ShardSet, ShardSet], tokenizer: Tokenizer
) -> None:
    found = sentences(sets, tokenizer, 3)
    assert [WORDS[i] for i in found.ids] == ["a", "b", "c", "d", "a", "b", "a", "b"]
    assert found.targets["labels"].tolist() == [1, 0, 0, 0, 1, 0, 1, 0]
    assert found.targets["logits"][4].tolist() == found.targets["logits"][0].tolist() == [0.0, 1.0]


def test_only_synthetic_rows_need_a_confident_teacher(
    sets: tuple[ShardSet, ShardSet], tokenizer: Tokenizer
) -> None:
    # The teacher is sure of "c" alone; the originals stay however unsure it is.
    assert read(sets, tokenizer, 1, 0.9) == ["a", "b", "c"]


def test_a_missing_label_without_a_teacher_is_refused(
    sets: tuple[ShardSet, ShardSet], tokenizer: Tokenizer
) -> None:
    with pytest.raises(DistilleryError, match="3 training rows have no label"):
        training_sentences(sets[0], None, tokenizer, 10)
