"""How far outputs of other code are: rounding does not count, and anything else does."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.commands.store.refill import difference_between
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.outputs.teacher_pass import LogitPass, StatePass, TeacherPass
from pipeline_lib.outputs.vectors import VectorPass
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet, write_manifest, write_shard
from tests.kit.shard_files import write_set
from tests.pipeline.corpus import sentences, write_encoder

pytestmark = pytest.mark.usefixtures("store_home")
TEXTS = [text for rows in sentences().values() for _, text in rows][:49]
KINDS = ["logits", "states", "float32", "float16"]


@pytest.fixture
def inputs(tmp_path: Path) -> ShardSet:
    parts = [TEXTS[:24], TEXTS[24:48], TEXTS[48:]]
    tables = [pa.table({"key": string_keys(texts), "text": texts}) for texts in parts]
    return write_set(tmp_path / "in", "x", {f"{n}.arrow": t for n, t in enumerate(tables)})


def pass_of(kind: str, folder: Path) -> TeacherPass:
    write_encoder(folder, labels=2)
    common = (folder, digest_model(folder), "cpu", "float32", 32, 256)
    if kind == "logits":
        return LogitPass(*common)
    if kind == "states":
        return StatePass(*common, (1, 2), "float16")
    return VectorPass(*common, "mean", kind)


def computed(inputs: ShardSet, teacher_pass: TeacherPass, folder: Path) -> ShardSet:
    run_pass(teacher_pass, inputs, folder, LocalEngine(1))
    return ShardSet.open(folder)


def changed(outputs: ShardSet, number: int, table: pa.Table) -> ShardSet:
    shards = outputs.manifest.shards
    path = outputs.path(shards[number])
    path.unlink()
    shards[number] = write_shard(path, table, shards[number].source)
    write_manifest(outputs.folder, outputs.manifest)
    return ShardSet.open(outputs.folder)


@pytest.mark.parametrize(("kind", "slip"), [*zip(KINDS, (0, 2, 0, 2), strict=True)])
def test_only_outputs_of_other_rows_differ(kind: str, slip: int, inputs: ShardSet, tmp_path: Path) -> None:
    teacher_pass = pass_of(kind, tmp_path / "model")
    outputs = computed(inputs, teacher_pass, tmp_path / "out")
    assert difference_between(inputs, outputs, teacher_pass) < 1e-5
    tables = [*outputs.tables()]
    # The rows of a shard in another order, or another row where there is just one.
    other = tables[0].take(np.roll(np.arange(24), 1)) if slip == 0 else tables[1].slice(0, 1)
    other = other.set_column(0, "key", tables[slip]["key"])
    assert difference_between(inputs, changed(outputs, slip, other), teacher_pass) > 0.1


def test_outputs_without_numbers_or_with_other_keys_are_refused(inputs: ShardSet, tmp_path: Path) -> None:
    teacher_pass = pass_of("logits", tmp_path / "model")
    outputs = computed(inputs, teacher_pass, tmp_path / "out")
    table = outputs.read(outputs.manifest.shards[1])
    nan = pa.array([[np.nan, 0.0]] * 24, table["logits"].type)
    outputs = changed(outputs, 1, table.set_column(1, "logits", nan))
    assert not difference_between(inputs, outputs, teacher_pass) <= 1e9
    table = outputs.read(outputs.manifest.shards[0])
    outputs = changed(outputs, 0, table.take(np.roll(np.arange(24), 1)))
    with pytest.raises(PotstillError, match="different keys"):
        difference_between(inputs, outputs, teacher_pass)
