"""Transfer sets: one shard per block and iteration, and what students read of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import sequence_keys, string_keys
from pipeline_lib.corpora.augmentation.lexicon import Lexicon, read_lexicon
from pipeline_lib.corpora.augmentation.rules import transfer_schema
from pipeline_lib.corpora.augmentation.transfer_sets import AugmentationPass, check_cap
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import PassStats, run_pass
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from tests.kit.encoded import dev_sentences, training_sentences
from tests.kit.made_up import made_up_task
from tests.kit.shard_files import write_set

pytestmark = pytest.mark.usefixtures("store_home")

WORDS = ["a", "film", "good", "dull"]
NUMBERS = {"[MASK]": 1, "a": 2, "film": 3, "good": 4, "dull": 5}

# (words, label): a label stands for an original, None for a synthetic row.  Two blocks.
BLOCKS = [
    [("a film", 1), ("a film", 0), ("[MASK] film", None), ("good", None)],
    [("good dull film", 0), ("good", 1), ("[MASK] film", None), ("dull", None), ("a film", None)],
]


def transfer_rows(rows: list[tuple[str, int | None]]) -> pa.Table:
    words = [text.split() for text, _ in rows]
    keys = [sequence_keys(string_keys(ws), np.array([0, len(ws)]))[0] for ws in words]
    labels = [label for _, label in rows]
    iterations = [int(label is None) for label in labels]
    zeros = [0] * len(rows)
    texts, rules = [text for text, _ in rows], [[0] * len(ws) for ws in words]
    columns = [keys, keys, iterations, labels, texts, words, rules, zeros, zeros]
    arrays = [pa.array(c, kind) for c, kind in zip(columns, transfer_schema(False, pa.int32()).types, strict=True)]
    return pa.table(arrays, schema=transfer_schema(False, pa.int32()))


def write_blocks(folder: Path, tables: list[pa.Table], sources: list[str | None]) -> ShardSet:
    blocks = {f"b{number:03d}.arrow": table for number, table in enumerate(tables)}
    return write_set(folder, "test", blocks, sources)


@pytest.fixture
def inputs(tmp_path: Path) -> ShardSet:
    """Make the transfer set of ``BLOCKS``."""
    return write_blocks(tmp_path / "in", [transfer_rows(rows) for rows in BLOCKS], [None, None])


@pytest.fixture
def outputs(tmp_path: Path, inputs: ShardSet) -> ShardSet:
    """Make the teacher's outputs: logits (n, 10 - n) for row n over both blocks."""
    numbers = np.arange(9, dtype=np.float32)
    logits = np.stack([numbers, 8.5 - numbers], axis=1)
    tables = [
        pa.table({"key": rows["key"], "logits": list_column(part)})
        for rows, part in zip(inputs.tables(), (logits[:4], logits[4:]), strict=True)
    ]
    return write_blocks(tmp_path / "out", tables, [s.sha256 for s in inputs.manifest.shards])


def sentences_of(sentences: Any) -> list[list[int]]:
    return [part.tolist() for part in np.split(sentences.ids, sentences.offsets[1:-1])]


def test_what_students_read(inputs: ShardSet, outputs: ShardSet) -> None:
    found = training_sentences(inputs, outputs, build_tokenizer(WORDS, True), 64)
    # Dropped: the synthetic "good" (an original of the other block), the second "[MASK] film", and
    # the synthetic "a film".  Both originals "a film" stay.
    kept = ["a film", "a film", "[MASK] film", "good dull film", "good", "dull"]
    assert sentences_of(found) == [[NUMBERS[w] for w in text.split()] for text in kept]
    rows = np.array([0, 1, 2, 4, 5, 7])
    assert found.targets["logits"].tolist() == np.stack([rows, 8.5 - rows], axis=1).tolist()
    assert found.targets["logits"].dtype == np.float32
    # Labels of originals are their own; synthetic rows 2 and 7 take the teacher's argmax.
    assert found.targets["labels"].tolist() == [1, 0, 1, 0, 1, 0]
    assert found.targets["labels"].dtype == np.int64
    assert found.pad_id == 0
    # Long sentences are cut.
    whole = training_sentences(inputs, outputs, build_tokenizer(WORDS, True), 64)
    cut = training_sentences(inputs, outputs, build_tokenizer(WORDS, True), 2)
    assert sentences_of(cut) == [row[:2] for row in sentences_of(whole)]
    assert cut.lengths.max() == 2 < whole.lengths.max()
    # Unknown words have the masks number.
    found = training_sentences(inputs, outputs, build_tokenizer(["film"], True), 64)
    assert sentences_of(found)[0] == [1, 2]


def test_original_data_needs_no_teacher(tmp_path: Path, prepared: ShardSet) -> None:
    rows = [[row for row in block if row[1] is not None] for block in BLOCKS]
    inputs = write_blocks(tmp_path / "in", [transfer_rows(part) for part in rows], [None, None])
    found = training_sentences(inputs, None, build_tokenizer(WORDS, True), 64)
    assert list(found.targets) == ["labels"]
    assert found.targets["labels"].tolist() == [1, 0, 0, 1]
    assert len(found) == 4
    # Dev sentences.
    found = dev_sentences(prepared, build_tokenizer(WORDS, True), 4)
    table = prepared.table()
    assert len(found) == 13 and found.lengths.max() == 4
    assert found.targets["labels"].tolist() == table["label"].to_pylist()
    expected = [[NUMBERS.get(w, 1) for w in ws][:4] for ws in table["words"].to_pylist()]
    assert sentences_of(found) == expected


def test_outputs_of_another_set_are_refused(inputs: ShardSet, tmp_path: Path) -> None:
    tables = [pa.table({"key": t["key"], "logits": list_column(np.zeros((len(t), 2), np.float32))})
              for t in inputs.tables()]  # fmt: skip
    other = write_blocks(tmp_path / "other", tables, ["x", "y"])
    with pytest.raises(PotstillError, match="does not belong"):
        training_sentences(inputs, other, build_tokenizer(WORDS, True), 64)


@pytest.fixture
def prepared(tmp_path: Path, make_examples: Callable[..., pa.Table]) -> ShardSet:
    """Make a prepared set of three blocks, the middle one empty."""
    generator = np.random.default_rng(0)
    blocks = [
        [[WORDS[i] for i in generator.integers(0, 4, n)] + [f"{block}.{n}"] for n in range(1, count)]
        for block, count in enumerate((6, 1, 9))
    ]
    tables = [make_examples(rows, [["X"] * len(row) for row in rows]) for rows in blocks]
    return write_blocks(tmp_path / "prepared", tables, [None] * 3)


@pytest.fixture
def lexicon(make_lexicon: Callable[..., Lexicon], tmp_path: Path) -> Path:
    """Return the file of a lexicon of one tag."""
    make_lexicon({"X": {"a": 2, "film": 3, "good": 1, "dull": 1}})
    return next(tmp_path.rglob("lexicon*.arrow"))


@pytest.fixture
def augment(
    prepared: ShardSet, lexicon: Path, make_recipe: Any, tmp_path: Path, store_home: Path
) -> Callable[..., tuple[Manifest, PassStats]]:
    """Return what augments the prepared examples into a folder."""

    def run(
        name: str, n_iter: int, cap: int | None = None, workers: int = 1, **recipe: Any
    ) -> tuple[Manifest, PassStats]:
        task = made_up_task(blocks=3, augment={"n_iter": n_iter, "cap": cap})
        own = AugmentationPass.of(make_recipe(**recipe), task, lexicon)
        return run_pass(own, prepared, tmp_path / name, LocalEngine(workers))

    return run


def test_one_shard_per_block_and_iteration(augment: Any, tmp_path: Path, prepared: ShardSet, lexicon: Path) -> None:
    short, _ = augment("a", 2)
    long, _ = augment("b", 4)
    names = [s.name for s in short.shards]
    assert names[:3] == ["b000-i000.arrow", "b000-i001.arrow", "b000-i002.arrow"]
    assert "b001-i000.arrow" in names and "b001-i001.arrow" not in names
    assert {s.name: s.sha256 for s in short.shards}.items() <= {s.name: s.sha256 for s in long.shards}.items()
    assert len(long.shards) == len(short.shards) + 4
    assert short.counts["rows"] == short.rows == ShardSet.open(tmp_path / "a").table().num_rows
    assert ShardSet.open(tmp_path / "a").verify() == []
    assert short.made_from["inputs"] == prepared.manifest.digest
    assert short.made_from["lexicon"] == read_lexicon(lexicon).digest
    # What an earlier, longer run left behind does not stay.
    _, report = augment("b", 2)
    assert len(list((tmp_path / "b").glob("*.arrow"))) == len(short.shards)
    assert (report.computed, report.reused) == (0, 3)


def test_workers_and_caps(augment: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    capped, _ = augment("a", 9, 31, p_mask=0.4)
    rows = {block: 0 for block in ("b000", "b001", "b002")}
    for shard in capped.shards:
        rows[shard.name[:4]] += shard.rows
    assert rows == {"b000": 11, "b001": 0, "b002": 11}
    assert capped.counts["over_cap"] > 0
    again, report = augment("b", 9, 31, p_mask=0.4)
    assert again == capped and (report.computed, report.reused) == (0, 3)
    # The number of workers moves no byte.
    alone, _ = augment("a", 3)
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path / "another"))
    shared, report = augment("b", 3, workers=2)
    assert shared == alone and report.computed == 3


@pytest.mark.parametrize(
    ("n_iter", "cap", "refused"), [(1, 40, True), (1, 41, False), (0, 40, False), (1, None, False)]
)
def test_a_cap_without_room_for_a_synthetic_sentence_is_refused(n_iter: int, cap: int | None, refused: bool) -> None:
    task = made_up_task(augment={"n_iter": n_iter, "cap": cap})
    if not refused:
        return check_cap("movies", task, 40)
    with pytest.raises(PotstillError, match=r"tasks.movies.augment.cap: 40 rows, and the 40"):
        check_cap("movies", task, 40)
