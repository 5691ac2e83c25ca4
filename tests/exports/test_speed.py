"""Timing real, tiny systems: what is exported and kept, which forms run, and what is not timed."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.text import Text
from pipeline_lib.exports import speed as timing
from pipeline_lib.exports.contestants import Contestant, System, add_onnx, leave_out_deviating, students_of, teachers_of
from pipeline_lib.exports.onnx.teacher import export_teacher, load_onnx_teacher
from pipeline_lib.exports.opening import load_student as open_student
from pipeline_lib.exports.speed import measure, measure_task, sample_texts
from pipeline_lib.models.serving import open_teacher
from pipeline_lib.models.students.student import load_student
from pipeline_lib.models.teacher import load_classifier
from pipeline_lib.params import Params, load_params
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.results.speed import TaskSpeed
from pipeline_lib.shards.shard_sets import Manifest, schema_of, write_manifest, write_shard
from tests.kit.made_up import made_up_method, made_up_scores
from tests.kit.pretrained import write_model

from .students import WORDS, write_student

PROJECT = Path(__file__).parents[2]
LABELS = ["negative", "positive"]
BEST = "distilled"
Timed = tuple[TaskSpeed, list[tuple[int, int, bool]]]
"""Timings, and of each process its cores, how many models it has timed, and if with latency."""
TEXTS = [" ".join(WORDS[n % 7 : n % 7 + 1 + n % 3]) for n in range(40)]


def write_split(layout: Layout, split: str, texts: list[str]) -> None:
    folder, table = layout.split("movies", split), pa.table({"text": texts})
    shard = write_shard(folder / "rows.arrow", table)
    write_manifest(folder, Manifest("tasks", schema_of(table), [shard], {}))


def write_teacher(folder: Path, labels: list[str], family: str = "bert", pooled: bool = False) -> Path:
    import torch

    write_model(folder.with_name(f"encoder-{family}"), family)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model, tokenizer = load_classifier(folder.with_name(f"encoder-{family}"), labels, pooled=pooled)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_lib.exports.speed.SECONDS", 0.01)
    monkeypatch.setattr("pipeline_lib.exports.speed.REPEATS", 2)


@pytest.fixture
def params() -> Params:
    shipped = load_params(PROJECT / "params.yaml")
    row = shipped.methods["bilstm"]
    other = row.model_copy(update={"student": "bilstm_sra", "tasks": None})
    teacher = shipped.teachers["minilm"].model_copy(update={"max_length": 16})
    own = {"tasks": {"movies": shipped.tasks["movies"]}, "methods": {"plain": row, BEST: row, "other": other}}
    return shipped.model_copy(update=own | {"teachers": {"minilm": teacher}, "seeds": [1], "device": "cpu"})


@pytest.fixture
def layout(tmp_path: Path, params: Params, store_home: Path) -> Layout:
    layout = Layout(tmp_path / "data")
    for split in ("dev", "test"):
        write_split(layout, split, TEXTS)
    for method, row in params.methods.items():
        write_student(layout.student("movies", method, 1), row.student, False, LABELS)
    write_teacher(layout.teacher("movies", "minilm"), LABELS)
    scores(plain=0.8, distilled=0.9, other=0.85).write(layout.scores("movies"))
    return layout


def scores(**methods: float) -> TaskScores:
    made = {
        name: made_up_method(mean) | {"student": "bilstm_sra" if name == "other" else "bilstm"}
        for name, mean in methods.items()
    }
    return made_up_scores(made).model_copy(update={"steps": []})


@pytest.fixture
def time_here(params: Params, layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Timed]:
    jobs: list[tuple[int, int, bool]] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, *_: Any, initargs: tuple[int], **__: Any) -> None:
            super().__init__(1)
            (self.cores,) = initargs

        def submit(self, run: Any, *job: Any) -> Any:
            jobs.append((self.cores, len({contestant.folder for contestant in job[0]}), job[-1]))
            return super().submit(run, *job)

    monkeypatch.setattr(timing, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(timing, "usable_cores", lambda: 2)
    # Random weights are nearly undecided: in int8 they answer otherwise.
    monkeypatch.setattr("pipeline_lib.exports.contestants.MIN_AGREEMENT", 0.0)
    return lambda: (jobs.clear(), measure_task(params, "movies", layout), [*jobs])[1:]


def test_the_best_student_is_exported(params: Params, layout: Layout, time_here: Callable[[], Timed]) -> None:
    left = layout.exported("movies") / "left"
    left.mkdir(parents=True)
    students_of(params, "movies", layout, "cpu", None)
    assert left.exists()
    speed, jobs = time_here()
    assert not left.exists()
    opened = open_student(layout.exported("movies"))
    assert (opened.labels, opened.is_pair) == (LABELS, False)
    wanted = load_student(layout.student("movies", BEST, 1)).logits(TEXTS)
    np.testing.assert_allclose(opened.logits(TEXTS), wanted, atol=0.1)
    assert [(cores, with_latency) for cores, _, with_latency in jobs] == [(1, True), (2, False)]
    assert (speed.exported, speed.split, speed.sentences, speed.pair) == (BEST, "test", 40, False)
    students = {name: (one.method, [*one.forms]) for name, one in speed.students.items()}
    assert students == {"bilstm": (BEST, ["torch float32", "onnx-int8"]), "bilstm_sra": ("other", ["torch float32"])}
    assert list(speed.teachers["minilm"].forms)[1:] == ["onnx", "onnx-int8"]
    for timed in [*speed.students.values(), *speed.teachers.values()]:
        assert timed.not_timed == {}
        for form in timed.forms.values():
            assert set(form.rates) == {"one_core", "all_cores"} and form.latency_ms > 0
    speed.write(layout.speed("movies"))
    assert TaskSpeed.read(layout.speed("movies")) == speed


@pytest.mark.slow
def test_only_what_changed_is_timed_again(
    time_here: Callable[[], Timed], layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = time_here()
    again, jobs = time_here()
    assert again == first and jobs == []
    assert open_student(layout.exported("movies")).labels == LABELS
    (layout.student("movies", "other", 1) / "training.json").write_text("{}")
    changed, jobs = time_here()
    assert [count for _, count, _ in jobs] == [1, 1]
    assert changed.teachers == first.teachers
    assert changed.students["bilstm"] == first.students["bilstm"]
    monkeypatch.setattr(timing, "version", lambda name: f"another {name}")
    # Of three systems, the best student has two folders, and the teacher three.
    assert time_here()[1][0][1] == 6
    monkeypatch.setattr("pipeline_lib.exports.speed.REPEATS", 1)
    assert time_here()[1][0][1] == 6


def test_without_onnxruntime(time_here: Callable[[], Timed], layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(timing, "version", lambda _: version("no such package"))
    speed, _ = time_here()
    assert (speed.exported, speed.onnxruntime) == (None, None)
    assert [path.name for path in layout.exported("movies").iterdir()] == ["README"]
    assert [*speed.students["bilstm"].forms] == ["torch float32"]
    assert len(speed.teachers["minilm"].forms) == 1
    for why in (speed.students["bilstm"].not_timed["onnx-int8"], speed.teachers["minilm"].not_timed["onnx"]):
        assert why.startswith("ONNX files need onnx and onnxruntime")


def test_a_teacher_that_is_no_onnx(params: Params, layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise TypeError("no such operator\nat line 3")

    monkeypatch.setattr("pipeline_lib.exports.onnx.teacher.trace_classifier", refuse)
    (teacher,) = teachers_of(params, "movies", layout, "cpu").values()
    add_onnx(teacher, False, layout.data)
    assert len(teacher.forms) == 1 and teacher.not_timed == {"onnx": "no such operator"}
    # A teacher of answers in files is not timed.
    monkeypatch.setattr(type(params.teachers["minilm"]), "runs", False)
    assert teachers_of(params, "movies", layout, "cpu") == {}


def test_a_missing_model_or_score_is_named(params: Params, layout: Layout) -> None:
    (layout.student("movies", "other", 1) / "config.json").unlink()
    with pytest.raises(PotstillError, match=r"students/movies/other/1: no model here"):
        measure_task(params, "movies", layout)
    layout.scores("movies").unlink()
    with pytest.raises(PotstillError, match=r"results/movies/scores\.json"):
        measure_task(params, "movies", layout)
    with pytest.raises(PotstillError, match="nowhere"):
        measure_task(params, "../nowhere", layout)


def test_forms_of_an_accelerator(params: Params, layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_lib.exports.contestants.resolve_device", lambda name: name)
    kinds = {"cpu": "float32", "cuda": "bfloat16"}
    monkeypatch.setattr("pipeline_lib.exports.contestants.resolve_precision", lambda _, device: kinds[device])
    (teacher,) = teachers_of(params, "movies", layout, "cuda").values()
    add_onnx(teacher, False, layout.data)
    assert [one.form for one in teacher.forms] == ["torch float32", "onnx", "onnx-int8"]
    assert [one.form for one in teacher.accelerated] == ["torch bfloat16"]
    student = students_of(params, "movies", layout, "cuda", None)["bilstm"]
    assert student.accelerated == student.forms
    [(rate, duration)] = measure(student.accelerated, "cpu", TEXTS, False).values()
    assert duration is None and rate.median > 0


def test_texts_are_those_of_test_by_length_or_else_of_dev(layout: Layout) -> None:
    split, texts = sample_texts(layout, "movies")
    assert split == "test" and texts == sorted(TEXTS, key=len)
    for path in layout.split("movies", "test").iterdir():
        path.unlink()
    layout.split("movies", "test").rmdir()
    assert sample_texts(layout, "movies")[0] == "dev"


def test_a_form_that_answers_otherwise_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    flipped = {"torch float32": 0, "close": 2, "far": 3}

    def load(one: Contestant, device: str) -> Any:
        return lambda texts: np.array([[0.0, float(number >= flipped[one.form])] for number in range(len(texts))])

    monkeypatch.setattr(Contestant, "load", load)
    system = System(None, [Contestant(form, Path(), ()) for form in flipped], [])
    leave_out_deviating(system, ["a film"] * 100)
    assert [one.form for one in system.forms] == ["torch float32", "close"]
    assert system.not_timed == {"far": "answers as in torch only by 97.0% on 100 texts"}


@pytest.mark.parametrize(
    ("family", "pair", "labels", "pooled"),
    [
        *(("bert", False, LABELS, False), ("bert", True, ["score"], True), ("roberta", True, LABELS, False)),
        *(("mpnet", True, LABELS, True), ("distilbert", False, ["score"], False), ("modernbert", True, LABELS, False)),
    ],
)
def test_a_teacher_in_onnx_answers_as_in_torch(
    tmp_path: Path, family: str, pair: bool, labels: list[str], pooled: bool
) -> None:
    folder = write_teacher(tmp_path / "teacher", labels, family, pooled)
    forms = export_teacher(folder, labels, 16, pair, tmp_path / "out")
    texts: list[Text] = ["", *TEXTS, "a film " * 30]
    if pair:
        texts = list(zip(texts, texts[::-1], strict=True))
    _, predict = open_teacher(folder, labels, 16, "cpu", "float32")
    wanted = predict(texts)
    found = load_onnx_teacher(forms["onnx"], "onnx", 16)(texts)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    small = load_onnx_teacher(forms["onnx-int8"], "onnx-int8", 16)(texts)
    assert small.shape == wanted.shape and np.isfinite(small).all()
