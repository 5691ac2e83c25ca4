"""Two sets compared: rows gone and added, answers and vectors that moved."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.inspection.differences import difference
from pipeline_lib.inspection.joined import JoinedRows

from .made_up import TASK, TEACHER, Record, odds, sentence, transfer_table, write_set


def row(key: int, **changes: object) -> Record:
    """Return a row; keys are hashes, so these are spread over all bits."""
    return {"key": key * 0x9E3779B97F4A7C15 % (1 << 64), **sentence(f"text {key}")} | changes


def written(data: Path, blocks: list[list[Record]], logits: list[list[float]]) -> JoinedRows:
    folder = data / "transfer" / TASK / "full"
    tables = {f"b{n:03d}-i000": transfer_table(rows) for n, rows in enumerate(blocks)}
    write_set(folder, tables, data / "outputs" / TASK / TEACHER / "full", logits)
    return JoinedRows.open(folder)


def test_rows_gone_and_added_and_answers_moved(tmp_path: Path) -> None:
    same = [row(1, label=0), row(2, label=1)]
    here = [row(3, label=0), row(4), row(5, label=1), row(6), row(6), row(7)]
    there = [row(6), row(5, label=0), row(8, iteration=1), row(4), row(3, label=0), row(7)]
    answered = [odds(0.9), odds(0.8)]
    nothing = [np.nan, np.nan]
    before = written(tmp_path / "a", [same, here], [*answered, *map(odds, [0.1, 0.2, 0.3, 0.4, 0.5]), nothing])
    after = written(tmp_path / "b", [same, there], [*answered, *map(odds, [0.4, 0.3, 0.9, 0.8, 0.1]), odds(0.6)])
    found = difference(before, after, 2)
    # Of the two equal rows one is left.
    assert (found.gone.rows, found.gone.first) == (1, [6])
    assert (found.added.originals, found.added.synthetic, found.added.first) == (0, 1, [4])
    assert (found.common, found.untouched, found.relabelled) == (7, 2, 1)
    assert (found.answers.changed, found.other) == (1, 1)
    assert (found.answers_lost, found.answers_gained) == (0, 1)
    (distance, old, new), *rest = found.answers.most
    assert (old, new) == (3, 5) and not rest and found.answers.apart.values.max() == distance
    assert found.answers.apart.count == 4


def test_equal_rows_are_matched_in_order(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    keys = chance.integers(0, 300, (2, 400))
    sets = [
        written(tmp_path / name, [[row(int(key)) for key in own]], [odds(s) for s in shares])
        for name, own, shares in zip("ab", keys, chance.uniform(0.1, 0.9, (2, 400)), strict=True)
    ]

    found = difference(*sets, 5)
    counts = [np.bincount(own, minlength=300) for own in keys]
    assert found.common == int(np.minimum(*counts).sum()) == found.answers.apart.count
    assert found.gone.rows == found.added.rows == 400 - found.common
    for _, here, there in found.answers.most:
        key = keys[0][here]
        assert key == keys[1][there] and (keys[0][:here] == key).sum() == (keys[1][:there] == key).sum()


def test_vectors_by_their_cosine(tmp_path: Path) -> None:
    vectors = {"a": [[1.0, 0.0], [3.0, 4.0]], "b": [[0.0, 2.0], [6.0, 8.0]]}
    sets = []
    for name, own in vectors.items():
        folder = tmp_path / name / "transfer" / TASK / "full"
        answers = tmp_path / name / "vectors" / "tasks" / TASK / "full"
        tables = {"b000-i000": transfer_table([row(1), row(2)])}
        write_set(folder, tables, answers, own, "vector")
        sets.append(JoinedRows.open(folder))
    found = difference(*sets, 5).vectors[""]
    # Longer but not turned is not far.
    assert found.changed == 2 and found.most[0] == (pytest.approx(1.0), 0, 0)
    assert found.most[1][0] == pytest.approx(0.0, abs=1e-12)


def test_answers_of_different_kinds_are_refused(tmp_path: Path) -> None:
    before = written(tmp_path / "a", [[row(1)]], [[0.0, 1.0]])
    after = written(tmp_path / "b", [[row(1)]], [[0.0]])
    with pytest.raises(PotstillError, match="of 2 and of 1 numbers cannot be compared"):
        difference(before, after, 1)


def test_rows_without_keys_are_known_by_their_texts(tmp_path: Path) -> None:
    rows = [row(n) for n in range(4)]
    for name, own in (("a", rows), ("b", rows[1:])):
        write_set(tmp_path / name, {"s0": transfer_table(own).select(["text"])})
    found = difference(JoinedRows.open(tmp_path / "a"), JoinedRows.open(tmp_path / "b"), 1)
    assert (found.gone.rows, found.added.rows, found.common) == (1, 0, 3)
    write_set(tmp_path / "c", {"s0": transfer_table(rows).select(["iteration"])})
    with pytest.raises(PotstillError, match="neither keys nor texts"):
        difference(JoinedRows.open(tmp_path / "c"), JoinedRows.open(tmp_path / "a"), 1)
