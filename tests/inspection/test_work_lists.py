"""Work lists: which rows come first, what is said of them, and that a pass keeps few of them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.changes import Span
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.originals import Originals
from pipeline_lib.inspection.sampling import Top
from pipeline_lib.inspection.work_lists import ListPart, WorkList, lists_of, work_lists
from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.shard_sets import write_shard
from tests.kit.made_up import made_up_method, made_up_scores

from .made_up import TASK, TEACHER, made_up_transfer, odds, params, sentence, transfer_table, write_set

NAMES = ["negative", "positive"]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return a project with one transfer set, a labelled dev split, and a student's answers."""
    found = Layout(tmp_path / "data")
    made_up_transfer(found)
    dev = pa.table(
        {
            "key": pa.array([31, 32], pa.uint64()),
            "label": pa.array([0, 1], pa.int32()),
            "text": ["well made", "not bad"],
        }
    )
    outputs = found.heldout_outputs(TASK, TEACHER, "dev")
    write_set(found.split(TASK, "dev"), {"b000": dev}, outputs, [odds(0.95), odds(0.4)])
    student = {1: [odds(0.95), odds(0.4)], 2: [odds(0.9), odds(0.1)]}
    columns = {f"bilstm_kd_ts-{seed}": list_column(np.array(logits, np.float32)) for seed, logits in student.items()}
    told = {"split": ["dev", "dev"], "row": [0, 1], "label": [0, 1]}
    write_shard(found.predictions(TASK), pa.table(told | columns))
    made_up_scores({"bilstm_kd_ts": made_up_method(0.9, None)}).write(found.scores(TASK))
    return found


def lists(layout: Layout, limit: int = 3) -> dict[str, WorkList]:
    return {found.name: found for found in work_lists(layout, params(), TASK, limit)}


class TestOrder:
    def test_uncertain_rows_are_those_that_people_wrote(self, layout: Layout) -> None:
        found = lists(layout)["uncertain"]
        assert [row.sentences[0].text for row in found.rows] == ["so so", "not bad", "a joy to watch"]
        assert found.rows[0].score == 0.992774 and found.considered == 6

    def test_labels_by_self_confidence_and_likely_errors_are_counted(self, layout: Layout) -> None:
        found = lists(layout)["labels"]
        assert [row.key for row in found.rows] == [f"{key:016x}" for key in (31, 12, 32)]
        assert [row.score for row in found.rows] == [0.95, 0.8, 0.6]
        # The labels' mean probabilities are 0.4 and 0.65.  The teacher answers 31, 12, 32 and 14
        # otherwise, and 14 with 0.55 alone.
        assert "about 3 of 6 labels are wrong" in found.explanation

    def test_the_student_is_the_seed_that_is_best_on_dev(self, layout: Layout) -> None:
        found = lists(layout)["student"]
        assert found.student == "bilstm_kd_ts-2" and found.considered == 2
        row = found.rows[0]
        assert row.sentences[0].text == "not bad"
        assert row.teacher.probabilities["positive"] == pytest.approx(0.4, abs=1e-6)
        assert row.student.probabilities["positive"] == pytest.approx(0.1, abs=1e-6)

    def test_augmentation_is_held_against_the_original(self, layout: Layout) -> None:
        found = lists(layout, 9)["augmentation"]
        assert found.considered == len(found.rows) == 5
        row = found.rows[0]
        assert row.place == "b000-i001:0" and row.rules == ["replace"]
        assert row.sentences[0].spans == [Span("replace", 2, 5, was="good")]
        assert row.original.sentences[0].text == "a good film"
        assert row.original.teacher.answer == "positive" and row.teacher.answer == "negative"
        kept = next(row for row in found.rows if row.place == "b000-i001:1")
        # Words 3 and 4 are left, and the first of them is masked.
        assert kept.sentences[0].ngram == (3, 4) and kept.rules == ["mask", "ngram"]
        assert kept.sentences[0].spans == [Span("mask", 0, 6, was="to")]


def test_what_is_missing_or_of_other_rows_is_said(layout: Layout) -> None:
    with pytest.raises(PotstillError, match="no row 'none'; there are bilstm_kd_ts"):
        work_lists(layout, params(), TASK, 3, "none")
    table = pa.table({"split": ["test"], "row": [0], "label": [0]})
    write_shard(layout.predictions(TASK), table)
    with pytest.raises(PotstillError, match="rows of dev are not the 2"):
        lists(layout)
    layout.scores(TASK).unlink()
    found = lists(layout)
    assert [*found] == ["uncertain", "labels", "student", "augmentation"]
    assert not found["student"].rows and "No student" in found["student"].missing


def test_scores_of_pairs(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    second = {f"{name}_2": value for name, value in sentence("the same").items()}
    changed = {f"{name}_2": v for name, v in sentence("the [MASK]", [0, 1]).items()}
    row = {"key": 1, "example": 1, "label": 0.5, **sentence("as before")}
    made = {"key": 2, "iteration": 1, "label": None}
    tables = {
        "b000-i000": transfer_table([row | second], regression=True),
        "b000-i001": transfer_table([row | changed | made], regression=True),
    }
    folder = layout.transfer(TASK, "full")
    write_set(folder, tables, layout.outputs(TASK, TEACHER, "full"), [[1.0], [3.0]])
    part = ListPart(JoinedRows.open(folder), student=lambda b: b.logits + 1, spread=lambda b: np.array([0.25]))
    found = {own.name: own for own in lists_of([part], None, 5, regression=True)}
    assert [row.score for row in found["augmentation"].rows] == [2.0]
    assert found["augmentation"].rows[0].sentences[1].spans == [Span("mask", 4, 10, "same")]
    assert [row.score for row in found["labels"].rows] == [0.5]
    assert found["labels"].rows[0].label == 0.5 and found["labels"].rows[0].teacher.answer == 1.0


def test_the_greatest_scores_are_kept_and_the_first_of_equal_ones() -> None:
    scores = np.random.default_rng(1).integers(0, 50, 1000) / 10
    scores[::7] = np.nan
    top = Top(20)
    for start in range(0, 1000, 64):
        top.add(scores[start : start + 64], 0, 0, start)
    known = np.flatnonzero(~np.isnan(scores))
    wanted = known[np.argsort(-scores[known], kind="stable")][:20]
    assert [row for _, (_, _, row) in top.best()] == wanted.tolist()
    assert top.seen == len(known) and not Top(0).best()


@pytest.mark.parametrize("in_order", [True, False])
def test_originals_are_found(tmp_path: Path, in_order: bool) -> None:
    examples = np.random.default_rng(1).integers(0, 20, 40)
    examples = np.sort(examples) if in_order else examples
    made = [{"key": 100 + n, "example": int(e), "iteration": 1} for n, e in enumerate(examples)]
    tables = {
        "b000-i000": transfer_table([{"key": n, **sentence("a")} for n in range(20)]),
        "b000-i001": transfer_table([row | sentence("b") for row in made]),
    }
    folder = tmp_path / "transfer" / TASK / "full"
    logits = [[float(n), 0.0] for n in range(60)]
    write_set(folder, tables, tmp_path / "outputs" / TASK / TEACHER / "full", logits)
    rows = JoinedRows.open(folder)
    originals = Originals(rows)
    synthetic = [batch for batch in rows.batches(7) if batch.shard]
    found = np.concatenate([originals.logits(batch)[:, 0] for batch in synthetic])
    assert found.tolist() == examples.tolist()
