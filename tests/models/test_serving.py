"""What belongs to a student, found by its folder's place."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout, StudentPlace, student_place
from pipeline_lib.models.folders import STRETCHES, served, stretches_of, temperature_of
from pipeline_lib.models.serving import Router, alone_of, baseline_of, teacher_of
from pipeline_lib.params import load_params
from tests.tour import TOUR

PARAMS = load_params(TOUR)
LOGITS = np.array([[0.0, 3.0], [1.0, 0.0], [0.0, 2.0], [0.5, 0.0]], np.float32)


@pytest.fixture
def student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder where a student would lie, which was evaluated with a temperature of 2."""
    monkeypatch.chdir(tmp_path)
    layout = Layout()
    stretches = [{"threshold": 0.9, "rows": 60, "right": 60}, {"threshold": 0.8, "rows": 80, "right": 72}]
    method = {"details": {"temperature": {"1": 2.0, "2": 1.5}}, "routing": {"stretches": {"1": stretches}}}
    write_json(layout.scores("movies"), {"methods": {"bilstm_kd": method}})
    return layout.student("movies", "bilstm_kd", 1)


def test_temperatures_and_shares_of_the_seed(student: Path) -> None:
    assert temperature_of(student) == 2.0
    assert temperature_of(student.with_name("2")) == 1.5
    # Not asked for, not evaluated, or moved elsewhere: as it was trained.
    for other in (student.with_name("3"), Layout().student("tweets", "a", 1), Path("moved")):
        assert temperature_of(other) == 1.0
    halved = served(student, lambda texts: LOGITS[: len(texts)], temperature_of(student))(["a", "b"])
    np.testing.assert_array_equal(halved, LOGITS[:2] / 2)
    # A promise becomes the confidence above which dev keeps it, of a student in its place or an exported one.
    exported = Path("exported")
    write_json(exported / "config.json", {STRETCHES: stretches_of(student)})
    for folder in (student, exported):
        assert [each and each.threshold for each in (alone_of(folder, figure) for figure in (0.95, 0.8, 0.99))] == [
            *(0.9, 0.8, None)
        ]
    for folder in (student.with_name("2"), Path("moved")):
        with pytest.raises(PotstillError, match="was not compared with its teacher on dev"):
            alone_of(folder, 0.5)
    # A folder says whose student lies there.
    found = student_place(student)
    assert found == StudentPlace(Layout(), "movies", "bilstm_kd", 1)
    assert found.layout.student(found.task, found.method, found.seed) == student
    for elsewhere in ("model", "data/students/movies/bilstm_kd", "data/teachers/movies/minilm"):
        assert student_place(Path(elsewhere)) is None


def test_teacher_and_baseline_are_those_of_the_row(student: Path) -> None:
    assert teacher_of(student, PARAMS) == (Layout().teacher("movies", "minilm"), 128)
    assert baseline_of(student, PARAMS) == Layout().student("movies", "bilstm", 1)
    assert baseline_of(Layout().student("movies", "bilstm", 1), PARAMS) is None
    with pytest.raises(PotstillError, match="Name it with --teacher"):
        teacher_of(Path("moved"), PARAMS)


def test_a_teacher_without_a_model_has_no_folder(student: Path) -> None:
    tuning = SimpleNamespace(kind="answers")
    own = PARAMS.teachers["minilm"].model_copy(update={"tuning": tuning, "max_length": None})
    assert teacher_of(student, PARAMS.model_copy(update={"teachers": {"minilm": own}})) is None


def test_only_what_the_student_is_unsure_of_reaches_the_teacher() -> None:
    asked: list[str] = []

    def teacher(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return np.tile([9.0, 0.0], (len(texts), 1))

    router = Router(lambda texts: LOGITS[: len(texts)].copy(), teacher, 0.75)
    outputs, routed = router.predict(["a", "b", "c", "d"])
    assert (asked, routed.tolist()) == (["b", "d"], [False, True, False, True])
    np.testing.assert_array_equal(outputs, [[0.0, 3.0], [9.0, 0.0], [0.0, 2.0], [9.0, 0.0]])
    sure = Router(lambda texts: LOGITS[: len(texts)].copy(), teacher, 0.0)
    assert not sure.predict(["a", "b"])[1].any() and asked == ["b", "d"]
