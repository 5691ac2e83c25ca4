"""Rows that learn from a teacher's layers: stored states, and layers beside it in two stages."""

import functools
from typing import Any

import pytest

from pipeline_lib.params import check_params
from tests.params.variants import GENERAL, LAYERS, TINY, changed, error_of

TINY_ROW = {
    **{"student": "tiny", "data": "original", "iterations": None, "optimiser": "short"},
    **{"baseline": None, "tasks": ["movies"]},
}
TWO_STAGES = {
    "students.tiny": TINY,
    "encoders.general": GENERAL,
    "methods.layers": TINY_ROW | {"start": "general", "objective": {"hidden": 1.0}, "teacher_runs": {"layers": [3, 6]}},
    "methods.answers": TINY_ROW | {"start": "layers", "objective": {"labels": 1.0}},
}
"""A row that learns layers, from a Transformer that general distillation made, and one after it."""
LAST_LAYERS = LAYERS | {"pool": "last", "max_words": 128}
PATIENT = {
    "students.layers": LAST_LAYERS,
    "methods.bilstm_kd.student": "layers",
    "methods.bilstm_kd.start": "model",
    "methods.bilstm_kd.tasks": ["movies"],
    "methods.bilstm_kd.objective": {"labels": 1.0, "patience": 10.0},
    "teachers.minilm.states": {"layers": [2, 4], "storage": "float16"},
}
"""A row that learns from the teacher's layers."""
HIDDEN = {"methods.bilstm_kd.objective": {"labels": 1.0, "hidden": 1.0}}


def test_a_row_names_the_states_it_learns_from() -> None:
    params = check_params(changed(PATIENT))
    assert params.states_of("movies") == {"minilm": ["original"]}
    assert params.states_of("tweets") == {}
    assert params.reads_outputs(params.method("bilstm_kd"), "movies")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods.bilstm_kd.student": "bilstm", "methods.bilstm_kd.start": "vectors"}, "compared, and bilstm has 0"),
        ({"students.layers": LAST_LAYERS | {"layers": [0]}}, "but the last are compared, and layers has 1; use a"),
        ({"teachers.minilm.states": None}, "methods.bilstm_kd.objective: it reads the states of teacher minilm,"),
        ({"teachers.minilm.states": {"layers": [1, 2, 3], "storage": "float16"}}, "for the 3 of layers name 2 layers"),
        ({"teachers.minilm.states": {"layers": [0, 2], "storage": "float16"}}, "teachers.minilm.states.layers.0: "),
        ({"teachers.minilm.states": {"layers": [2, 2], "storage": "float16"}}, "states: `layers`: each may appear"),
        ({"teachers.minilm.states": {"layers": [2, 4], "storage": "int8"}}, "teachers.minilm.states.storage: "),
        ({"teachers.minilm.states": {"layers": [2, 4]}}, "teachers.minilm.states.storage: missing. Add it"),
        ({"methods.bilstm_kd.objective": {"patience": 1.0}}, "methods.bilstm_kd.objective: the weights of logits,"),
        (HIDDEN, "methods.bilstm_kd.teacher_runs: goes with"),
        ({"methods.bilstm_kd.teacher_runs": {"layers": [2, 4, 6]}}, "methods.bilstm_kd.teacher_runs: goes with"),
        (
            HIDDEN | {"methods.bilstm_kd.teacher_runs": {"layers": [2, 4]}},
            "bilstm_kd.teacher_runs.layers: one for each",
        ),
        (HIDDEN | {"methods.bilstm_kd.teacher_runs": {"layers": [0, 2, 4]}}, "bilstm_kd.teacher_runs.layers.0: "),
    ],
)
def test_states_that_cannot_be_compared_are_refused(changes: dict[str, Any], message: str) -> None:
    assert message in error_of(changed(PATIENT | changes))


def test_a_row_that_learns_layers_alone_is_not_scored() -> None:
    params = check_params(changed(TWO_STAGES))
    assert {*params.methods_of("movies")} - {*params.scored_methods_of("movies")} == {"layers"}
    assert params.row_before("answers") == "layers" and params.rows_before("layers") == []
    # Encoders and joint trainings come first where a row has their name.
    named = {"methods.sra": TINY_ROW | {"start": "random", "objective": {"labels": 1.0}}}
    assert check_params(changed(named | TWO_STAGES)).row_before("bilstm_sra") is None
    # A task without the first row has no second.
    elsewhere = {"methods.answers.tasks": None, "methods.layers.tasks": ["tweets"]}
    assert "answers" not in check_params(changed(TWO_STAGES | elsewhere)).methods_of("movies")
    assert list(params.sentence_encoders()) == ["sra"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("methods.answers.start", "general", "methods.layers.objective: it learns layers alone"),
        ("methods.layers.threshold", "dev", "methods.layers.threshold: the row learns layers alo"),
        ("methods.layers.baseline", "bilstm", "methods.layers.baseline: the row learns layers al"),
        ("methods.bilstm_kd.baseline", "layers", "methods.bilstm_kd.baseline: layers learns laye"),
        ("methods.layers.start", "answers", "methods.layers.start: layers → answers → layers lea"),
        ("methods.answers.start", "answers", "methods.answers.start: answers → answers leads ba"),
        ("methods.bilstm.start", "layers", "methods.bilstm.student: bilstm, but its start layers"),
        ("methods.layers.start", "model", "methods.layers.start: a bert student takes no layers"),
        ("methods.layers.start", "vectors", "methods.layers.start: a bert student has no word ve"),
        ("methods.layers.objective", {"hidden": 1.0, "patience": 1.0}, "logits, soft_labels, lab"),
        ("methods.answers.optimiser", None, "methods.answers.optimiser: null takes a joint train"),
        ("encoders.general.objective", {"labels": 1.0}, "encoders.general: `objective`: without"),
        ("encoders.general.student", "bilstm", "encoders.general.student: bilstm is a bilstm, an"),
        ("encoders.general.teacher_runs", {"layers": [6]}, "encoders.general.teacher_runs.layers"),
        ("encoders.general.wikipedia", 10**9, "encoders.general.wikipedia: 1000000000, but wikip"),
        ("encoders.general.min_count", 1, "encoders.general.min_count: unknown key"),
        ("encoders.sra.student", "tiny", "encoders.sra.student: tiny has no sentence vector of"),
        ("students.tiny.heads", 5, "students.tiny: `width` must be divisible by `heads`"),
        ("students.tiny.model", "none", "students.tiny.model: no 'none'; there are minilm"),
    ],
)
def test_stages_that_do_not_fit_are_refused(path: str, value: Any, message: str) -> None:
    raw = changed(TWO_STAGES)
    *keys, last = path.split(".")
    functools.reduce(dict.__getitem__, keys, raw)[last] = value
    assert message in error_of(raw)
