"""The papers' profiles load, and hold the papers' constants where the papers give them."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.params import Optimiser, Params, load_params

PROFILES = Path(__file__).parents[2] / "profiles"
NAMES = ("paper", "glue", "sra")


@pytest.fixture(scope="module", params=NAMES)
def profile(request: pytest.FixtureRequest) -> Params:
    """Return each profile."""
    return load_params(PROFILES / f"{request.param}.yaml")


def optimisers(params: Params, task: str) -> list[Optimiser]:
    """Return what a task's rows are trained with."""
    rows = params.methods_of(task).values()
    return [params.optimisers[row.optimiser] for row in rows]


def test_no_profile_is_forgotten() -> None:
    assert {path.stem for path in PROFILES.glob("*.yaml")} == {*NAMES, "default"}


def test_every_task_has_rows_and_every_optimiser_is_used(profile: Params) -> None:
    assert all(profile.methods_of(task) for task in profile.tasks)
    rows = *profile.methods.values(), *profile.encoders.values(), *profile.joint.values()
    used = {row.optimiser for row in rows} - {None}
    assert used == set(profile.optimisers)
    assert {row.student for row in profile.methods.values()} == set(profile.students)


def test_the_rules_of_augmentation(profile: Params) -> None:
    full, mask_pos = profile.transfer["full"], profile.transfer.get("mask_pos")
    assert (full.p_mask, full.p_pos, full.p_ngram) == (0.1, 0.1, 0.25)
    assert (full.ngram_min, full.ngram_max) == (1, 5)
    assert mask_pos is None or (mask_pos.p_mask, mask_pos.p_pos, mask_pos.p_ngram) == (0.1, 0.1, 0)


def test_the_teachers_rates(profile: Params) -> None:
    assert next(iter(profile.teachers.values())).tuning.learning_rates == [2e-5, 3e-5, 4e-5, 5e-5]


@pytest.mark.parametrize("name", ["paper", "glue"])
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
