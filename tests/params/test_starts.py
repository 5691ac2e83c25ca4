"""Encoders, joint trainings and pretrained models: where students start, and what they are."""

from typing import Any

import pytest

from pipeline_lib.params import check_params
from tests.params.variants import JOINT, LAYERS, changed, error_of

STARTED = {"joint": {"mtl": JOINT}, "methods.bilstm_kd.start": "mtl"}
TAKEN = STARTED | {"methods.bilstm_kd.optimiser": None, "methods.bilstm_kd.tasks": ["movies"]}


def test_wikipedia_can_be_null_unless_something_is_made_of_it() -> None:
    raw = changed({"wikipedia": None})
    assert "wikipedia: null, but encoders are trained" in error_of(raw)
    rows = raw["methods"].items()
    raw["methods"] = {name: row for name, row in rows if row["start"] not in raw["encoders"]}
    raw["encoders"] = {}
    assert "tasks.neighbours.source: neighbours are sentences of Wikipedia" in error_of(raw)
    del raw["tasks"]["neighbours"], raw["methods"]["bilstm_wide"]
    del raw["joint"]["mtl"]["tasks"]["neighbours"]
    assert check_params(raw).wikipedia is None


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("encoders.sra.student", "bilstm", "encoders.sra.student: bilstm has no sentence vector"),
        ("encoders.sra.optimiser", "none", "encoders.sra.optimiser: no 'none'; there are short"),
        ("encoders.sra.wikipedia", 10**9, "encoders.sra.wikipedia: 1000000000, but wikipedia"),
        ("encoders.sra.tasks", {"films": None}, "encoders.sra.tasks: no task 'films'"),
        ("encoders.sra.tasks", {"movies": "no"}, "encoders.sra.tasks.movies: no transfer set 'no'"),
        ("methods.bilstm.start", "sro", "methods.bilstm.start: no 'sro'; there are vectors"),
        ("methods.bilstm.start", "model", "methods.bilstm.start: a bilstm student takes no layers of a pretrained"),
        ("joint", {"mtl": JOINT, "sra": JOINT}, "joint.sra: `start: sra` of a method means"),
        ("joint", {"mtl": JOINT, "vectors": JOINT}, "joint.vectors: `start: vectors` of a method means"),
        ("methods.bilstm.start", "sra", "methods.bilstm.student: bilstm, but its start sra is a"),
        ("methods.bilstm_sra.tasks", ["films"], "methods.bilstm_sra.tasks: no task 'films'"),
        ("optimisers.short.learning_rates", [], "optimisers.short.learning_rates: "),
    ],
)
def test_faulty_encoders_and_starts_name_their_key(path: str, value: Any, message: str) -> None:
    assert message in error_of(changed({path: value}))


PIECES = {
    **{"architecture": "biattentive", "tokens": "pieces", "model": "minilm", "embedding_size": 30},
    **{"feedforward": 30, "hidden": 20, "pools": ["max"], "shared": 40, "classifier": 50},
    **{"dropout": 0.1, "max_words": 64},
}
WORDS = {"tokens": "words", "model": None, "embedding_size": None}
DSE = {
    **{"architecture": "dse", "model": "minilm", "layers": None, "last": 4, "classifier": 512},
    **{"dropout": None, "frozen": False, "max_words": 64},
}


@pytest.mark.parametrize(
    ("student", "changes", "start", "message"),
    [
        (PIECES, {}, "vectors", None),
        (PIECES, {}, "random", None),
        (LAYERS, {}, "model", None),
        (PIECES, WORDS, "vectors", None),
        (DSE, {}, "model", None),
        (DSE, {"frozen": True, "layers": [0, 1, 2, 3]}, "model", None),
        (DSE, {"layers": [0, 1, 2]}, "model", "students.new: `last` is 4, but `layers` names 3"),
        (DSE, {"layers": [1, 1], "last": 1}, "model", "students.new: `layers`: each may appear"),
        (DSE, {"max_words": 3}, "model", "students.new.max_words: "),
        (DSE, {"classifier": None}, "model", "students.new.classifier: "),
        (DSE, {}, "vectors", "methods.bilstm.start: a dse student is made of a pretrained model's"),
        (PIECES, {}, "model", "methods.bilstm.start: a biattentive student takes no layers"),
        (LAYERS, {}, "vectors", "methods.bilstm.start: a transformer student is made of a pretr"),
        (LAYERS, {}, "random", "methods.bilstm.start: a transformer student is made of a pretr"),
        (PIECES, {"embedding_size": None}, "random", "students.new: `embedding_size` goes with"),
        (PIECES, {"pools": []}, "random", "students.new.pools: "),
        (LAYERS, {"layers": [0, 0]}, "model", "students.new: `layers`: each may appear only once"),
        (LAYERS, {"layers": [-1]}, "model", "students.new.layers.0: "),
        (LAYERS, {"hidden": 3}, "model", "students.new.hidden: unknown key"),
        (LAYERS, {"model": "mine"}, "model", "students.new.model: no 'mine'; there are minilm"),
    ],
)
def test_students_and_starts(student: dict[str, Any], changes: dict[str, Any], start: str, message: str | None) -> None:
    own = {"students.new": student | changes, "methods.bilstm.student": "new"}
    raw = changed(own | {"methods.bilstm.start": start})
    if message is None:
        assert check_params(raw).students["new"].joint == (student is not DSE)
    else:
        assert message in error_of(raw)


def test_rows_start_from_a_joint_training_or_take_its_students() -> None:
    tuned, taken = check_params(changed(STARTED)), check_params(changed(TAKEN))
    assert tuned.joint["mtl"].tasks == JOINT["tasks"]
    row = taken.method("bilstm_kd")
    assert row.optimiser is None and taken.optimiser_of(row) == taken.optimisers["short"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("student", "none", "joint.mtl.student: no 'none'; there are bilstm"),
        ("optimiser", "none", "joint.mtl.optimiser: no 'none'; there are short"),
        ("start", "sra", "joint.mtl.start: Input should be 'vectors', 'random' or 'model'"),
        ("tasks", {"films": "full"}, "joint.mtl.tasks: no task 'films'; there are movies"),
        ("tasks", {"neighbours": "full"}, "joint.mtl.tasks.neighbours: no transfer set 'full'"),
        ("tasks", {}, "joint.mtl.tasks: "),
        ("tasks", {"movies": None}, "joint.mtl.tasks.movies: "),
    ],
)
def test_faulty_joint_trainings_name_their_key(key: str, value: Any, message: str) -> None:
    assert message in error_of(changed({"joint": {"mtl": JOINT | {key: value}}}))


def test_a_row_can_start_from_a_group_that_lacks_its_task() -> None:
    group = TAKEN | {"methods.bilstm_kd.optimiser": "short", "joint.mtl.tasks": {"movies": "original"}}
    # Unless a row names its tasks, it has those of the group.
    for named, tasks in ((["tweets", "neighbours"], ["tweets", "neighbours"]), (None, ["movies"])):
        params = check_params(changed(group | {"methods.bilstm_kd.tasks": named}))
        assert [task for task in params.tasks if "bilstm_kd" in params.methods_of(task)] == tasks


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods.bilstm_kd.student": "bilstm_sra"}, "bilstm_kd.student: bilstm_sra, but its sta"),
        ({"methods.bilstm_kd.tasks": ["neighbours"]}, "bilstm_kd.tasks: mtl is not trained on task neighb"),
        ({"methods.bilstm_kd.start": "vectors"}, "bilstm_kd.optimiser: null takes a joint train"),
        ({"methods.bilstm_kd.iterations": 0}, "methods.bilstm_kd.iterations: without an optimiser"),
        ({"methods.bilstm_kd.threshold": "dev"}, "methods.bilstm_kd.threshold: without an optimis"),
        ({"methods.bilstm_kd.objective": {"labels": 1.0}}, "bilstm_kd.objective: without an optimi"),
        ({"methods.bilstm_kd.data": "full"}, "methods.bilstm_kd.data: full, but mtl is trained on"),
    ],
)
def test_rows_that_do_not_fit_their_joint_training(changes: Any, message: str) -> None:
    assert message in error_of(changed(TAKEN | changes))
