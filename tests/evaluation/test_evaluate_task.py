"""Evaluating a task end to end on small shard sets, with a student and a teacher made up here."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.evaluation.evaluate import evaluate_task
from pipeline_lib.params import Method, Params, Teacher, load_params, student_settings
from pipeline_lib.results.collect import TaskResult, metrics
from pipeline_lib.results.schema import Floor, Ratio, SeedScores, TaskScores, Training
from pipeline_lib.results.tables import scores_table
from pipeline_lib.shards.columns import list_column, matrix
from pipeline_lib.shards.shard_sets import Manifest, read_manifest, read_shard, schema_of, write_manifest, write_shard
from tests.kit.made_up import made_up_teacher, made_up_training
from tests.tour import TOUR

TEXTS = [f"sentence {i}" for i in range(40)]
LABELS = [i % 2 for i in range(40)]


def cells(scores: TaskScores) -> dict[str, list[str]]:
    table = scores_table(TaskResult("movies", scores), timed=False)
    return dict(zip(table.header, map(list, zip(*table.lines, strict=True)), strict=True))


def save(folder: Path, kind: str, table: pa.Table, source: str | None = None) -> str:
    shard = write_shard(folder / "rows.arrow", table, source)
    made_from = {"precision": "float32"} if source else {}
    write_manifest(folder, Manifest(kind, schema_of(table), [shard], made_from))
    return shard.sha256


def save_split(data: Path, split: str, labels: Sequence[int | None]) -> None:
    table = pa.table({"label": pa.array(labels, pa.int32()), "text": TEXTS})
    digest = save(data / "tasks/movies" / split, "tasks", table)
    if split != "train":
        answers = pa.table({"logits": list_column(one_hot(wrong_every(10)))})
        save(data / "outputs/movies/heldout/minilm" / split, "outputs", answers, digest)


def wrong_every(step: int) -> np.ndarray:
    return np.array([1 - y if i % step == 0 else y for i, y in enumerate(LABELS)])


def one_hot(classes: np.ndarray) -> np.ndarray:
    return np.eye(2, dtype=np.float32)[classes]


class Fake:
    label_names: ClassVar = ["negative", "positive"]

    def __init__(self, step: int) -> None:
        self.step = step

    def logits(self, texts: Sequence[str]) -> np.ndarray:
        return one_hot(wrong_every(self.step))[: len(texts)]

    def predict(self, texts: Sequence[str], *_: int) -> np.ndarray:
        return self.logits(texts)

    def parameters(self, embeddings: bool) -> int:
        return 300 if embeddings else 100


@pytest.fixture
def params() -> Params:
    given = load_params(TOUR)
    row = given.methods["bilstm"]
    methods = {"plain": row, "distilled": Method(**{**row.model_dump(), "baseline": "plain"})}
    tasks = {"movies": given.task("movies")}
    return given.model_copy(update={"methods": methods, "seeds": [1, 2], "tasks": tasks})


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path / "home"))
    data = tmp_path / "data"
    for split in ("train", "dev", "test"):
        save_split(data, split, LABELS)
    for method in ("plain", "distilled"):
        for seed in (1, 2):
            folder = data / "students/movies" / method / str(seed)
            folder.mkdir(parents=True)
            (folder / "config.json").write_text("{}")
            # Their answers are kept by what is in the folder.
            (folder / "weights").write_text(f"{method} {seed}")
            record = made_up_training(rows=40, best_step=10 * seed)
            write_json(folder / "training.json", record)
        search = {"seed": 1, "learning_rate": 0.003, "best_dev_by_rate": {"0.003": 0.5}}
        write_json(data / "students/movies" / method / "search.json", search)
    (data / "teachers/movies/minilm").mkdir(parents=True)
    names = {"id2label": {"0": "negative", "1": "positive"}}
    write_json(data / "teachers/movies/minilm/config.json", names)
    write_json(data / "teachers/movies/minilm/training.json", made_up_teacher())

    def load_student(folder: Path, device: str = "cpu") -> Fake:
        return Fake(2 if folder.parent.name == "plain" else 8)

    student = SimpleNamespace(load_student=load_student)
    monkeypatch.setitem(sys.modules, "pipeline_lib.models.students.student", student)
    return data


def with_row(params: Params, **changes: Any) -> Params:
    row = params.methods["distilled"].model_copy(update=changes)
    return params.model_copy(update={"methods": {**params.methods, "distilled": row}})


def test_layers_of_a_model_answer_on_the_device(params: Params, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices: dict[str, str] = {}

    def load_student(folder: Path, device: str) -> Fake:
        devices[folder.parent.name] = device
        return Fake(2)

    monkeypatch.setattr("pipeline_lib.base.devices.resolve_device", lambda name: f"{name}:1")
    monkeypatch.setattr(sys.modules["pipeline_lib.models.students.student"], "load_student", load_student)
    settings = {"architecture": "transformer", "model": "minilm", "layers": [0], "pool": "last"}
    layers = student_settings(settings | {"classifier": None, "dropout": None, "max_words": 8})
    update = {"students": {**params.students, "layers": layers}, "workers": 1, "device": "cuda"}
    evaluate_task(with_row(params, student="layers").model_copy(update=update), "movies", Layout(data))
    assert devices == {"plain": "cpu", "distilled": "cuda:1"}


def test_scores_are_those_worked_out_by_hand(params: Params, data: Path) -> None:
    scores = evaluate_task(params, "movies", Layout(data))
    assert scores.teachers["minilm"].scores["dev"] == {"accuracy": 0.9}
    plain, distilled = scores.methods["plain"], scores.methods["distilled"]
    by_seed = {"1": 0.5, "2": 0.5}
    assert plain.scores["dev"] == {"accuracy": SeedScores(mean=0.5, std=0.0, by_seed=by_seed)}
    assert distilled.scores["test"]["accuracy"].mean == 0.875
    assert distilled.against_teacher["test"] == -0.025
    gain = distilled.gain["test"]
    assert gain.difference == 0.375
    assert gain.p < 0.05 and gain.p_holm == gain.p
    assert plain.gain == {"dev": None, "test": None}
    sizes = {"rows": 40, "steps": 20, "batch_size": 4, "best_step": {"1": 10, "2": 20}}
    assert plain.training == Training(learning_rate=0.003, best_dev_by_rate={"0.003": 0.5}, **sizes)
    # Both wrong in row 0; one of them in rows 8, 10, 16, 20, 24, 30 and 32.
    assert distilled.agreement["dev"] == round(1 - 7 / 40, 6)
    assert distilled.correlation["dev"] == round((33 - 7) / 40, 6)
    assert distilled.ratio == Ratio(without_embeddings=1.0, with_embeddings=1.0)
    half = {"accuracy": 0.5}
    assert scores.floor == Floor(answer="negative", scores={"dev": half, "test": half})
    assert scores.rows == {"train": 40, "dev": 40, "test": 40}
    assert scores.shared_texts == {"dev": {}, "test": {}}


def test_a_step_has_the_gain_over_the_row_that_lacks_it_and_test_may_be_absent(params: Params, data: Path) -> None:
    assert evaluate_task(params, "movies", Layout(data)).steps == []
    scores = evaluate_task(with_row(params, data="full"), "movies", Layout(data))
    [step] = scores.steps
    assert (step.method, step.previous, step.changed) == ("distilled", "plain", "sentences")
    assert step.gain == scores.methods["distilled"].gain
    shutil.rmtree(data / "tasks/movies/test")
    scores = evaluate_task(params, "movies", Layout(data))
    assert "test" not in scores.methods["plain"].scores and cells(scores)["Test"] == ["absent"] * 4


def test_scores_say_for_whom_the_loss_selected(params: Params, data: Path) -> None:
    scores = evaluate_task(params, "movies", Layout(data))
    assert "loss" not in scores.selection
    assert scores.methods["distilled"].training.dev_loss_by_rate is None
    losses = {"dev_loss_by_rate": {"0.003": 0.7}}
    search = data / "students/movies/distilled/search.json"
    write_json(search, read_json(search) | losses)
    teacher = data / "teachers/movies/minilm/training.json"
    write_json(teacher, made_up_teacher(best_dev_loss=0.3))
    scores = evaluate_task(params, "movies", Layout(data))
    assert scores.methods["distilled"].training.dev_loss_by_rate == {"0.003": 0.7}
    assert scores.selection.endswith(
        "chosen by the loss of the labels, in place of accuracy, for teacher minilm, distilled."
    )


def test_details_are_those_worked_out_by_hand(params: Params, data: Path) -> None:
    scores = evaluate_task(params, "movies", Layout(data))
    # Every answer has a logit of 1 against 0: the probability is the same in every row.
    sure = np.e / (1 + np.e)
    for name, accuracy in (("plain", 0.5), ("distilled", 0.875)):
        own = scores.methods[name]
        found = {detail: value.mean for detail, value in own.details.scores["test"].items()}
        assert found == {
            "nll": pytest.approx(1 - accuracy - np.log(sure), abs=1e-6),
            "ece": pytest.approx(abs(sure - accuracy), abs=1e-6),
            "accuracy_at_50": pytest.approx(accuracy),
            "accuracy_at_80": pytest.approx(accuracy),
        }
        assert own.details.temperature is None
    # "distilled" errs in five rows, all of the first class; "plain" in all of that class.
    distilled, plain = scores.methods["distilled"], scores.methods["plain"]
    recalls = {label: value.mean for label, value in distilled.details.recall["test"].items()}
    assert recalls == {"negative": 0.75, "positive": 1.0}
    assert scores.teachers["minilm"].details.recall["test"] == {"negative": 0.8, "positive": 1.0}
    gain = distilled.details.gain["test"]["nll"]
    assert gain.difference == pytest.approx(-0.375) and gain.p < 0.05
    assert plain.details.gain == {"dev": None, "test": None}
    assert (distilled.learned_from, plain.learned_from) == ("gold", "gold")


def test_routing_and_temperature_are_chosen_on_dev(params: Params, data: Path) -> None:
    params = with_row(params, temperature="dev")
    raw = evaluate_task(params, "movies", Layout(data)).methods["distilled"]
    # Right in 7 of 8 rows, each as sure as the others: the best temperature makes it 7/8 sure.
    best = 1 / np.log(7)
    assert raw.details.temperature == dict.fromkeys("12", pytest.approx(best, abs=1e-5))
    assert raw.details.scores["dev"]["ece"].mean == pytest.approx(0.0, abs=1e-5)
    assert raw.scores["dev"]["accuracy"].mean == 0.875
    # Rows that are equally sure go on together, or not at all.
    routing = raw.routing
    assert routing.teacher_accuracy == {"dev": 0.9, "test": 0.9}
    assert (routing.curve[0].accuracy["dev"].mean, routing.curve[0].routed["dev"]) == (0.875, 0.0)
    # Dev has too few to promise anything.
    assert [(each.rows, each.right) for each in routing.stretches["1"]] == 9 * [(0, 0)] + [(40, 33)]
    assert (routing.best.accuracy["test"].mean, routing.best.routed["test"]) == (0.9, 1.0)
    assert routing.best.cost["test"] == 2.0 and routing.agreement == {"dev": None, "test": None}


def test_further_splits_are_scored_and_decide_nothing(params: Params, data: Path) -> None:
    params = with_row(params, temperature="dev")
    before = evaluate_task(params, "movies", Layout(data))
    # Of the other labels, each answer is right where it was wrong.
    save_split(data, "dev_b", [1 - label for label in LABELS])
    after = evaluate_task(params, "movies", Layout(data))
    assert after.further_splits == ["dev_b"] and after.decisive_split == "test"
    plain, distilled = after.methods["plain"], after.methods["distilled"]
    assert after.teachers["minilm"].scores["dev_b"] == {"accuracy": 0.1}
    means = [own.scores["dev_b"]["accuracy"].mean for own in (plain, distilled)]
    assert means == [0.5, 0.125] and distilled.against_teacher["dev_b"] == 0.025
    gain = distilled.gain["dev_b"]
    assert gain.difference == -0.375 and gain.low < -0.375 < gain.high < 0 and gain.p < 0.05
    assert after.floor.scores["dev_b"] == {"accuracy": 0.5}
    # What was chosen, and every other score, is what it was.
    assert distilled.details.temperature == before.methods["distilled"].details.temperature
    assert distilled.routing.best.thresholds == before.methods["distilled"].routing.best.thresholds
    written = metrics([TaskResult("movies", after)])["movies"]
    assert {*written["teachers"]["minilm"]} == {"dev", "test", "dev_b"}
    for by_split in (*written["teachers"].values(), *written["methods"].values()):
        del by_split["dev_b"]
    assert written == metrics([TaskResult("movies", before)])["movies"]


@pytest.mark.parametrize(("positive", "f1"), [(None, 40 / 45), ("negative", 30 / 35)])
def test_f1_is_that_of_the_label_that_params_name(params: Params, data: Path, positive: str | None, f1: float) -> None:
    # Every error is a row of the first class: 5 of its 20 with "distilled", all with "plain".
    changes = {"metrics": ["f1"], "positive": positive}
    task = params.task("movies").model_copy(update=changes)
    scores = evaluate_task(params.model_copy(update={"tasks": {"movies": task}}), "movies", Layout(data))
    assert scores.f1_label == (positive or "positive")
    distilled, plain = (scores.methods[n] for n in ("distilled", "plain"))
    baseline = plain.scores["dev"]["f1"].mean
    assert distilled.scores["dev"]["f1"].mean == pytest.approx(f1, abs=1e-6)
    assert baseline == pytest.approx(0.0 if positive else 2 / 3, abs=1e-6)
    assert distilled.gain["dev"].difference == pytest.approx(f1 - baseline, abs=2e-6)


def test_files_are_equal_to_the_byte_when_made_again_by_one_worker(params: Params, data: Path) -> None:
    written = evaluate_task(params.model_copy(update={"workers": 2}), "movies", Layout(data))
    folder = data / "results/movies"
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    evaluate_task(params.model_copy(update={"workers": 1}), "movies", Layout(data))
    assert first == {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(first) == {"scores.json", "predictions.arrow"}
    assert TaskScores.read(folder / "scores.json") == written
    assert (written.scored_splits, written.decisive_split) == (["dev", "test"], "test")
    table = read_shard(folder / "predictions.arrow")
    students = ["plain-1", "plain-2", "distilled-1", "distilled-2"]
    assert table.column_names == ["split", "row", "label", "minilm", *students] and table.num_rows == 80
    np.testing.assert_array_equal(matrix(table["distilled-2"])[:40], one_hot(wrong_every(8)))


def test_a_hidden_test_split_gets_no_score(params: Params, data: Path) -> None:
    save_split(data, "test", [None] * 40)
    scores = evaluate_task(params, "movies", Layout(data))
    assert (scores.scored_splits, scores.decisive_split) == (["dev"], "dev")
    own = scores.methods["distilled"]
    assert own.scores["test"] is own.gain["test"] is own.against_teacher["test"] is None
    assert scores.teachers["minilm"].scores["test"] is scores.floor.scores["test"] is None
    assert own.details.scores["test"] is own.details.recall["test"] is None
    assert own.routing.best.accuracy["test"] is own.details.gain["test"] is None
    # Agreement needs no labels.
    assert own.agreement["test"] == round(1 - 7 / 40, 6)
    assert read_shard(data / "results/movies/predictions.arrow")["label"].null_count == 40


def llm(params: Params) -> Params:
    own = {"kind": "answers", "files": ["a.csv"], "classes": None, "mask": "_"}
    own |= {"provenance": {}}
    row = {"model": None, "max_length": None, "tasks": None, "data": None, "tuning": own}
    return params.model_copy(update={"teachers": {"minilm": Teacher.model_validate(row)}})


def save_answers(data: Path, split: str, known: int) -> None:
    logits = one_hot(wrong_every(10))
    logits[known:] = np.nan
    digest = read_manifest(data / "tasks/movies" / split).shards[0].sha256
    table = pa.table({"logits": list_column(logits)})
    save(data / "outputs/movies/heldout/minilm" / split, "logits", table, digest)


def test_a_teacher_that_did_not_answer_all_is_compared_where_it_did(params: Params, data: Path) -> None:
    save_answers(data, "dev", 15)
    save_answers(data, "test", 0)
    (data / "teachers/movies/minilm/config.json").unlink()
    record = {"labels": ["negative", "positive"]}
    write_json(data / "teachers/movies/minilm/training.json", record)
    scores = evaluate_task(llm(params), "movies", Layout(data))
    teacher, own = scores.teachers["minilm"], scores.methods["distilled"]
    # Of 15 rows it is wrong in two, and so is the student: in rows 0 and 10, in 0 and 8.
    assert teacher.scores == {"dev": {"accuracy": round(13 / 15, 6)}, "test": None}
    assert teacher.unanswered == {"dev": 25, "test": 40} and teacher.parameters is None
    assert own.against_teacher == {"dev": 0.0, "test": None}
    assert own.agreement == {"dev": round(13 / 15, 6), "test": None}
    assert own.scores["dev"]["accuracy"].mean == 0.875 and own.ratio is None
    table = cells(scores)
    assert dict(zip(table["System"], table["Test"], strict=True))["teacher minilm"] == "no answers"
    assert not {head for head in table if head.startswith("Smaller")}
    said = " ".join(scores_table(TaskResult("movies", scores), timed=False).caption)
    assert "minilm did not answer 25 of 40 dev, 40 of 40 test rows" in said
    assert "test" not in metrics([TaskResult("movies", scores)])["movies"]["teachers"]["minilm"]


def test_without_labels_there_is_agreement_and_no_score(params: Params, data: Path) -> None:
    for split in ("train", "dev", "test"):
        save_split(data, split, [None] * 40)
    tasks = {"movies": params.task("movies").model_copy(update={"label": None})}
    bare = params.model_copy(update={"tasks": tasks})
    scores = evaluate_task(bare, "movies", Layout(data))
    result = TaskResult("movies", scores)
    assert scores.scored_splits == [] and scores.floor.answer is None
    assert scores.methods["distilled"].agreement["dev"] == round(1 - 7 / 40, 6)
    assert {*cells(result.scores)["Test"]} == {"no labels"}
    assert "agreement with the teacher is not a score" in " ".join(scores_table(result, timed=False).caption)
    found = metrics([result])["movies"]["methods"]["distilled"]
    assert found["dev"] == {"agreement": round(1 - 7 / 40, 6)}


def test_labels_of_test_alone_are_scored(params: Params, data: Path) -> None:
    for split in ("train", "dev"):
        save_split(data, split, [None] * 40)
    own = params.task("movies")
    tasks = {"movies": own.model_copy(update={"label": {"test": "mean"}})}
    scores = evaluate_task(params.model_copy(update={"tasks": tasks}), "movies", Layout(data))
    assert (scores.scored_splits, scores.decisive_split) == (["test"], "test")
    distilled = scores.methods["distilled"]
    assert distilled.scores["test"]["accuracy"].mean == 0.875 and distilled.scores["dev"] is None
    assert cells(scores)["Dev"] == ["hidden"] * 3


def swap_texts(data: Path) -> None:
    table = pa.table({"label": pa.array(LABELS, pa.int32()), "text": TEXTS[::-1]})
    save(data / "tasks/movies/dev", "tasks", table)


@pytest.mark.parametrize(
    ("damage", "patch", "message"),
    [
        (lambda data: save_split(data, "dev", [None] * 40), {}, "no labelled dev split"),
        (lambda data: (data / "students/movies/plain/2/config.json").unlink(), {}, r"plain/2: no model here. Run `"),
        (lambda data: None, {"label_names": ["positive", "negative"]}, "its classes are positive, negative"),
        (lambda data: None, {"logits": lambda _, t: np.full((len(t), 2), np.nan)}, r"row 0 of dev.*diverged"),
        (swap_texts, {}, r"heldout/minilm/dev: .*does not belong"),
    ],
    ids=["dev", "student", "names", "logits", "inputs"],
)
def test_what_cannot_be_evaluated_is_refused(
    params: Params, data: Path, monkeypatch: pytest.MonkeyPatch, damage: Any, patch: dict[str, Any], message: str
) -> None:
    damage(data)
    for name, value in patch.items():
        monkeypatch.setattr(Fake, name, value)
    with pytest.raises(PotstillError, match=message):
        evaluate_task(params, "movies", Layout(data))
