"""The papers' profiles load, and hold the papers' constants where the papers give them."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.params import Optimiser, Params, load_params

PROFILES = Path(__file__).parents[2] / "profiles"
NAMES = ("tang", "thesis", "thesis_mkd", "sra", "dse")


@pytest.fixture(scope="module", params=NAMES)
def profile(request: pytest.FixtureRequest) -> Params:
    return load_params(PROFILES / f"{request.param}.yaml")


def optimisers(params: Params, task: str) -> list[Optimiser]:
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


def rules(params: Params, name: str) -> tuple[float, float, float]:
    recipe = params.transfer[name]
    return recipe.p_mask, recipe.p_pos, recipe.p_ngram


def test_the_rules_of_augmentation() -> None:
    for name in ("tang", "sra"):
        profile = load_params(PROFILES / f"{name}.yaml")
        assert {*profile.transfer} == {"original", "full"}
        assert rules(profile, "full") == (0.1, 0.1, 0.25)
        assert profile.transfer["full"].ngram_max == 5
    # Without n-grams, and in chapter 4 without parts of speech.
    thesis = load_params(PROFILES / "thesis.yaml")
    assert {*thesis.transfer} == {"original", "mask", "mask_pos"}
    assert rules(thesis, "mask_pos") == (0.1, 0.1, 0.0)
    assert rules(thesis, "mask") == (0.1, 0.0, 0.0)


def test_the_teachers_rates(profile: Params) -> None:
    single = [own.tuning for own in profile.teachers.values() if own.tuning.kind == "single"]
    assert single and all(own.learning_rates == [2e-5, 3e-5, 4e-5, 5e-5] for own in single)


def test_the_hub_is_pinned_and_tasks_are_whole(profile: Params) -> None:
    assert {task.source.kind for task in profile.tasks.values()} == {"hub"}
    assert len({task.source.revision for task in profile.tasks.values()}) == 1
    assert {model.kind for model in profile.models.values()} == {"hub"}
    assert all(task.train_fraction == 1.0 for task in profile.tasks.values())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_ours_is_marked(name: str) -> None:
    text = (PROFILES / f"{name}.yaml").read_text()
    assert "# A line that ends in `# ours` has values" in text
    # How long students train and what they cut is in none of the papers' texts, but DSE's epochs.
    for key in ("dropout: ", "max_words: "):
        lines = [line for line in text.splitlines() if key in line and "states" not in line]
        ours = [line for line in lines if line.endswith("# ours")]
        assert ours and (len(ours) == len(lines) or name == "thesis_mkd"), key


@pytest.mark.parametrize(
    ("name", "vectors"),
    [
        ("tang", "GoogleNews-vectors-negative300.bin"),
        ("thesis", "GoogleNews-vectors-negative300.bin"),
        ("sra", "glove.840B.300d.txt"),
    ],
)
def test_words_that_no_training_text_has_keep_their_vectors(name: str, vectors: str) -> None:
    vocabulary = load_params(PROFILES / f"{name}.yaml").vocabulary
    assert vocabulary.vectors.path == vectors and vocabulary.extra_words == 100_000
    assert vocabulary.dimensions is None and not vocabulary.lowercase


@pytest.mark.parametrize(
    ("name", "repeats"),
    [
        ("tang", {"sst2": 20, "mnli": 10, "qqp": 10}),
        ("thesis", {"sst2": 10, "mrpc": 40, "stsb": 40, "mnli": 10, "qqp": 10}),
    ],
)
def test_chapter_3_and_the_paper_before_it(name: str, repeats: dict[str, int]) -> None:
    params = load_params(PROFILES / f"{name}.yaml")
    ours = {"cola", "qnli", "rte"} if name == "thesis" else set()
    assert {*params.tasks} == {*repeats} | ours
    assert next(iter(params.models.values())).model == "google-bert/bert-large-uncased"
    sizes = {(student.hidden, student.classifier) for student in params.students.values()}
    assert sizes == {(150, 200), (150, 400), (300, 200), (300, 400)}
    assert {student.embeddings for student in params.students.values()} == {"multichannel"}
    batches = {"sst2": 50, "mrpc": 50, "stsb": 50, "mnli": 256, "qqp": 256}
    for task in params.tasks:
        for optimiser in optimisers(params, task):
            assert (optimiser.name, optimiser.learning_rates) == ("adadelta", [1.0])
            assert optimiser.batch_size == batches.get(task, optimiser.batch_size)
        augment: Any = params.tasks[task].augment
        assert augment.n_iter == repeats.get(task, augment.n_iter) and augment.cap is None


@pytest.mark.parametrize(
    ("name", "distilled", "data"), [("tang", "bilstm_kd_ts", "full"), ("thesis", "bilstm_kd_mask_pos", "mask_pos")]
)
def test_each_size_has_the_rows_of_the_main_table(name: str, distilled: str, data: str) -> None:
    params = load_params(PROFILES / f"{name}.yaml")
    for task in params.tasks:
        rows = params.methods_of(task)
        batch = "" if distilled in rows else "_256"
        for size in ("", "_150x400", "_300x200", "_300x400"):
            row, baseline = rows[f"{distilled}{batch}{size}"], rows[f"bilstm{batch}{size}"]
            assert row.student == baseline.student == f"bilstm{size}"
            assert row.baseline == f"bilstm{batch}{size}" and baseline.baseline is None
            assert (row.data, row.objective.weights) == (data, {"logits": 1.0})
            assert (baseline.data, baseline.objective.weights) == ("original", {"labels": 1.0})


def test_soft_labels_and_a_mixture_stand_beside_logits() -> None:
    rows = load_params(PROFILES / "tang.yaml").methods
    for batch in ("", "_256"):
        assert rows[f"bilstm_kd_soft{batch}"].objective.weights == {"soft_labels": 1.0}
        mixed = rows[f"bilstm_kd_labels{batch}"].objective.weights
        assert mixed == {"logits": 0.5, "labels": 0.5}
        assert rows[f"bilstm_kd{batch}"].objective.weights == {"logits": 1.0}


def test_wu_et_al() -> None:
    params = load_params(PROFILES / "sra.yaml")
    assert set(params.tasks) == {"sst2", "mrpc", "qqp", "mnli"}
    assert params.models["bert_base"].model == "google-bert/bert-base-uncased"
    assert (params.sentence_vectors.model, params.sentence_vectors.pooling) == ("bert_base", "cls")
    student, encoder = params.students["bilstm_sra"], params.encoders["sra"]
    assert (student.hidden, student.width, student.classifier) == (512, 768, 256)
    assert not encoder.centre
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


def test_wu_et_al_s_rows_have_one_baseline_and_one_student() -> None:
    params = load_params(PROFILES / "sra.yaml")
    rows = {
        # Table 1, rows 10 to 14: start, data, what is learned.
        "bilstm_kd": ("vectors", "original", "logits"),
        "bilstm_sra": ("sra", "original", "labels"),
        "bilstm_sra_kd": ("sra", "original", "logits"),
        "bilstm_kd_ts": ("vectors", "full", "logits"),
        "bilstm_sra_kd_ts": ("sra", "full", "logits"),
    }
    for name, (start, data, term) in rows.items():
        row = params.methods[name]
        assert (row.start, row.data, row.objective.weights) == (start, data, {term: 1.0})
        assert (row.student, row.baseline, row.tasks) == ("bilstm_sra", "bilstm", None)
        # Distilled from BERT-large, which gives no vectors.
        assert term == "labels" or row.teacher == "bert_large"
    assert params.models["bert_large"].model == "google-bert/bert-large-uncased"
    assert params.teachers["bert_large"].answers("full")
    # Tables 4 and 5.
    sizes = {name: row.wikipedia for name, row in params.encoders.items()}
    assert sizes == {"sra": None, "sra_2m": 2_000_000, "sra_1m": 1_000_000}
    assert params.wikipedia.sentences == 4_000_000
    untuned = params.similarity["qqp"]
    assert (untuned.task, untuned.encoders, untuned.model) == ("qqp", ["sra"], "bert_base")
    assert untuned.poolings == ["cls", "mean"]


def test_chapter_4() -> None:
    params = load_params(PROFILES / "thesis_mkd.yaml")
    every = {"sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte"}
    assert set(params.tasks) == every and {*params.transfer} == {"original", "mask"}
    assert rules(params, "mask") == (0.1, 0.0, 0.0)
    # Words of the training text alone, unlike in chapter 3: so there are two files.
    assert params.vocabulary.extra_words == 0
    refined = params.teachers["refined"].tuning
    assert (refined.kind, refined.epochs, refined.ranking) == ("refined", 1, {"qnli": "entailment"})
    assert 5e-4 in refined.learning_rates
    student, words = params.students["biattentive"], params.students["biattentive_words"]
    assert (student.hidden, student.classifier, student.tokens) == (256, 512, "pieces")
    assert words.tokens == "words" and params.students["layers3_mean"].layers == [0, 1, 2]
    joint, tuning = params.optimisers["joint"], params.optimisers["tuning"]
    assert (joint.name, joint.learning_rates, joint.batch_size) == ("adam", [5e-4], 128)
    assert (joint.epochs, joint.clip_norm) == (16, 1.0)
    assert tuning.learning_rates == [1e-5, 1.5e-5, 5e-5]
    groups = {name: set(row.tasks) for name, row in params.joint.items()}
    assert groups["sentiment"] == {"sst2"} and groups["paraphrase"] == {"mrpc", "qqp"}
    assert groups["nli"] == {"mnli", "qnli", "rte"}
    for name in ("mkd", "mkd_words", "mtl", "mkd_layers", "all_tasks"):
        assert groups[name] == every
    # Tables 4.1 to 4.3, and of the students of table 4.2 none is tuned.
    untuned = {name for name, row in params.methods.items() if row.optimiser is None}
    assert untuned == {"bilstm_mtl", "mkd_lstm_word", "mkd_lstm"}


def test_layers_of_a_model_are_trained_jointly_with_low_rates_and_warm_up() -> None:
    params = load_params(PROFILES / "thesis_mkd.yaml")
    layers = params.optimisers[params.joint["mkd_layers"].optimiser]
    assert (layers.learning_rates, layers.warmup) == ([2e-5, 5e-5], 0.1)
    assert (layers.batch_size, layers.epochs, layers.clip_norm) == (128, 16, 1.0)


def test_the_loss_on_dev_selects_where_the_thesis_says_so() -> None:
    third, fourth = (load_params(PROFILES / f"{name}.yaml") for name in ("thesis", "thesis_mkd"))
    assert third.teachers["bert_large"].tuning.select == "loss"
    by_loss = [name for name, row in fourth.optimisers.items() if row.select == "loss"]
    assert by_loss == ["tuning"] and fourth.teachers["refined"].tuning.select == "metric"
    assert {row.select for row in third.optimisers.values()} == {"metric"}
    assert {row.select for row in load_params(PROFILES / "dse.yaml").optimisers.values()} == {"metric"}


def test_sun_et_al_and_jiao_et_al() -> None:
    params = load_params(PROFILES / "thesis_mkd.yaml")
    states = {"pkd3": [4, 8], "pkd3_last": [10, 11], "pkd6": [2, 4, 6, 8, 10], "pkd6_last": [7, 8, 9, 10, 11]}
    for name, layers in states.items():
        row = params.methods[name]
        assert params.teachers[row.teacher].states.layers == layers
        assert {*row.objective.weights} == {"labels", "soft_labels", "patience"}
        assert row.baseline == name.removesuffix("_last").replace("pkd", "bert")
    assert [len(params.students[name].layers) for name in ("layers3", "layers6")] == [3, 6]
    tiny = params.students["tiny"]
    assert (tiny.depth, tiny.width, tiny.feedforward, tiny.heads) == (4, 312, 1200, 12)
    assert params.encoders["general"].teacher_runs.layers == [3, 6, 9, 12]
    for name in ("tiny_layers", "tinybert", "tinybert_scores"):
        row = params.methods[name]
        assert (row.data, row.iterations) == ("mask", 20)
        assert params.teachers[row.teacher].answers(row.data)
    assert {task.augment.n_iter for task in params.tasks.values()} == {10, 40}


def test_barkan_et_al() -> None:
    params = load_params(PROFILES / "dse.yaml")
    assert {*params.tasks} == {"mrpc", "stsb", "qnli", "qqp", "mnli"}
    assert {*params.models} == {*params.teachers} == {"bert_large"}
    for name, frozen in (("dse", False), ("dse_frozen", True)):
        student = params.students[name]
        assert (student.model, student.layers, student.last) == ("bert_large", None, 4)
        assert (student.classifier, student.frozen) == (512, frozen)
    weights = {
        "dse_a0": {"labels": 1.0},
        "dse_a05": {"logits": 0.5, "labels": 0.5},
        "dse_a1": {"logits": 1.0},
        "dse_frozen": {"logits": 1.0},
    }
    for task in params.tasks:
        suffix, rate = ("_stsb", 1e-5) if task == "stsb" else ("", 2e-5)
        rows = params.methods_of(task)
        assert {*rows} == {f"{name}{suffix}" for name in weights}
        for name, objective in weights.items():
            assert rows[f"{name}{suffix}"].objective.weights == objective
        for optimiser in optimisers(params, task):
            assert (optimiser.name, optimiser.learning_rates) == ("adam", [rate])
            assert (optimiser.batch_size, optimiser.epochs) == (32, 8)
            assert optimiser.max_steps is None
