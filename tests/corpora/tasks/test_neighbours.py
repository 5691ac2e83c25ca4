"""Pairs of neighbours: who is one, that no article is shared, and that more pairs add to fewer."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import read_examples
from pipeline_lib.corpora.wikipedia.splitting import SCHEMA
from pipeline_lib.params import NeighbourPairs, Task
from tests.kit.shard_files import write_set

ARTICLES, SENTENCES = 60, 30


def source(**changes: object) -> NeighbourPairs:
    values = {"kind": "neighbours", "pairs": 600, "same_article": 0.5}
    return NeighbourPairs.model_validate(values | {"dev": 0.2, "test": 0.2} | changes)


def name(article: int, position: int) -> str:
    return f"{article}/{position}"


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a set whose sentences are named by article and position, a third of them dropped."""
    places = [(a, p) for a in range(ARTICLES) for p in range(SENTENCES) if (a + p) % 3]
    articles, positions = zip(*places, strict=True)
    texts = [name(*place) for place in places]
    columns = [string_keys(texts), texts, [str(a) for a in articles], texts, positions]
    kinds = zip(columns, SCHEMA.types, strict=True)
    table = pa.table([pa.array(values, kind) for values, kind in kinds], schema=SCHEMA)
    folder = tmp_path_factory.mktemp("sentences")
    # Neighbours may stand in different shards.
    write_set(folder, "sentences", {"s0.arrow": table.slice(0, 500), "s1.arrow": table.slice(500)})
    return folder


def pairs(
    sentences: Path, folder: Path, **changes: object
) -> dict[str, list[tuple[tuple[int, int], tuple[int, int], str]]]:
    """Return (first, second, label) of each split; a sentence as (article, position)."""
    fetch_data("next", source(**changes), folder, folder / "raw", wikipedia=sentences)
    found = {}
    for path in (folder / "raw").glob("*.parquet"):
        rows = pq.read_table(path).to_pylist()
        found[path.stem] = [
            (*(tuple(map(int, row[side].split("/"))) for side in ("first", "second")), row["label"]) for row in rows
        ]
    return found


def test_pairs_are_what_they_say(sentences: Path, tmp_path: Path, make_task: Callable[..., Task]) -> None:
    found = pairs(sentences, tmp_path)
    assert set(found) == {"train", "dev", "test"}
    every = [pair for split in found.values() for pair in split]
    assert Counter(label for *_, label in every) == {"neighbours": 300, "apart": 300}
    for (article, position), (other, behind), label in every:
        near = article == other and abs(behind - position) == 1
        assert near == (label == "neighbours")
        assert not near or behind == position + 1
    inside = sum(a[0] == b[0] for a, b, label in every if label == "apart")
    assert 0.4 < inside / 300 < 0.6
    assert len(set(every)) == 600
    articles = {
        split: {side[0] for pair in rows for side in pair[:2]} for split, rows in pairs(sentences, tmp_path).items()
    }
    assert not articles["train"] & articles["dev"]
    assert not articles["train"] & articles["test"]
    assert not articles["dev"] & articles["test"]
    assert sum(map(len, articles.values())) <= ARTICLES
    # Neither sentence gives the label away.
    rows = pairs(sentences, tmp_path)["train"]
    firsts = [{pair[0] for pair in rows if pair[2] == label} for label in ("neighbours", "apart")]
    assert firsts[0] == firsts[1]
    # Every second sentence follows a neighbour of its own: here, none follows a dropped one.
    assert all((article + position - 1) % 3 for _, (article, position), _ in rows)
    # Prepare reads them as two columns.
    pairs(sentences, tmp_path)
    labels = {"apart": ["apart"], "neighbours": ["neighbours"]}
    task = make_task(source=source().model_dump(), text=["first", "second"], labels=labels)
    splits, _ = read_examples(tmp_path / "raw", task)
    assert {len(example.texts) for example in splits["dev"]} == {2}
    assert sum(map(len, splits.values())) == 600
    assert np.mean([example.label for example in splits["train"]]) == 0.5


def test_more_pairs_add_to_fewer(sentences: Path, tmp_path: Path) -> None:
    few, many = pairs(sentences, tmp_path, pairs=200), pairs(sentences, tmp_path, pairs=400)
    assert all(set(few[split]) <= set(many[split]) for split in few)
    assert pairs(sentences, tmp_path, pairs=200) == few


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_negatives_from_one_kind_of_place(sentences: Path, tmp_path: Path, share: float) -> None:
    found = pairs(sentences, tmp_path, same_article=share, test=0.0)
    assert set(found) == {"train", "dev"}
    apart = [pair for rows in found.values() for pair in rows if pair[2] == "apart"]
    assert {a[0] == b[0] for a, b, _ in apart} == {share == 1.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": 10_000}, r"tasks.next.source.pairs: 10,000 pairs need 5,000 neighbours, .* 580"),
        ({"dev": 1e-9}, r"tasks.next.source: no pair is left for dev"),
    ],
)
def test_too_few_are_an_error(sentences: Path, tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(PotstillError, match=message):
        pairs(sentences, tmp_path, **changes)
