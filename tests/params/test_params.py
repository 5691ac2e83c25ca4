"""params.yaml: the shipped file loads; nothing unknown, missing or inconsistent gets through."""

import copy
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.params import Params, check_params, load_params

SHIPPED = Path(__file__).parents[2] / "params.yaml"
RAW = YAML(typ="safe", pure=True).load(SHIPPED.read_text())
HEX64, HEX40 = "0" * 64, "a" * 40

# Mappings whose keys the user chooses.
FREE = re.compile(
    r"(tasks|transfer|models|teachers|students|optimisers|encoders|catalogues|joint|methods|retrieval"
    r"|similarity|(encoders|joint)\.\w+\.tasks|tasks\.\w+\.labels"
    r"|tasks\.\w+\.source\.(files|splits)|retrieval\.\w+\.systems)$"
)

JOINT = {
    **{"student": "bilstm", "start": "vectors", "objective": {"logits": 1.0}, "optimiser": "short"},
    **{"tasks": {"movies": "original", "tweets": "full"}, "min_count": 1, "sampling": 0.5},
}
STARTED = {"joint": {"mtl": JOINT}, "methods.bilstm_kd.start": "mtl"}
TAKEN = STARTED | {"methods.bilstm_kd.optimiser": None, "methods.bilstm_kd.tasks": ["movies"]}

PAIRS = {
    **{"kind": "task", "task": "neighbours", "split": "dev", "relevant": "neighbours"},
    "graded": False,
}
BILSTM = {"kind": "student", "task": "neighbours", "method": "bilstm", "score": "f"}
RETRIEVAL = {
    "source": PAIRS,
    "queries": None,
    "systems": {
        "f": BILSTM | {"label": "neighbours"},
        "cosine": BILSTM | {"score": "cosine", "label": None},
        "sra": {"kind": "encoder", "encoder": "sra"},
        "mini": {"kind": "model", "model": "minilm", "pooling": "cls", "max_length": 64},
        "read": {"kind": "reranked", "first": "sra", "top": 20},
    },
    "teacher": {"task": "neighbours", "teacher": "minilm", "label": "neighbours", "pool": 10},
    "at": [1, 10],
}
JUDGED = {"kind": "files", "folder": "scifact", "qrels": "qrels/test.tsv", "relevant": 1.0}
SIMILARITY = {
    **{"task": "neighbours", "encoders": ["sra"], "model": "minilm", "poolings": ["cls", "mean"]}
}

# The unions' other members, so that the walk below meets every section.
ROWS = (
    "tasks|methods|transfer|models|teachers|students|optimisers|encoders|catalogues|joint|retrieval"
)
TUNING = "teachers.minilm.tuning"
FILES = {"kind": "files", "files": {"all": "a.tsv"}, "format": "tsv", "columns": None}
TINY = {
    **{"architecture": "bert", "model": "minilm", "depth": 2, "width": 24, "heads": 12},
    **{"feedforward": 40, "pool": "last", "classifier": None, "dropout": 0.1, "max_words": 64},
}
GENERAL = {
    **{"student": "tiny", "wikipedia": None, "teacher_runs": {"layers": [3, 6]}, "seed": 1},
    **{"objective": {"hidden": 1.0, "attentions": 1.0}, "optimiser": "short"},
}
TINY_ROW = {
    **{"student": "tiny", "data": "original", "iterations": None, "optimiser": "short"},
    **{"baseline": None, "tasks": ["movies"]},
}
TWO_STAGES = {
    "students.tiny": TINY,
    "encoders.general": GENERAL,
    "methods.layers": TINY_ROW
    | {"start": "general", "objective": {"hidden": 1.0}, "teacher_runs": {"layers": [3, 6]}},
    "methods.answers": TINY_ROW | {"start": "layers", "objective": {"labels": 1.0}},
}
"""A row that learns layers, from a Transformer that general distillation made, and one after it."""
VARIANTS = {
    "shipped": {},
    "general": {"students.tiny": TINY, "encoders.general": GENERAL},
    "own files": {
        "tasks.movies.source": FILES,
        "models.minilm": {"kind": "path", "path": "model"},
        "vocabulary.vectors": {"kind": "file", "path": "v.txt", "format": "glove"},
        "wikipedia.source": {"kind": "files", "files": ["AA/*"], "form": "extracted"},
    },
    "hub": {
        "tasks.movies.source": {
            "kind": "hub",
            "dataset": "d",
            "config": None,
            "revision": HEX40,
            "splits": {"all": "train"},
        },
        "models.minilm": {"kind": "hub", "model": "m", "revision": HEX40},
        "wikipedia.source": {
            "kind": "hub",
            "dataset": "d",
            "config": None,
            "revision": HEX40,
            "split": "train",
        },
    },
    "neighbours": {
        "tasks.movies.source": {
            "kind": "neighbours",
            "pairs": 100,
            "same_article": 0.5,
            "dev": 0.1,
            "test": 0.1,
            "seed": 1,
        },
        "tasks.movies.split": None,
    },
    "joint": {"joint": {"mtl": JOINT}},
    "retrieval": {"retrieval": {"mine": RETRIEVAL}},
    "judged files": {
        "retrieval": {
            "mine": RETRIEVAL
            | {"source": JUDGED | {"graded": True}, "teacher": None}
            | {"systems": {"sra": RETRIEVAL["systems"]["sra"]}}
        }
    },
    "similarity": {"similarity": {"mine": SIMILARITY}},
    "glue": {
        "tasks.movies.source": {
            "kind": "glue",
            "folder": "SST-2",
            "files": {"all": "train.tsv"},
            "columns": None,
        }
    },
}


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the shipped parameters with values at dotted keys put in."""
    raw = copy.deepcopy(RAW)
    for dotted, value in changes.items():
        *path, last = dotted.split(".")
        functools.reduce(dict.__getitem__, path, raw)[last] = copy.deepcopy(value)
    return raw


def mappings(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from mappings(inner, f"{path}.{key}" if path else str(key))


def fixed_mappings() -> list[tuple[str, str]]:
    return [
        (variant, path)
        for variant, changes in VARIANTS.items()
        for path, _ in mappings(changed(changes))
        if not FREE.match(path) and (not changes or any(path.startswith(c) for c in changes))
    ]


def error_of(raw: Any) -> str:
    with pytest.raises(DistilleryError) as caught:
        check_params(raw)
    return str(caught.value)


def test_the_shipped_file_loads() -> None:
    params = load_params(SHIPPED)
    assert params.task("movies").label_names == ["negative", "positive"]
    assert params.method("bilstm_kd").objective.needs_teacher
    assert not params.method("bilstm").objective.needs_teacher
    assert params.recipe("original").changes_nothing
    assert not params.recipe("full").changes_nothing


def test_soft_labels_of_a_regression_are_refused() -> None:
    soft = {"methods.bilstm_kd.objective": {"soft_labels": 1.0, "temperature": 2.0}}
    error = error_of(changed(soft))
    assert "methods.bilstm_kd.objective.soft_labels: task tweets is a regression" in error
    named = changed(soft | {"methods.bilstm_kd.tasks": ["movies"]})
    assert check_params(named).method("bilstm_kd").objective.soft_labels


LAYERS = {
    "architecture": "transformer",
    "model": "minilm",
    "layers": [0, 1, 2],
    "pool": "last",
    "classifier": None,
    "dropout": None,
    "max_words": 128,
}
PATIENT = {
    "students.layers": LAYERS,
    "methods.bilstm_kd.student": "layers",
    "methods.bilstm_kd.start": "model",
    "methods.bilstm_kd.tasks": ["movies"],
    "methods.bilstm_kd.objective": {"labels": 1.0, "patience": 10.0},
    "teachers.minilm.states": {"layers": [2, 4], "storage": "float16"},
}
"""A row that learns from the teacher's layers."""


def test_a_row_names_the_states_it_learns_from() -> None:
    params = check_params(changed(PATIENT))
    assert params.states_of("movies") == {"minilm": ["original"]}
    assert params.states_of("tweets") == {}
    assert params.reads_outputs(params.method("bilstm_kd"), "movies")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"methods.bilstm_kd.student": "bilstm", "methods.bilstm_kd.start": "vectors"},
            "methods.bilstm_kd.objective: the states of a student's layers are compared, less the "
            "last, and bilstm has 0; use a transformer of two layers or more",
        ),
        (
            {"students.layers": LAYERS | {"layers": [0]}},
            "less the last, and layers has 1; use a transformer of two layers or more",
        ),
        (
            {"teachers.minilm.states": None},
            "methods.bilstm_kd.objective: it reads the states of teacher minilm, which keeps none. "
            "Name the layers in teachers.minilm.states",
        ),
        (
            {"teachers.minilm.states": {"layers": [1, 2, 3], "storage": "float16"}},
            "for the 3 of layers name 2 layers in teachers.minilm.states.layers (found 3)",
        ),
        (
            {"teachers.minilm.states": {"layers": [0, 2], "storage": "float16"}},
            "teachers.minilm.states.layers.0: ",
        ),
        (
            {"teachers.minilm.states": {"layers": [2, 2], "storage": "float16"}},
            "teachers.minilm.states: `layers`: each may stand only once",
        ),
        (
            {"teachers.minilm.states": {"layers": [2, 4], "storage": "int8"}},
            "teachers.minilm.states.storage: ",
        ),
        (
            {"teachers.minilm.states": {"layers": [2, 4]}},
            "teachers.minilm.states.storage: missing. Add it",
        ),
        (
            {"methods.bilstm_kd.objective": {"patience": 1.0}},
            "methods.bilstm_kd.objective: the weights of logits, soft_labels, labels must add up",
        ),
        (
            {"joint": {"mtl": JOINT | {"objective": {"logits": 1.0, "patience": 1.0}}}},
            "joint.mtl.objective: only a method's row learns from a teacher's layers; leave out "
            "patience",
        ),
        (
            {"joint": {"mtl": JOINT | {"objective": {"logits": 1.0, "hidden": 1.0}}}},
            "joint.mtl.objective: only a method's row learns from a teacher's layers; leave out "
            "hidden",
        ),
        (
            {"methods.bilstm_kd.objective": {"labels": 1.0, "hidden": 1.0}},
            "methods.bilstm_kd.teacher_runs: goes with embeddings, hidden, attentions in the obj",
        ),
        (
            {"methods.bilstm_kd.teacher_runs": {"layers": [2, 4, 6]}},
            "methods.bilstm_kd.teacher_runs: goes with embeddings, hidden, attentions in the obj",
        ),
        (
            {
                "methods.bilstm_kd.objective": {"labels": 1.0, "hidden": 1.0},
                "methods.bilstm_kd.teacher_runs": {"layers": [2, 4]},
            },
            "methods.bilstm_kd.teacher_runs.layers: one for each layer of layers, which must be a "
            "transformer: it has 3 (found 2)",
        ),
        (
            {
                "methods.bilstm_kd.objective": {"labels": 1.0, "hidden": 1.0},
                "methods.bilstm_kd.teacher_runs": {"layers": [0, 2, 4]},
            },
            "methods.bilstm_kd.teacher_runs.layers.0: ",
        ),
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
        ("students.tiny.heads", 5, "students.tiny: `heads` divides `width`"),
        ("students.tiny.model", "none", "students.tiny.model: no 'none'; there are minilm"),
    ],
)
def test_stages_that_do_not_fit_are_refused(path: str, value: Any, message: str) -> None:
    raw = changed(TWO_STAGES)
    *keys, last = path.split(".")
    functools.reduce(dict.__getitem__, keys, raw)[last] = value
    assert message in error_of(raw)


@pytest.mark.parametrize("device", ["meta", "gpu", "cuda:first"])
def test_a_device_that_there_cannot_be_is_refused(device: str) -> None:
    assert "device: String should match" in error_of(changed({"device": device}))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_source_loads(variant: str) -> None:
    assert check_params(changed(VARIANTS[variant])).inputs == RAW["inputs"]


def test_wikipedia_can_be_null_unless_something_is_made_of_it() -> None:
    raw = changed({"wikipedia": None})
    assert "wikipedia: null, but encoders are trained" in error_of(raw)
    rows = raw["methods"].items()
    raw["methods"] = {name: row for name, row in rows if row["start"] not in raw["encoders"]}
    raw["encoders"] = {}
    assert "catalogues.wikipedia.encoder: no 'sra'" in error_of(raw)
    raw["catalogues"] = {}
    assert "tasks.neighbours.source: neighbours are sentences of Wikipedia" in error_of(raw)
    del raw["tasks"]["neighbours"], raw["methods"]["bilstm_wide"]
    del raw["joint"]["mtl"]["tasks"]["neighbours"]
    assert check_params(raw).wikipedia is None


GIVEN = {"files": ["v.csv"], "format": None, "mask": "X", "provenance": {}, "storage": "int8"}


def test_sentence_vectors_in_files_have_no_model() -> None:
    found = check_params(changed({"sentence_vectors": GIVEN}))
    assert found.sentence_vectors.mask == "X"
    assert all(key != "sentence_vectors.max_length" for key, *_ in found.lengths())
    row = {"task": "neighbours", "encoders": ["sra"], "model": "minilm", "poolings": []}
    changes = {"sentence_vectors": GIVEN, "similarity": {"pairs": row}}
    assert check_params(changed(changes)).similarity["pairs"].poolings == []
    row["poolings"] = ["mean"]
    assert "similarity.pairs.poolings: a model reads as much" in error_of(changed(changes))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("encoders.sra.student", "bilstm", "encoders.sra.student: bilstm has no sentence vector"),
        ("encoders.sra.optimiser", "none", "encoders.sra.optimiser: no 'none'; there are short"),
        ("encoders.sra.wikipedia", 10**9, "encoders.sra.wikipedia: 1000000000, but wikipedia"),
        ("encoders.sra.tasks", {"films": None}, "encoders.sra.tasks: no task 'films'"),
        ("encoders.sra.tasks", {"movies": "no"}, "encoders.sra.tasks.movies: no transfer set 'no'"),
        ("methods.bilstm.start", "sro", "methods.bilstm.start: no 'sro'; there are vectors"),
        ("methods.bilstm.start", "sra", "methods.bilstm.student: bilstm, but its start sra is a"),
        ("methods.bilstm_sra.tasks", ["films"], "methods.bilstm_sra.tasks: no task 'films'"),
        ("optimisers.short.learning_rates", [], "optimisers.short.learning_rates: "),
        ("sentence_vectors.storage", "int4", "sentence_vectors.storage: "),
        ("sentence_vectors.files", ["v.csv"], "sentence_vectors.model: unknown key"),
        ("sentence_vectors", GIVEN | {"format": "vllm"}, "sentence_vectors.format: "),
        ("sentence_vectors", GIVEN | {"files": []}, "sentence_vectors.files: "),
        ("sentence_vectors", {"files": ["a.csv"]}, "sentence_vectors.mask: missing"),
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
LAYERS = {
    **{"architecture": "transformer", "model": "minilm", "layers": [0, 1, 2], "pool": "mean"},
    **{"classifier": None, "dropout": None, "max_words": 64},
}

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
        (DSE, {"layers": [1, 1], "last": 1}, "model", "students.new: `layers`: each may stand"),
        (DSE, {"max_words": 3}, "model", "students.new.max_words: "),
        (DSE, {"classifier": None}, "model", "students.new.classifier: "),
        (DSE, {}, "vectors", "methods.bilstm.start: a dse student is made of a pretrained model's"),
        (PIECES, {}, "model", "methods.bilstm.start: a biattentive student takes no layers"),
        (LAYERS, {}, "vectors", "methods.bilstm.start: a transformer student is made of a pretr"),
        (LAYERS, {}, "random", "methods.bilstm.start: a transformer student is made of a pretr"),
        (PIECES, {"embedding_size": None}, "random", "students.new: `embedding_size` goes with"),
        (PIECES, {"pools": []}, "random", "students.new.pools: "),
        (LAYERS, {"layers": [0, 0]}, "model", "students.new: `layers`: each may stand only once"),
        (LAYERS, {"layers": [-1]}, "model", "students.new.layers.0: "),
        (LAYERS, {"hidden": 3}, "model", "students.new.hidden: unknown key"),
        (LAYERS, {"model": "mine"}, "model", "students.new.model: no 'mine'; there are minilm"),
    ],
)
def test_students_of_word_pieces_and_where_they_start(
    student: dict[str, Any], changes: dict[str, Any], start: str, message: str | None
) -> None:
    own = {"students.new": student | changes, "methods.bilstm.student": "new"}
    raw = changed(own | {"methods.bilstm.start": start})
    if message is None:
        assert check_params(raw).students["new"].joint == (student is not DSE)
    else:
        assert message in error_of(raw)


def test_words_do_not_start_from_a_models_layers() -> None:
    error = error_of(changed({"methods.bilstm.start": "model"}))
    assert "methods.bilstm.start: a bilstm student takes no layers of a pretrained model" in error


def test_rows_start_from_a_joint_training_or_take_its_students() -> None:
    tuned, taken = check_params(changed(STARTED)), check_params(changed(TAKEN))
    assert tuned.joint["mtl"].tasks == JOINT["tasks"]
    assert check_params(changed({"joint": {"mtl": JOINT | {"sampling": "all"}}})).joint
    row = taken.method("bilstm_kd")
    assert row.optimiser is None and taken.optimiser_of(row) == taken.optimisers["short"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("student", "none", "joint.mtl.student: no 'none'; there are bilstm"),
        ("optimiser", "none", "joint.mtl.optimiser: no 'none'; there are short"),
        ("start", "sra", "joint.mtl.start: no 'sra'; there are vectors, random"),
        ("tasks", {"films": "full"}, "joint.mtl.tasks: no task 'films'; there are movies"),
        ("tasks", {"neighbours": "full"}, "joint.mtl.tasks.neighbours: no transfer set 'full'"),
        ("tasks", {}, "joint.mtl.tasks: "),
        ("tasks", {"movies": None}, "joint.mtl.tasks.movies: "),
        ("sampling", 1.5, "joint.mtl.sampling: Input should be less than or equal to 1"),
        ("sampling", "some", "joint.mtl.sampling: Input should be 'all'"),
        ("min_count", 0, "joint.mtl.min_count: "),
        (
            "objective",
            {"soft_labels": 1.0, "temperature": 2.0},
            "joint.mtl.objective.soft_labels: task tweets is a regression",
        ),
    ],
)
def test_faulty_joint_trainings_name_their_key(key: str, value: Any, message: str) -> None:
    assert message in error_of(changed({"joint": {"mtl": JOINT | {key: value}}}))


@pytest.mark.parametrize("name", ["vectors", "sra"])
def test_a_joint_training_has_a_name_of_its_own(name: str) -> None:
    assert f"joint.{name}: methods that start from" in error_of(changed({"joint": {name: JOINT}}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods.bilstm_kd.student": "bilstm_sra"}, "bilstm_kd.student: bilstm_sra, but its sta"),
        (
            {"methods.bilstm_kd.tasks": ["neighbours"]},
            "bilstm_kd.tasks: mtl is not trained on task neighb",
        ),
        ({"methods.bilstm_kd.start": "vectors"}, "bilstm_kd.optimiser: null takes a joint train"),
        ({"methods.bilstm_kd.iterations": 0}, "methods.bilstm_kd.iterations: without an optimiser"),
        ({"methods.bilstm_kd.threshold": "dev"}, "methods.bilstm_kd.threshold: without an optimis"),
        (
            {"methods.bilstm_kd.objective": {"labels": 1.0}},
            "bilstm_kd.objective: without an optimi",
        ),
        ({"methods.bilstm_kd.data": "full"}, "methods.bilstm_kd.data: full, but mtl is trained on"),
    ],
)
def test_rows_that_do_not_fit_their_joint_training(changes: Any, message: str) -> None:
    assert message in error_of(changed(TAKEN | changes))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("source.task", "films", "source.task: no 'films'; there are movies, tweets, neighbours"),
        ("source.task", "movies", "source.task: movies is no task of sentence pairs"),
        ("source.relevant", "so", "source.relevant: no 'so'; there are apart, neighbours"),
        ("source.relevant", 1.0, "source.relevant: of neighbours the label of an answer (found"),
        ("source.relevant", None, "source.relevant: Input should be a valid"),
        ("source.graded", True, "source.graded: classes are no grades; of neighbours it is false"),
        ("source.kind", "web", "source: Input tag 'web'"),
        ("systems.f.method", "bilstm_kd", "systems.f.method: no 'bilstm_kd'; there are bilstm, "),
        ("systems.f.label", None, "systems.f.label: which class of neighbours orders? Name one"),
        ("systems.cosine.label", "apart", "systems.cosine.label: goes with `score: f`"),
        ("systems.sra.encoder", "sro", "systems.sra.encoder: no 'sro'; there are sra"),
        ("systems.mini.model", "mine", "systems.mini.model: no 'mine'; there are minilm"),
        ("systems.read.first", "read", "systems.read.first: no 'read'; there are f, cosine, sra"),
        ("systems", {}, "systems: "),
        ("teacher", None, "systems.read.kind: reranked by the row's teacher, and that is null"),
        ("teacher.teacher", "other", "teacher.teacher: no 'other'; there are minilm"),
        ("teacher.label", "no", "teacher.label: which class of neighbours orders? Name one of"),
        ("at", [1, 1], "at: each may stand only once"),
        ("at", [], "at: "),
    ],
)
def test_faulty_rows_of_retrieval_name_their_key(path: str, value: Any, message: str) -> None:
    raw = changed({"retrieval": {"mine": RETRIEVAL}, f"retrieval.mine.{path}": value})
    assert f"retrieval.mine.{message}" in error_of(raw)


def test_retrieval_by_students_of_pairs_read_at_once_is_refused() -> None:
    own = {"students.new": LAYERS, "methods.bilstm.student": "new", "methods.bilstm.start": "model"}
    error = error_of(changed(own | {"retrieval": {"mine": RETRIEVAL}}))
    assert "retrieval.mine.systems.f.method: its student new reads both sentences at once" in error


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("task", "tweets", "task: tweets is no task of sentence pairs"),
        ("encoders", ["sra", "no"], "encoders: no 'no'; there are sra"),
        ("model", "mine", "model: no 'mine'; there are minilm"),
        ("poolings", ["max"], "poolings.0: "),
    ],
)
def test_faulty_rows_of_similarity_name_their_key(key: str, value: Any, message: str) -> None:
    raw = changed({"similarity": {"mine": SIMILARITY | {key: value}}})
    assert f"similarity.mine.{message}" in error_of(raw)


def test_the_walk_meets_every_section() -> None:
    paths = fixed_mappings()
    assert len(paths) > 25
    met = {re.sub(rf"^({ROWS})\.\w+", r"\1", p) for _, p in paths}
    fields = {"tasks.source", "tasks.split", "tasks.augment", "tasks.labels.negative", "joint"}
    fields |= {"", "models", "teachers.tuning", "methods.objective", "vocabulary.vectors"}
    fields |= {"retrieval.source", "retrieval.teacher", "retrieval.systems.read"}
    assert fields <= met


@pytest.mark.parametrize(("variant", "path"), fixed_mappings())
def test_an_unknown_key_is_refused_everywhere(variant: str, path: str) -> None:
    raw = changed(VARIANTS[variant])
    dict(mappings(raw))[path]["zzz_unknown"] = 1
    if path.endswith(".objective"):
        # Its keys are the terms that there are.
        assert f"params.yaml: {path}: no term 'zzz_unknown'; there are" in error_of(raw)
        return
    dotted = f"{path}.zzz_unknown" if path else "zzz_unknown"
    assert f"params.yaml: {dotted}: unknown key." in error_of(raw)


@pytest.mark.parametrize(("variant", "path"), fixed_mappings())
def test_every_missing_key_is_refused(variant: str, path: str) -> None:
    if path.endswith(".objective"):
        # Its weights are optional, but not all of them.
        raw = changed(VARIANTS[variant])
        dict(mappings(raw))[path].clear()
        assert f"{path}: the weights" in error_of(raw)
        return
    for key in dict(mappings(changed(VARIANTS[variant])))[path]:
        raw = changed(VARIANTS[variant])
        del dict(mappings(raw))[path][key]
        dotted = f"{path}.{key}" if path else key
        assert f"params.yaml: {dotted}: missing." in error_of(raw)


def test_a_misspelt_key_gets_a_suggestion() -> None:
    raw = changed({})
    raw["teachers"]["minilm"]["max_lenght"] = raw["teachers"]["minilm"].pop("max_length")
    message = error_of(raw)
    assert (
        "teachers.minilm.max_lenght: unknown key" in message
        and "did you mean `max_length`" in message
    )
    assert "teachers.minilm.max_length: missing" in message


def test_yaml_is_1_2(tmp_path: Path) -> None:
    text = SHIPPED.read_text()
    rates_key = r"learning_rates: \[.*?\]"
    text, rates = re.subn(rates_key, "learning_rates: [2e-5, 1E-4]", text, count=1)
    text, inputs = re.subn(r"(?m)^inputs: .*$", "inputs: no", text)
    assert rates == inputs == 1
    (tmp_path / "p.yaml").write_text(text)
    params = load_params(tmp_path / "p.yaml")
    assert params.teachers["minilm"].tuning.learning_rates == [2e-5, 1e-4]
    assert params.inputs == "no"


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DistilleryError, match=r"absent\.yaml: not found"):
        load_params(tmp_path / "absent.yaml")
    for content in (b"a: [1", b"\xff\xfe\x00", b"a: 1\na: 2\n"):
        (tmp_path / "p.yaml").write_bytes(content)
        with pytest.raises(DistilleryError, match=r"p\.yaml: not valid YAML"):
            load_params(tmp_path / "p.yaml")
    for content in ("a: " + "[" * 5000, "a: " + "9" * 5000):
        (tmp_path / "p.yaml").write_text(content)
        with pytest.raises(DistilleryError, match=r"p\.yaml: not valid YAML"):
            load_params(tmp_path / "p.yaml")
    with pytest.raises(DistilleryError, match=r"could not be read \(Is a directory\)"):
        load_params(tmp_path)
    (tmp_path / "p.yaml").write_text("")
    with pytest.raises(DistilleryError, match=r"p\.yaml: the file: "):
        load_params(tmp_path / "p.yaml")


@pytest.mark.parametrize(
    ("key", "there"),
    [
        ("student", "bilstm"),
        ("data", "original"),
        ("optimiser", "short"),
        ("baseline", "bilstm_kd"),
    ],
)
def test_unknown_references(key: str, there: str) -> None:
    message = error_of(changed({f"methods.bilstm_kd.{key}": "nowhere"}))
    assert f"params.yaml: methods.bilstm_kd.{key}: no 'nowhere'" in message and there in message


@pytest.mark.parametrize(
    ("dotted", "value", "message"),
    [
        ("transfer.full.p_mask", 1.5, "transfer.full.p_mask: "),
        ("transfer.full.p_mask", 0.95, "transfer.full: p_mask + p_pos must be at most 1"),
        ("transfer.full.ngram_min", 6, "transfer.full: ngram_min must be at most ngram_max"),
        ("transfer.full.tasks", ["film"], "transfer.full.tasks: no task 'film'; there are movies"),
        ("transfer.full.tasks", [], "transfer.full.tasks: "),
        ("encoders.sra.tasks", {"neighbours": "full"}, "no transfer set 'full' of this task"),
        ("methods.bilstm.tasks", ["tweets"], "bilstm is no row of task movies"),
        ("tasks.movies.train_fraction", 0.0, "tasks.movies.train_fraction: "),
        ("methods.bilstm.iterations", -1, "methods.bilstm.iterations: "),
        ("seeds", [1, 1], "params.yaml: seeds: each may stand only once"),
        ("seeds", [], "seeds: "),
        ("methods", {}, "methods: "),
        ("device", None, "device: "),
        ("workers", 0, "workers: "),
        ("tasks.movies.blocks", 0, "tasks.movies.blocks: "),
        ("tasks.movies.blocks", "4", "tasks.movies.blocks: "),
        (
            "teachers.minilm.tuning.freeze_embeddings",
            3,
            "teachers.minilm.tuning.freeze_embeddings: ",
        ),
        ("tasks.movies.text", ["a", "b", "c"], "tasks.movies.text: "),
        ("tasks.movies.text", ["mean"], "tasks.movies: `label` and `text` name one column, 'mean'"),
        ("tasks.neighbours.text", ["first", "label"], "`label` and `text` name one column"),
        ("tasks.neighbours.text", ["first", "first"], "`text` names the column 'first' twice"),
        ("methods.bilstm.baseline", "bilstm", "methods.bilstm.baseline: bilstm → bilstm leads"),
        ("methods.bilstm.baseline", "bilstm_kd", "methods.bilstm.baseline: bilstm → bilstm_kd → "),
        ("tasks.movies.positive", "good", "`positive`: no label 'good'; there are negative, pos"),
        ("tasks.movies.positive", "positive", "`positive` goes with the metric f1 of two labels"),
        ("tasks.tweets.positive", "text", "tasks.tweets.positive: "),
        ("tasks.movies.metrics", ["pearson"], "tasks.movies.metrics.0: "),
        ("tasks.movies.labels", {"only": ["1"]}, "tasks.movies.labels: "),
        ("tasks.movies.source.sha256", "ab", "tasks.movies.source.sha256: "),
        ("tasks.movies.source.kind", "web", "tasks.movies.source: "),
        ("models.minilm.requirement", "name>=1", "models.minilm.requirement: "),
        (
            "teachers.minilm.tuning.learning_rates",
            [0.0],
            "teachers.minilm.tuning.learning_rates.0: ",
        ),
        ("optimisers.short.name", "sgd", "optimisers.short.name: "),
        ("wikipedia.source.artifact", "sdist", "wikipedia.source: `tags` pick a wheel"),
        ("wikipedia.source.tags", "linux", "wikipedia.source.tags: "),
        ("wikipedia.source.form", "parquet", "wikipedia.source.form: "),
        ("wikipedia.splitter.model", None, "wikipedia.splitter: `model` goes with senter"),
        ("wikipedia.keep.min_words", 61, "wikipedia.keep: min_words must be at most max_words"),
        ("wikipedia.validation.share", 0.0, "wikipedia.validation.share: "),
        ("students.bilstm.dropout", 1.0, "students.bilstm.dropout: "),
        ("methods.bilstm.objective", {"labels": 0.5}, "methods.bilstm.objective: the weights"),
        ("methods.bilstm.objective", {"soft_labels": 1.0}, "objective: `temperature` goes with"),
        (
            "methods.bilstm.objective",
            {"labels": 1.0, "temperature": 2.0},
            "objective: `temperature` goes with",
        ),
    ],
)
def test_values_out_of_bounds_name_their_key(dotted: str, value: Any, message: str) -> None:
    found = error_of(changed({dotted: value}))
    assert found.startswith("params.yaml: ") and message in found


@pytest.mark.parametrize("key", ["min_confidence", "threshold", "temperature"])
def test_what_only_classes_decide_is_refused_of_scores(key: str) -> None:
    value = {"min_confidence": 0.9}.get(key, "dev")
    row = f"methods.bilstm_kd_ts.{key}"
    message = error_of(changed({row: value}))
    assert row in message and "tweets" in message
    params = check_params(changed({row: value, "methods.bilstm_kd_ts.tasks": ["movies"]}))
    assert getattr(params.method("bilstm_kd_ts"), key) == value


def test_the_label_whose_f1_is_taken() -> None:
    task = check_params(changed({"tasks.movies.metrics": ["f1"]})).task("movies")
    assert (task.positive_class, task.f1_label) == (1, "positive")
    changes = {"tasks.movies.metrics": ["f1"], "tasks.movies.positive": "negative"}
    task = check_params(changed(changes)).task("movies")
    assert (task.positive_class, task.f1_label) == (0, "negative")
    assert check_params(RAW).task("movies").f1_label is None
    assert check_params(RAW).task("tweets").f1_label is None


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_number_can_be_infinite_or_none(variant: str) -> None:
    changes = VARIANTS[variant]
    numbers = [
        (path, [bad] if isinstance(value, list) else bad)
        for path, value in leaves(changed(changes))
        for bad in (float("nan"), float("inf"))
        if any(isinstance(v, float) for v in (value if isinstance(value, list) else [value]))
    ]
    assert {f"{TUNING}.learning_rates", "students.bilstm.dropout"} <= dict(numbers).keys()
    for path, bad in numbers:
        assert f"params.yaml: {path}" in error_of(changed(changes | {path: bad}))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", [-1, 2**32, 10**30, 1.0, True, "1"])
def test_a_seed_is_what_every_generator_takes(variant: str, seed: Any) -> None:
    changes = VARIANTS[variant]
    keys = [path for path, _ in leaves(changed(changes)) if path.endswith(("seed", "seeds"))]
    assert {"seeds", "evaluate.seed", f"{TUNING}.seed"} <= set(keys)
    for key in keys:
        bad = [seed] if key == "seeds" else seed
        assert f"params.yaml: {key}" in error_of(changed(changes | {key: bad}))


@pytest.mark.parametrize(
    ("dotted", "value"),
    [
        ("optimisers.short.clip_norm", float("inf")),
        ("methods.bilstm.objective", {"labels": float("nan")}),
        ("methods.bilstm.objective.temperature", float("nan")),
        ("students.bilstm.hidden", 10**12),
        ("optimisers.short.epochs", 10**20),
        ("tasks.movies.augment.n_iter", -1),
        ("tasks.movies.augment.n_iter", 2**31),
        ("vocabulary.extra_words", -1),
    ],
)
def test_numbers_that_cannot_be_used_name_their_key(dotted: str, value: Any) -> None:
    assert error_of(changed({dotted: value})).startswith(f"params.yaml: {dotted}")


def test_names_with_other_characters_are_refused() -> None:
    raw = changed({})
    raw["tasks"]["../movies"] = raw["tasks"].pop("movies")
    assert "../movies" in error_of(raw)


SPLIT = {"dev": 0.1, "test": 0.1, "seed": 1}
ALL, BOTH = {"all": "a"}, {"train": "a", "dev": "b"}


@pytest.mark.parametrize(
    ("files", "split", "message"),
    [
        (ALL, None, "must name both a train and a dev file"),
        ({"train": "a"}, None, "must name both a train and a dev file"),
        ({"all": "a", "dev": "b"}, SPLIT, "an `all` file stands alone"),
        ({"all": "a", **BOTH}, None, "an `all` file stands alone"),
        ({"dev": "a"}, SPLIT, "must name a `train` file"),
        (ALL, SPLIT | {"dev": 0.5, "test": 0.5}, "leave nothing to train on"),
        (BOTH, SPLIT, "draws what the source names already"),
        ({"train": "a", "test": "b"}, SPLIT, "draws what the source names already"),
        (ALL, SPLIT, None),
        ({"train": "a"}, SPLIT, None),
        ({"train": "a", "test": "b"}, SPLIT | {"test": 0.0}, None),
        (BOTH, None, None),
        ({**BOTH, "test": "c"}, None, None),
    ],
)
def test_split_rules(files: dict[str, str], split: Any, message: str | None) -> None:
    raw = changed({"tasks.movies.source": FILES | {"files": files}, "tasks.movies.split": split})
    if message is None:
        assert set(check_params(raw).task("movies").source.files) == set(files)
    else:
        found = error_of(raw)
        assert "params.yaml: tasks.movies: " in found and message in found


@pytest.mark.parametrize("look_up", [Params.task, Params.recipe, Params.method])
def test_looking_up_what_is_not_there(look_up: Any) -> None:
    with pytest.raises(DistilleryError, match=r"no 'absent' in params\.yaml; there are \w+"):
        look_up(load_params(SHIPPED), "absent")
