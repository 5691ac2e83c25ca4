"""Texts to label next: uncertain ones first, none like another, and only those without a label."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import softmax
from pipeline_lib.base.layout import Layout
from pipeline_lib.commands.shards.running import running_features
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.label_next import label_next, listed_next, to_label, unlike
from pipeline_lib.inspection.work_lists import WorkList
from pipeline_lib.models.students.student import load_student
from pipeline_lib.params import Params
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


def prepared(rows: list[Record], pair: bool = False, regression: bool = False) -> pa.Table:
    fields = [
        ("key", pa.uint64()),
        ("label", KINDS["regression" if regression else "classification"].label_type(1)),
        ("text", pa.string()),
    ]
    fields += [("text_2", pa.string())] if pair else []
    return pa.Table.from_pylist(rows, pa.schema(fields))


def texts_from(start: int, stop: int, pair: bool = False) -> list[Record]:
    rows = [{"key": n, "label": None, "text": TEXTS[n]} for n in range(start, stop)]
    return [row | ({"text_2": TEXTS[-1 - row["key"]]} if pair else {}) for row in rows]


def write_task(layout: Layout, names: list[str], pair: bool = False) -> None:
    """Write a task of 55 unlabelled texts, and some of a pool, and its students."""
    train, is_regression = layout.split(TASK, "train"), len(names) == 1
    labelled = [row | {"label": 1} for row in texts_from(60, 65, pair)]
    write_set(train, {"b000": prepared(labelled, pair, is_regression)})
    blocks = [texts_from(0, 30, pair), texts_from(30, 55, pair)]
    tables = {f"u{n:03d}": prepared(rows, pair, is_regression) for n, rows in enumerate(blocks)}
    write_set(unlabelled_folder(train), tables | {"p000": prepared(texts_from(55, 60, pair), pair, is_regression)})
    for seed, architecture in ((1, "bilstm"), (2, "cnn")):
        write_student(layout.student(TASK, ROW, seed), architecture, pair, names)
    made_up_scores({ROW: made_up_method(0.9, None)}).write(layout.scores(TASK))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout(tmp_path / "data")
    write_task(found, ["negative", "positive"])
    return found


def asked(layout: Layout, limit: int, task_params: Params | None = None) -> WorkList:
    return label_next(layout, task_params or params(), TASK, limit, running_features)


def texts_of(work_list: WorkList) -> list[str]:
    return [row.sentences[0].text for row in work_list.rows]


def test_the_most_uncertain_comes_first_and_copies_last() -> None:
    draw = np.random.default_rng(1)
    features = np.repeat(draw.normal(size=(20, 6)), 10, axis=0)
    uncertainty, numbers = draw.uniform(0.2, 0.5, 200), keys(200)
    chosen = unlike(uncertainty, features, numbers, 60)
    assert chosen[0] == uncertainty.argmax() and len({*chosen}) == 60
    assert len({number // 10 for number in chosen[:20]}) == 20
    # The order of the rows plays no part.
    order = draw.permutation(200)
    shuffled = unlike(uncertainty[order], features[order], numbers[order], 60)
    assert [order[number] for number in shuffled] == chosen


def test_what_the_student_is_sure_of_is_not_listed() -> None:
    features = np.random.default_rng(4).normal(size=(2000, 16))
    unsure = np.arange(2000) % 10 == 0
    assert unsure[unlike(np.where(unsure, 0.5, 0.02), features, keys(2000), 20)].all()


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
    assert len(asked(layout, 60).rows) == 55


def test_the_teachers_answers_stand_beside_it(layout: Layout) -> None:
    values = params()
    full = values.transfer["full"].model_copy(update={"unlabelled": True})
    values = values.model_copy(update={"transfer": values.transfer | {"full": full}})
    rows = [row | {"words": row["text"].split()} for row in texts_from(0, 55)]
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
    task = values.task(next(n for n, t in values.tasks.items() if t.kind == "regression"))
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
    assert not alone.rows and "Set several `seeds`" in alone.missing


@pytest.mark.parametrize("name", ["static", "regression", "biattentive", "transformer", "dse"])
@pytest.mark.parametrize("pair", [False, True])
def test_every_student_can_pick(tmp_path: Path, name: str, pair: bool) -> None:
    student = write_student(tmp_path / "student", name, pair, ["no", "yes"])
    write_set(tmp_path / "set", {"u000": prepared(texts_from(0, 20, pair), pair)})
    rows = JoinedRows.open(tmp_path / "set")
    found = listed_next(rows, running_features, [student], ["no", "yes"], 6, "it")
    assert len({row.key for row in found.rows}) == 6
    texts, loaded = [(t, t) for t in TEXTS[:5]] if pair else TEXTS[:5], load_student(student)
    _, features = loaded.logits_and_features(texts)
    weight, bias = (values.detach().numpy() for values in loaded.model.logits.parameters())
    assert loaded.logits(texts) == pytest.approx(features @ weight.T + bias, abs=1e-4)


def test_what_is_missing_is_said(layout: Layout, tmp_path: Path) -> None:
    layout.scores(TASK).unlink()
    assert "No student is trained and scored yet" in asked(layout, 3).missing
    task = params().task(TASK).model_copy(update={"label": None})
    values = params().model_copy(update={"tasks": {TASK: task}})
    with pytest.raises(PotstillError, match="its training rows have no labels"):
        asked(layout, 3, values)
    with pytest.raises(PotstillError, match="no 'other'"):
        label_next(layout, params(), "other", 3, running_features)
    assert "no unlabelled texts" in asked(Layout(tmp_path / "elsewhere"), 3).missing


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
    assert f"tasks.{TASK}.source.files.train: [..., next.csv]" in printed
    with open("next.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 7 and {row[column] for row in rows} == {""}
    shown = distill(*options)
    assert "To label next" in shown and f"7 of 55 rows; student: {ROW}-2" in shown
    # Without being asked for, it is not made.
    assert "To label next" not in distill("shards", "worklist", TASK, "--rows", "1")


def test_what_cannot_be_written_is_refused(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from tests.commands.running import PARAMS, failing

    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(PARAMS.read_text())
    for options, message in (
        ("--to next.csv", "Give --kind label-next alone"),
        ("--kind label-next --to next.txt", "give a name that ends in .parquet"),
        ("--kind label-next --kind labels --to a.csv", "label-next alone"),
        ("--kind label-next --to a.csv --rows 0", "not written. Raise --rows"),
    ):
        assert message in failing(monkeypatch, capsys, "shards", "worklist", TASK, *options.split())
    assert not [*tmp_path.glob("*.csv")]
