"""Collections of queries and documents: made of a task's pairs."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, check_params
from pipeline_lib.retrieval.evaluation.collection import Collection, read_collection
from tests.kit.shard_files import write_set
from tests.params.variants import changed

SYSTEMS = {"mini": {"kind": "model", "model": "minilm", "pooling": "mean", "max_length": 8}}
PAIRS = [("a", "x", 1), ("a", "y", 0), ("b", "y", 1), ("b", "a", 0), ("c", "x", 0), ("d", "d", 1), ("x", "z", 1)]


def make_params(source: dict[str, Any], **changes: Any) -> Params:
    raw = changed({})
    row = {"source": source, "queries": None, "systems": SYSTEMS, "teacher": None, "at": [1]}
    raw["retrieval"] = {"mine": row | changes}
    return check_params(raw)


def write_pairs(
    layout: Layout, task: str, split: str, labels: list[Any], pairs: list[tuple[str, str, int]] = PAIRS
) -> None:
    first, second, _ = zip(*pairs, strict=True)
    table = pa.table({"text": first, "text_2": second, "label": pa.array(labels, pa.int32())})
    write_set(layout.split(task, split), "prepared", {"s.arrow": table})


def from_pairs(**changes: Any) -> dict[str, Any]:
    own = {"kind": "task", "task": "neighbours", "split": "dev", "relevant": "neighbours"}
    return own | {"graded": False} | changes


def test_every_first_sentence_is_asked_of_all_second_ones(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    write_pairs(layout, "neighbours", "dev", [label for _, _, label in PAIRS])
    found = read_collection(make_params(from_pairs()), "mine", layout)
    assert (found.queries, found.left_out) == (["a", "b", "d", "x"], 1)
    assert found.documents == ["x", "y", "a", "d", "z"]
    assert found.relevant == [{0}, {1}, {3}, {4}]
    assert found.gains == [{0: 1.0}, {1: 1.0}, {3: 1.0}, {4: 1.0}]
    # Nobody has judged a with a, or x with x; d with d is judged.
    assert found.own == [2, None, None, 0]


def test_fewer_queries_are_some_of_the_same(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    write_pairs(layout, "neighbours", "dev", [label for _, _, label in PAIRS])
    whole = read_collection(make_params(from_pairs()), "mine", layout)
    part = read_collection(make_params(from_pairs(), queries=2), "mine", layout)
    places = [whole.queries.index(query) for query in part.queries]
    assert len(places) == 2 and places == sorted(places) and part.left_out == 3
    assert part.relevant == [whole.relevant[place] for place in places]
    assert part.own == [whole.own[place] for place in places]
    assert part.documents == whole.documents


def test_grades_count_above_the_threshold_or_as_they_are() -> None:
    judged = [("a", "x", 5.0), ("a", "y", 2.0), ("a", "x", 4.0)]
    graded = Collection.of(["a"], ["x", "y"], judged, 4.0, graded=True)
    # Of two judgements of a pair the higher.
    assert (graded.relevant, graded.gains) == ([{0}], [{0: 5.0, 1: 2.0}])
    assert Collection.of(["a"], ["x", "y"], judged, 4.0, graded=False).gains == [{0: 1.0}]
    assert Collection.of(["a"], ["x", "y"], judged, 6.0, graded=False).queries == []


@pytest.mark.parametrize(
    ("source", "labels", "message"),
    [
        ({"split": "test"}, [0] * 7, "neighbours has no split test. Name one that"),
        ({}, [0, None] * 3 + [1], "labels of dev of neighbours are hidden"),
        ({}, [0] * 7, "retrieval.mine.source: no query has an answer"),
    ],
)
def test_pairs_that_make_no_collection(source: dict[str, Any], labels: list[Any], message: str, tmp_path: Path) -> None:
    write_pairs(Layout(tmp_path), "neighbours", "dev", labels)
    with pytest.raises(PotstillError, match=message):
        read_collection(make_params(from_pairs(**source)), "mine", Layout(tmp_path))


def test_the_lowest_keys_are_independent_of_the_order() -> None:
    texts = [f"text {number}" for number in range(20)]
    judged = [(text, "x", 1.0) for text in texts]
    one = Collection.of(texts, ["x"], judged, 1.0, False).limited(5)
    other = Collection.of(texts[::-1], ["x"], judged, 1.0, False).limited(5)
    assert np.array_equal(sorted(one.queries), sorted(other.queries))
