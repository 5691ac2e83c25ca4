"""Texts to label next: uncertain ones first, none like another, and only those without a label."""

import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.probabilities import Kind, softmax
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.label_next import diverse, label_next, listed_next, to_label
from pipeline_lib.inspection.work_lists import WorkList
from pipeline_lib.models.students.student import load_student
from pipeline_lib.params import Params
from pipeline_lib.shards.columns import label_type
from pipeline_lib.shards.training_texts import unlabelled_folder
from tests.exports.students import write_student
from tests.kit.made_up import made_up_method, made_up_scores

from .made_up import TASK, TEACHER, odds, params, transfer_table, write_set

WORDS = ("good", "plot", "film", "the", "is", "café", "a")
TEXTS = [f"{one} {two} {three}" for one in WORDS for two in WORDS for three in WORDS[:4]]
ROW = "bilstm_kd_ts"
Record = dict[str, Any]


def keys(count: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 2**63, count).astype(np.uint64)


KINDS: dict[bool, Kind] = {False: "classification", True: "regression"}


def prepared(rows: list[Record], pair: bool = False, regression: bool = False) -> pa.Table:
    """Return rows of a prepared set: key, label, texts."""
    fields = [("key", pa.uint64()), ("label", label_type(KINDS[regression], 1)), ("text", pa.string())]
    fields += [("text_2", pa.string())] if pair else []
    return pa.Table.from_pylist(rows, pa.schema(fields))


def texts_from(start: int, stop: int, pair: bool = False) -> list[Record]:
    rows = [{"key": n, "label": None, "text": TEXTS[n]} for n in range(start, stop)]
    return [row | ({"text_2": TEXTS[-1 - row["key"]]} if pair else {}) for row in rows]


def write_task(layout: Layout, names: list[str], pair: bool = False) -> None:
    """Write a task of 60 unlabelled texts, 5 of which have a label by now, and its students."""
    train, is_regression = layout.split(TASK, "train"), len(names) == 1
    labelled = [row | {"label": 1} for row in texts_from(55, 65, pair)]
    write_set(train, {"b000": prepared(labelled, pair, is_regression)})
    blocks = [texts_from(0, 30, pair), texts_from(30, 60, pair)]
    tables = {f"u{n:03d}": prepared(rows, pair, is_regression) for n, rows in enumerate(blocks)}
    write_set(unlabelled_folder(train), tables)
    for seed, architecture in ((1, "bilstm"), (2, "cnn")):
        write_student(layout.student(TASK, ROW, seed), architecture, pair, names)
    made_up_scores({ROW: made_up_method(0.9, None)}).write(layout.scores(TASK))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return a task of sentences with two classes."""
    found = Layout(tmp_path / "data")
    write_task(found, ["negative", "positive"])
    return found


def asked(layout: Layout, limit: int, task_params: Params | None = None) -> WorkList:
    return label_next(layout, task_params or params(), TASK, limit)


def texts_of(work_list: WorkList) -> list[str]:
    return [row.sentences[0].text for row in work_list.rows]


class TestDiverse:
    def test_the_longest_first_and_then_what_is_far_from_it(self) -> None:
        features = np.array([[1, 0], [1, 0], [0, 1], [0.6, 0.8]], np.float32)
        weights = np.array([[0.4, -0.4], [0.5, -0.5], [0.3, -0.3], [0.0, 0.0]])
        picked = diverse(weights, features, keys(4), 4)
        assert picked[0] == 1 and picked[-1] == 3
        assert sorted(picked) == [0, 1, 2, 3]

    def test_copies_are_not_picked_beside_each_other(self) -> None:
        draw = np.random.default_rng(1)
        distinct = draw.normal(size=(20, 6)).astype(np.float32)
        features = np.repeat(distinct, 10, axis=0)
        weights = np.repeat(draw.uniform(0.2, 0.5, (20, 1)), 10, axis=0) * [[1.0, -1.0]]
        picked = diverse(weights, features, keys(200), 60)
        assert len({number // 10 for number in picked[:20]}) == 20
        assert len(set(picked)) == 60
        lengths = (weights**2).sum(1) * (features**2).sum(1)
        assert np.all(np.diff(lengths[picked[20:]]) <= 1e-9)

    def test_a_draw_is_by_the_square_of_the_distance(self) -> None:
        features = np.eye(3, dtype=np.float32)
        weights = np.array([[9.0], [2.0], [1.0]])
        draws = [diverse(weights, features, keys(3), 2, seed)[1] for seed in range(4000)]
        # Their distances from the origin are nearer than those from the first.
        assert np.mean(np.array(draws) == 1) == pytest.approx(4 / 5, abs=0.02)

    def test_the_order_of_the_rows_plays_no_part(self) -> None:
        draw = np.random.default_rng(2)
        features, numbers = draw.normal(size=(300, 8)).astype(np.float32), keys(300)
        weights = softmax(draw.normal(size=(300, 4))) - np.eye(4)[draw.integers(0, 4, 300)]
        order = draw.permutation(300)
        picked = numbers[diverse(weights, features, numbers, 40)]
        shuffled = numbers[order][diverse(weights[order], features[order], numbers[order], 40)]
        assert picked.tolist() == shuffled.tolist()
        # And a longer list begins with the shorter one.
        assert numbers[diverse(weights, features, numbers, 90)][:40].tolist() == picked.tolist()

    def test_uncertain_rows_are_picked_far_more_often(self) -> None:
        draw = np.random.default_rng(4)
        features = draw.normal(size=(2000, 16)).astype(np.float32)
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        unsure = np.arange(2000) % 10 == 0
        weights = np.where(unsure, 0.5, 0.02)[:, None] * [[1.0, -1.0]]
        picked = diverse(weights, features, keys(2000), 100)
        assert unsure[picked].mean() > 0.9

    def test_a_hundred_thousand_rows_take_seconds(self) -> None:
        draw = np.random.default_rng(5)
        features = draw.normal(size=(100_000, 64)).astype(np.float32)
        weights = draw.normal(size=(100_000, 2))
        start = time.process_time()
        assert len(set(diverse(weights, features, keys(100_000), 20))) == 20
        assert time.process_time() - start < 20


def test_the_list_holds_texts_without_a_label_by_the_best_student(layout: Layout) -> None:
    found = asked(layout, 10)
    assert found.name == "label-next" and found.considered == 55
    assert found.student == f"{ROW}-2" and len(set(texts_of(found))) == 10
    assert not {*texts_of(found)} & {*TEXTS[55:65]}
    student = load_student(layout.student(TASK, ROW, 2))
    uncertainty = 1 - softmax(student.logits(TEXTS[:55])).max(axis=1)
    assert found.rows[0].sentences[0].text == TEXTS[int(uncertainty.argmax())]
    for row in found.rows:
        number = TEXTS.index(row.sentences[0].text)
        assert row.score == pytest.approx(uncertainty[number], abs=2e-6)
        assert row.student.answer in ("negative", "positive") and row.teacher is None
    assert texts_of(asked(layout, 60))[:10] == texts_of(found)
    assert len(asked(layout, 60).rows) == 55


def test_the_teachers_answers_stand_beside_it(layout: Layout) -> None:
    values = params()
    full = values.transfer["full"].model_copy(update={"unlabelled": True})
    values = values.model_copy(update={"transfer": values.transfer | {"full": full}})
    rows = [row | {"words": row["text"].split()} for row in texts_from(0, 60)]
    kept = [r | {"rules": [0] * 3, "ngram_start": 0, "ngram_length": 0} for r in rows]
    folder, outputs = layout.transfer(TASK, "full"), layout.outputs(TASK, TEACHER, "full")
    tables = {"u000-i000": transfer_table(kept)}
    write_set(folder, tables, outputs, [odds(0.9) for _ in kept])
    found = asked(layout, 5, values)
    assert {row.teacher.answer for row in found.rows} == {"positive"}
    assert texts_of(found) == texts_of(asked(layout, 5))


def test_scores_are_asked_by_the_spread_over_seeds(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "data")
    write_task(layout, ["score"], pair=True)
    values = params()
    pairs = next(task for task in values.tasks.values() if task.is_pair)
    update = {"kind": "regression", "text": ["first", "second"], "label": "score"}
    task = values.task(next(n for n, t in values.tasks.items() if t.is_regression))
    task = task.model_copy(update=update | {"source": pairs.source})
    values = values.model_copy(update={"tasks": values.tasks | {TASK: task}, "seeds": [1, 2]})
    found = asked(layout, 4, values)
    both = [
        load_student(layout.student(TASK, ROW, seed)).logits([(TEXTS[n], TEXTS[-1 - n]) for n in range(55)])[:, 0]
        for seed in (1, 2)
    ]
    spread = np.std(both, axis=0, ddof=1)
    assert found.rows[0].sentences[0].text == TEXTS[int(spread.argmax())]
    assert found.rows[0].score == pytest.approx(spread.max(), abs=1e-5)
    assert found.student == ROW and found.measure == "standard deviation over seeds"
    table = to_label(found, task)
    assert table.column_names == ["first", "second", "score", "student", "uncertainty"]
    assert table["score"].null_count == 4
    alone = asked(layout, 4, values.model_copy(update={"seeds": [2]}))
    assert not alone.rows and "set several `seeds`" in alone.missing


@pytest.mark.parametrize("name", ["static", "linear", "biattentive", "transformer", "dse"])
@pytest.mark.parametrize("pair", [False, True])
def test_every_student_can_pick(tmp_path: Path, name: str, pair: bool) -> None:
    student = write_student(tmp_path / "student", name, pair, ["no", "yes"])
    write_set(tmp_path / "set", {"u000": prepared(texts_from(0, 20, pair), pair)})
    rows = JoinedRows.open(tmp_path / "set")

    def every(batch: Any) -> np.ndarray:
        return np.ones(len(batch), bool)

    found = listed_next(rows, every, [student], ["no", "yes"], 6, "it")
    assert len({row.key for row in found.rows}) == 6
    _, features = load_student(student).logits_and_features([(t, t) for t in TEXTS[:5]] if pair else TEXTS[:5])
    layer = load_student(student).model.logits
    logits = features @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    texts = [(t, t) for t in TEXTS[:5]] if pair else TEXTS[:5]
    assert load_student(student).logits(texts) == pytest.approx(logits, abs=1e-4)


def test_what_is_missing_is_said(layout: Layout) -> None:
    layout.scores(TASK).unlink()
    assert "No student is trained and scored yet" in asked(layout, 3).missing
    task = params().task(TASK).model_copy(update={"label": None})
    values = params().model_copy(update={"tasks": {TASK: task}})
    with pytest.raises(PotstillError, match="its training rows have no labels"):
        asked(layout, 3, values)
    with pytest.raises(PotstillError, match="no 'other'"):
        label_next(layout, params(), "other", 3)


def test_a_task_without_more_texts_and_one_with_all_labels(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "data")
    assert "no unlabelled texts" in asked(layout, 3).missing
    write_task(layout, ["negative", "positive"])
    rows = [row | {"label": 0} for row in texts_from(0, 60)]
    write_set(layout.split(TASK, "train"), {"b000": prepared(rows)})
    found = asked(layout, 3)
    assert not found.rows and found.missing == "Every text has a label."


def test_a_column_of_the_tasks_own_is_not_written_over(layout: Layout) -> None:
    task = params().task(TASK).model_copy(update={"text": ["student"], "label": "gold"})
    table = to_label(asked(layout, 2), task)
    assert table.column_names == ["student", "gold", "uncertainty"]
    assert {*table["student"].to_pylist()} <= {*TEXTS}


def test_the_command_writes_a_file_to_fill_in(layout: Layout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tests.commands.running import PARAMS, distill

    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(PARAMS.read_text())
    column = params().task(TASK).label_of("train")
    options = ("shards", "worklist", TASK, "--kind", "label-next", "--rows", "7")
    printed = distill(*options, "--to", "next.csv")
    assert "next.csv: 7 of 55 unlabelled texts" in printed
    assert f"--add-labels next.csv --name {TASK}" in printed
    with open("next.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 7 and {row[column] for row in rows} == {""}
    shown = distill(*options)
    assert "To label next" in shown and f"7 of 55 rows; student: {ROW}-2" in shown
    # Without being asked for, it is not made.
    assert "To label next" not in distill("shards", "worklist", TASK, "--rows", "1")
    folder = unlabelled_folder(layout.split(TASK, "train"))
    student = layout.student(TASK, ROW, 1)
    of_set = ("shards", "worklist", str(folder), "--kind", "label-next", "--student", str(student))
    assert "10 of 60 rows" in distill(*of_set)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "next.csv"], "Give --kind label-next alone, with a task's name"),
        (["--kind", "label-next", "--to", "next.txt"], "give a name that ends in .parquet"),
        (["--kind", "label-next", "--kind", "labels", "--to", "a.csv"], "label-next alone"),
        (["--kind", "label-next", "--to", "a.csv", "--rows", "0"], "not written. Raise --rows"),
    ],
)
def test_what_cannot_be_written_is_refused(
    layout: Layout,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    options: list[str],
    message: str,
) -> None:
    from tests.commands.running import PARAMS, failing

    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(PARAMS.read_text())
    assert message in failing(monkeypatch, capsys, "shards", "worklist", TASK, *options)
    assert not [*tmp_path.glob("*.csv")]
