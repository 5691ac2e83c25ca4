"""The papers' profiles load, and hold the papers' constants where the papers give them."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.params import Optimiser, Params, load_params

PROFILES = Path(__file__).parents[2] / "profiles"
NAMES = ("tang", "thesis", "thesis_mkd", "sra")


@pytest.fixture(scope="module", params=NAMES)
def profile(request: pytest.FixtureRequest) -> Params:
    """Return each profile."""
    return load_params(PROFILES / f"{request.param}.yaml")


def optimisers(params: Params, task: str) -> list[Optimiser]:
    """Return what a task's rows are trained with."""
    rows = params.methods_of(task).values()
    return [params.optimisers[row.optimiser] for row in rows]


def test_no_profile_is_forgotten() -> None:
    assert {path.stem for path in PROFILES.glob("*.yaml")} == {*NAMES, "default", "gpu", "tour"}


def test_every_task_has_rows_and_every_optimiser_is_used(profile: Params) -> None:
    assert all(profile.methods_of(task) for task in profile.tasks)
    rows = *profile.methods.values(), *profile.encoders.values(), *profile.joint.values()
    used = {row.optimiser for row in rows} - {None}
    assert used == set(profile.optimisers)
    assert {row.student for row in profile.methods.values()} == set(profile.students)


@pytest.mark.parametrize("name", ["tang", "thesis", "sra"])
def test_the_rules_of_augmentation(name: str) -> None:
    profile = load_params(PROFILES / f"{name}.yaml")
    full, mask_pos = profile.transfer["full"], profile.transfer.get("mask_pos")
    assert (full.p_mask, full.p_pos, full.p_ngram) == (0.1, 0.1, 0.25)
    assert (full.ngram_min, full.ngram_max) == (1, 5)
    assert mask_pos is None or (mask_pos.p_mask, mask_pos.p_pos, mask_pos.p_ngram) == (0.1, 0.1, 0)


def test_the_teachers_rates(profile: Params) -> None:
    single = [own.tuning for own in profile.teachers.values() if own.tuning.kind == "single"]
    assert single and all(own.learning_rates == [2e-5, 3e-5, 4e-5, 5e-5] for own in single)


@pytest.mark.parametrize("name", ["tang", "thesis"])
def test_tang_et_al(name: str) -> None:
    params = load_params(PROFILES / f"{name}.yaml")
    assert next(iter(params.models.values())).model == "google-bert/bert-large-uncased"
    assert params.vocabulary.vectors.path == "GoogleNews-vectors-negative300.bin"
    assert params.vocabulary.dimensions is None
    student = params.students["bilstm"]
    assert (student.hidden, student.classifier, student.embeddings) == (150, 200, "multichannel")
    batches = {"sst2": 50, "mrpc": 50, "stsb": 50, "mnli": 256, "qqp": 256}
    repeats = {"sst2": 20, "mrpc": 40, "stsb": 40, "mnli": 10, "qqp": 10}
    for task in params.tasks:
        for optimiser in optimisers(params, task):
            assert (optimiser.name, optimiser.learning_rates) == ("adadelta", [1.0])
            assert optimiser.batch_size == batches.get(task, optimiser.batch_size)
        augment: Any = params.tasks[task].augment
        assert augment.n_iter == repeats.get(task, augment.n_iter) and augment.cap is None


def test_wu_et_al() -> None:
    params = load_params(PROFILES / "sra.yaml")
    assert set(params.tasks) == {"sst2", "mrpc", "qqp", "mnli"}
    assert next(iter(params.models.values())).model == "google-bert/bert-base-uncased"
    assert params.vocabulary.vectors.path == "glove.840B.300d.txt"
    assert params.sentence_vectors.pooling == "cls"
    student, encoder = params.students["bilstm_sra"], params.encoders["sra"]
    assert (student.hidden, student.width, student.classifier) == (512, 768, 256)
    assert not encoder.centre and params.wikipedia.sentences == 4_000_000
    pretraining = params.optimisers[encoder.optimiser]
    assert (pretraining.name, pretraining.learning_rates) == ("adam", [1e-3])
    assert pretraining.batch_size == 1024
    for task in params.tasks:
        for optimiser in optimisers(params, task):
            assert optimiser.name == "adam"
            assert optimiser.learning_rates == [2e-4, 3e-4, 5e-4, 1e-3]
    for task, rows in (("sst2", 67_349), ("mrpc", 3_668)):
        augment = params.tasks[task].augment
        # Enough repetitions to get there.
        assert augment.cap == 800_000 and rows * augment.n_iter > 1.2 * augment.cap


def test_liu() -> None:
    params = load_params(PROFILES / "thesis_mkd.yaml")
    every = {"sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte"}
    assert set(params.tasks) == every and not {"full", "mask_pos"} & set(params.transfer)
    assert (params.transfer["mask"].p_mask, params.transfer["mask"].p_pos) == (0.1, 0.0)
    refined = params.teachers["refined"].tuning
    assert (refined.kind, refined.epochs, refined.ranking) == ("refined", 1, {"qnli": "entailment"})
    student, words = params.students["biattentive"], params.students["biattentive_words"]
    assert (student.hidden, student.classifier, student.tokens) == (256, 512, "pieces")
    assert words.tokens == "words" and params.students["layers3_mean"].layers == [0, 1, 2]
    joint, tuning = params.optimisers["joint"], params.optimisers["tuning"]
    assert (joint.name, joint.learning_rates, joint.batch_size) == ("adam", [5e-4], 128)
    assert (joint.epochs, joint.clip_norm) == (16, 1.0)
    assert tuning.learning_rates == [1e-5, 1.5e-5, 5e-5]
    groups = {name: set(row.tasks) for name, row in params.joint.items()}
    assert groups["nli"] == {"mnli", "qnli", "rte"} and groups["paraphrase"] == {"mrpc", "qqp"}
    assert all(groups[name] == every for name in ("mkd", "mkd_words", "mtl", "mkd_layers"))
    # Tables 4.1 to 4.3, and of the students of table 4.2 none is tuned.
    untuned = {name for name, row in params.methods.items() if row.optimiser is None}
    assert untuned == {"bilstm_mtl", "mkd_lstm_word", "mkd_lstm"}


def test_sun_et_al_and_jiao_et_al() -> None:
    params = load_params(PROFILES / "thesis_mkd.yaml")
    assert params.teachers["skip3"].states.layers == [4, 8]
    assert params.teachers["skip6"].states.layers == [2, 4, 6, 8, 10]
    assert [len(params.students[name].layers) for name in ("layers3", "layers6")] == [3, 6]
    tiny = params.students["tiny"]
    assert (tiny.depth, tiny.width, tiny.feedforward, tiny.heads) == (4, 312, 1200, 12)
    assert params.encoders["general"].teacher_runs.layers == [3, 6, 9, 12]
