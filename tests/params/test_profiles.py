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


GOOGLE, BERT = "GoogleNews-vectors-negative300.bin", "google-bert/bert-{}-uncased"
CONSTANTS: list[tuple[str, str, dict[str, Any]]] = [
    # Words that no training text has keep their vectors; those of chapter 4 are of the training text alone.
    *((n, "vocabulary", {"extra_words": 100_000, "dimensions": None, "lowercase": False}) for n in NAMES[:2]),
    ("sra", "vocabulary", {"extra_words": 100_000, "dimensions": None, "lowercase": False}),
    ("thesis_mkd", "vocabulary", {"extra_words": 0}),
    *((name, "vocabulary.vectors", {"path": GOOGLE}) for name in ("tang", "thesis")),
    ("sra", "vocabulary.vectors", {"path": "glove.840B.300d.txt"}),
    # Wu et al.; tables 4 and 5.
    *(("sra", f"models.bert_{size}", {"model": BERT.format(size)}) for size in ("base", "large")),
    ("sra", "sentence_vectors", {"model": "bert_base", "pooling": "cls"}),
    ("sra", "students.bilstm_sra", {"hidden": 512, "width": 768, "classifier": 256}),
    ("sra", "encoders.sra", {"centre": False, "wikipedia": None, "optimiser": "sra"}),
    ("sra", "optimisers.sra", {"name": "adam", "learning_rates": [1e-3], "batch_size": 1024}),
    ("sra", "encoders.sra_2m", {"wikipedia": 2_000_000}),
    ("sra", "encoders.sra_1m", {"wikipedia": 1_000_000}),
    ("sra", "wikipedia", {"sentences": 4_000_000}),
    ("sra", "similarity.qqp", {"task": "qqp", "encoders": ["sra"], "model": "bert_base", "poolings": ["cls", "mean"]}),
    # Chapters 3 and 4.
    ("thesis", "teachers.bert_large.tuning", {"select": "loss"}),
    ("thesis_mkd", "teachers.refined.tuning", {"kind": "refined", "epochs": 1, "ranking": {"qnli": "entailment"}}),
    ("thesis_mkd", "teachers.refined.tuning", {"select": "metric"}),
    ("thesis_mkd", "students.biattentive", {"hidden": 256, "classifier": 512, "tokens": "pieces"}),
    ("thesis_mkd", "students.biattentive_words", {"tokens": "words"}),
    ("thesis_mkd", "students.layers3_mean", {"layers": [0, 1, 2]}),
    ("thesis_mkd", "optimisers.joint", {"name": "adam", "learning_rates": [5e-4], "batch_size": 128, "epochs": 16}),
    ("thesis_mkd", "optimisers.joint", {"clip_norm": 1.0}),
    ("thesis_mkd", "optimisers.tuning", {"learning_rates": [1e-5, 1.5e-5, 5e-5], "select": "loss"}),
    ("thesis_mkd", "joint.mkd_layers", {"optimiser": "joint_layers"}),
    ("thesis_mkd", "optimisers.joint_layers", {"learning_rates": [2e-5, 5e-5], "warmup": 0.1, "batch_size": 128}),
    ("thesis_mkd", "optimisers.joint_layers", {"epochs": 16, "clip_norm": 1.0}),
    # Jiao et al. and Barkan et al.
    ("thesis_mkd", "students.tiny", {"depth": 4, "width": 312, "feedforward": 1200, "heads": 12}),
    ("thesis_mkd", "encoders.general.teacher_runs", {"layers": [3, 6, 9, 12]}),
    ("dse", "students.dse", {"model": "bert_large", "layers": None, "last": 4, "classifier": 512, "frozen": False}),
    ("dse", "students.dse_frozen", {"last": 4, "classifier": 512, "frozen": True}),
]


def test_the_papers_constants() -> None:
    profiles: dict[str, Any] = {name: load_params(PROFILES / f"{name}.yaml") for name in NAMES}
    for name, path, expected in CONSTANTS:
        row = profiles[name]
        for key in path.split("."):
            row = row[key] if isinstance(row, dict) else getattr(row, key)
        assert {key: getattr(row, key) for key in expected} == expected, (name, path)
    by_loss = {(p, name) for p in NAMES for name, row in profiles[p].optimisers.items() if row.select == "loss"}
    assert by_loss == {("thesis_mkd", "tuning")}


def test_wu_et_al_s_rows_have_one_baseline_and_one_student() -> None:
    params = load_params(PROFILES / "sra.yaml")
    assert set(params.tasks) == {"sst2", "mrpc", "qqp", "mnli"}
    for task in params.tasks:
        for optimiser in optimisers(params, task):
            assert (optimiser.name, optimiser.learning_rates) == ("adam", [2e-4, 3e-4, 5e-4, 1e-3])
    for task, rows in (("sst2", 67_349), ("mrpc", 3_668)):
        augment = params.tasks[task].augment
        # Enough repetitions to get there.
        assert augment.cap == 800_000 and rows * augment.n_iter > 1.2 * augment.cap
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
    assert params.teachers["bert_large"].answers("full")


def test_chapter_4_with_sun_et_al_and_jiao_et_al() -> None:
    params = load_params(PROFILES / "thesis_mkd.yaml")
    every = {"sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte"}
    assert set(params.tasks) == every and {*params.transfer} == {"original", "mask"}
    assert rules(params, "mask") == (0.1, 0.0, 0.0) and 5e-4 in params.teachers["refined"].tuning.learning_rates
    groups = {name: set(row.tasks) for name, row in params.joint.items()}
    assert groups["sentiment"] == {"sst2"} and groups["paraphrase"] == {"mrpc", "qqp"}
    assert groups["nli"] == {"mnli", "qnli", "rte"}
    assert all(groups[name] == every for name in ("mkd", "mkd_words", "mtl", "mkd_layers", "all_tasks"))
    # Tables 4.1 to 4.3, and of the students of table 4.2 none is tuned.
    untuned = {name for name, row in params.methods.items() if row.optimiser is None}
    assert untuned == {"bilstm_mtl", "mkd_lstm_word", "mkd_lstm"}
    states = {"pkd3": [4, 8], "pkd3_last": [10, 11], "pkd6": [2, 4, 6, 8, 10], "pkd6_last": [7, 8, 9, 10, 11]}
    for name, layers in states.items():
        row = params.methods[name]
        assert params.teachers[row.teacher].states.layers == layers
        assert {*row.objective.weights} == {"labels", "soft_labels", "patience"}
        assert row.baseline == name.removesuffix("_last").replace("pkd", "bert")
    assert [len(params.students[name].layers) for name in ("layers3", "layers6")] == [3, 6]
    for name in ("tiny_layers", "tinybert", "tinybert_scores"):
        row = params.methods[name]
        assert (row.data, row.iterations) == ("mask", 20) and params.teachers[row.teacher].answers(row.data)
    assert {task.augment.n_iter for task in params.tasks.values()} == {10, 40}


def test_barkan_et_al() -> None:
    params = load_params(PROFILES / "dse.yaml")
    assert {*params.tasks} == {"mrpc", "stsb", "qnli", "qqp", "mnli"}
    assert {*params.models} == {*params.teachers} == {"bert_large"}
    weights = {"dse_a0": {"labels": 1.0}, "dse_a05": {"logits": 0.5, "labels": 0.5}, "dse_a1": {"logits": 1.0}}
    weights["dse_frozen"] = weights["dse_a1"]
    for task in params.tasks:
        suffix, rate = ("_stsb", 1e-5) if task == "stsb" else ("", 2e-5)
        found = {name: row.objective.weights for name, row in params.methods_of(task).items()}
        assert found == {f"{name}{suffix}": objective for name, objective in weights.items()}
        for optimiser in optimisers(params, task):
            assert (optimiser.name, optimiser.learning_rates, optimiser.max_steps) == ("adam", [rate], None)
            assert (optimiser.batch_size, optimiser.epochs) == (32, 8)
