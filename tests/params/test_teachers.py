"""Teachers as rows of params.yaml: what they name, and which of them a method means."""

from typing import Any

import pytest

from pipeline_lib.params import check_params

from .test_params import RAW, changed, error_of

OWN = RAW["teachers"]["minilm"]
PROBE = OWN | {"tuning": {"kind": "probe"}}
REFINED = OWN["tuning"] | {"kind": "refined", "ranking": {}}
TWO = {"minilm": OWN, "other": OWN | {"tasks": ["movies"], "data": ["full"]}}
NAMED = {f"methods.{name}.teacher": "minilm" for name in ("bilstm_kd", "bilstm_kd_ts", "bilstm_mtl")}
SOUND = {"teachers": TWO, "joint.mtl.teacher": "minilm", **NAMED}


def test_a_row_of_a_teacher_is_one_of_its_tasks() -> None:
    params = check_params(changed(SOUND | {"methods.bilstm_kd_ts.teacher": "other"}))
    assert list(params.teachers_of("movies")) == ["minilm", "other"]
    assert list(params.teachers_of("tweets")) == ["minilm"]
    assert "bilstm_kd_ts" in params.methods_of("movies")
    assert "bilstm_kd_ts" not in params.methods_of("tweets")
    # A row that reads no outputs is compared with the task's first.
    assert params.teacher_of("movies", params.method("bilstm")) == "minilm"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods.bilstm_kd.teacher": None}, "methods.bilstm_kd.teacher: missing, and movies has"),
        ({"joint.mtl.teacher": None}, "joint.mtl.teacher: missing, and movies has the teachers"),
        ({"joint.mtl.teacher": "other"}, "joint.mtl.teacher: other does not know tweets"),
        ({"methods.bilstm_kd.teacher": "other"}, "methods.bilstm_kd: teacher other does not answ"),
        ({"methods.bilstm_kd.teacher": "none"}, "methods.bilstm_kd.teacher: no 'none'; there are"),
        ({"teachers": TWO | {"bilstm": OWN}}, "teachers.bilstm: a row of `methods` has this name"),
        ({"teachers": TWO | {"heldout": OWN}}, "teachers.heldout: a folder of outputs has this name"),
        ({"teachers": TWO | {"a": OWN | {"model": "b"}}}, "teachers.a.model: no 'b'; there are"),
        ({"teachers": TWO | {"a": OWN | {"data": ["b"]}}}, "teachers.a.data: no transfer set 'b'"),
        ({"teachers": TWO | {"a": OWN | {"model": None}}}, "`model` is what a teacher is made"),
        ({"teachers": TWO | {"a": PROBE | {"model": None}}}, "`model` is what a teacher is made"),
        ({"teachers.minilm.tuning": REFINED | {"head": "probe"}}, "`head`: tasks share an encoder"),
        ({"teachers.minilm.tuning.head": "mean"}, "teachers.minilm.tuning.head: Input should be 'probe'"),
        ({"teachers": {"minilm": TWO["other"]} | {"other": TWO["other"]}}, "teachers: none knows tweets"),
    ],
)
def test_faulty_teachers_name_their_key(changes: dict[str, Any], message: str) -> None:
    assert message in error_of(changed(SOUND | changes))


FILES = {"kind": "answers", "files": ["{task}.csv"], "classes": None}
FILES |= {"mask": "[MASK]", "provenance": {}}
LLM = {"model": None, "max_length": None, "tasks": ["movies"], "data": None, "tuning": FILES}
THREE = SOUND | {"teachers": TWO | {"llm": LLM}}


def test_answers_in_files_are_a_teacher() -> None:
    rows = {"teachers": THREE["teachers"] | {"probe": PROBE}}
    params = check_params(changed(THREE | rows | {"methods.bilstm_kd_ts.teacher": "llm"}))
    assert params.teachers["llm"].tuning.paths("movies") == ["movies.csv"]
    assert [own.runs for own in params.teachers.values()] == [True, True, False, True]
    assert {key for key, *_ in params.lengths()} >= {"teachers.minilm.max_length"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teachers": TWO | {"llm": LLM | {"max_length": 9}}}, "`max_length` is how much a model"),
        ({"teachers": TWO | {"a": OWN | {"max_length": None}}}, "`max_length` is how much a model"),
        ({"tasks.movies.label": None}, "teachers.minilm.tasks: movies has no labels (`label`) in"),
        ({"tasks.movies.label": {"dev": "mean"}}, "`label` by split may name only splits of the source"),
    ],
)
def test_faulty_answers_name_their_key(changes: dict[str, Any], message: str) -> None:
    assert message in error_of(changed(THREE | changes))
