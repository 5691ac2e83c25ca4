"""Transfer sets: one shard per block and iteration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.augmentation.lexicon import Lexicon, read_lexicon
from pipeline_lib.corpora.augmentation.transfer_sets import AugmentationPass, check_cap
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import PassStats, run_pass
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from tests.kit.made_up import made_up_task
from tests.kit.shard_files import write_set

pytestmark = pytest.mark.usefixtures("store_home")

WORDS = ["a", "film", "good", "dull"]


@pytest.fixture
def prepared(tmp_path: Path, make_examples: Callable[..., pa.Table]) -> ShardSet:
    """Make a prepared set of three blocks, the middle one empty."""
    generator = np.random.default_rng(0)
    blocks = [
        [[WORDS[i] for i in generator.integers(0, 4, n)] + [f"{block}.{n}"] for n in range(1, count)]
        for block, count in enumerate((6, 1, 9))
    ]
    tables = [make_examples(rows, [["X"] * len(row) for row in rows]) for rows in blocks]
    return write_set(tmp_path / "prepared", "test", {f"b{n:03d}.arrow": table for n, table in enumerate(tables)})


@pytest.fixture
def lexicon(make_lexicon: Callable[..., Lexicon], tmp_path: Path) -> Path:
    make_lexicon({"X": {"a": 2, "film": 3, "good": 1, "dull": 1}})
    return next(tmp_path.rglob("lexicon*.arrow"))


@pytest.fixture
def augment(
    prepared: ShardSet, lexicon: Path, make_recipe: Any, tmp_path: Path, store_home: Path
) -> Callable[..., tuple[Manifest, PassStats]]:
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
    assert short.counts["rows"] == short.rows == ShardSet.open(tmp_path / "a").to_table().num_rows
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
