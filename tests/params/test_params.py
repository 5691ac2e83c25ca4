"""params.yaml: the shipped file loads; what it says has to be consistent."""

import re
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.params import Params, check_params, load_params
from pipeline_lib.shards.training_records import Settings
from tests.params.variants import FILES, RAW, VARIANTS, changed, error_of
from tests.tour import TOUR


def test_the_shipped_file_loads() -> None:
    params = load_params(TOUR)
    assert params.task("movies").label_names == ["negative", "positive"]
    assert params.method("bilstm_kd").objective.needs_teacher
    assert not params.method("bilstm").objective.needs_teacher
    assert params.recipe("original").changes_nothing
    assert not params.recipe("full").changes_nothing
    for look_up in (Params.task, Params.recipe, Params.method):
        with pytest.raises(PotstillError, match=r"no 'absent' in params\.yaml; there are \w+"):
            look_up(params, "absent")


def test_soft_labels_of_a_regression_are_refused() -> None:
    soft = {"methods.bilstm_kd.objective": {"soft_labels": 1.0, "temperature": 2.0}}
    error = error_of(changed(soft))
    assert "methods.bilstm_kd.objective.soft_labels: task tweets is a regression" in error
    named = changed(soft | {"methods.bilstm_kd.tasks": ["movies"]})
    assert check_params(named).method("bilstm_kd").objective.soft_labels


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_source_loads(variant: str) -> None:
    assert check_params(changed(VARIANTS[variant])).inputs == RAW["inputs"]


def test_yaml_is_1_2(tmp_path: Path) -> None:
    text = TOUR.read_text()
    rates_key = r"learning_rates: \[.*?\]"
    text, rates = re.subn(rates_key, "learning_rates: [2e-5, 1E-4]", text, count=1)
    text, inputs = re.subn(r"(?m)^inputs: .*$", "inputs: no", text)
    assert rates == inputs == 1
    (tmp_path / "p.yaml").write_text(text)
    params = load_params(tmp_path / "p.yaml")
    assert params.optimisers["short"].learning_rates == [2e-5, 1e-4]
    assert params.inputs == "no"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: 1\na: 2\n", 'line 2: found duplicate key "a"). Keep one of the two.'),
        ("a: {b: 1, b: " + "x" * 9999 + "}\n", 'line 1: found duplicate key "b"). Keep one'),
        ("a:\n\tb: 1\n", "line 2: found character '\\t' that cannot start any token). Indent"),
        ("a: [1\nb: 2\n", "line 2: expected ',' or ']', but got ':'). Correct it."),
        ("a: " + "y" * 99_999 + ": [\n", "Correct it."),
        ("a: &b *c\n", "Correct it."),
    ],
)
def test_what_is_no_yaml_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "p.yaml").write_text(content)
    with pytest.raises(PotstillError) as caught:
        load_params(tmp_path / "p.yaml")
    error = str(caught.value)
    assert message in error and error.startswith(f"{tmp_path / 'p.yaml'}: not valid YAML (line ")
    assert "\n" not in error and len(error) < 500


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(PotstillError, match=r"absent\.yaml: not found"):
        load_params(tmp_path / "absent.yaml")
    for content in (b"\xff\xfe\x00", b"a: " + b"[" * 5000, b"a: " + b"9" * 5000):
        (tmp_path / "p.yaml").write_bytes(content)
        with pytest.raises(PotstillError, match=r"p\.yaml: not valid YAML"):
            load_params(tmp_path / "p.yaml")
    with pytest.raises(PotstillError, match=r"could not be read \(Is a directory\)"):
        load_params(tmp_path)
    (tmp_path / "p.yaml").write_text("")
    with pytest.raises(PotstillError, match=r"p\.yaml: the file: "):
        load_params(tmp_path / "p.yaml")


@pytest.mark.parametrize(
    ("dotted", "value", "message"),
    [
        ("methods.bilstm_kd.student", "nowhere", "methods.bilstm_kd.student: no 'nowhere'; there are bilstm"),
        ("methods.bilstm_kd.data", "nowhere", "methods.bilstm_kd.data: no transfer set 'nowhere'; there are original"),
        ("methods.bilstm_kd.optimiser", "nowhere", "methods.bilstm_kd.optimiser: no 'nowhere'; there are short"),
        ("methods.bilstm_kd.baseline", "nowhere", "methods.bilstm_kd.baseline: no 'nowhere'; there are bilstm"),
        ("tasks", RAW["tasks"] | {"../movies": RAW["tasks"]["movies"]}, "../movies"),
        *(("device", device, "device: String should match") for device in ("meta", "gpu", "cuda:first")),
        ("transfer.full.p_mask", 1.5, "transfer.full.p_mask: "),
        ("transfer.full.p_mask", 0.95, "transfer.full: p_mask + p_pos must be"),
        ("transfer.full.ngram_max", None, "transfer.full: p_ngram goes with ngram_max"),
        ("transfer.full.tasks", ["film"], "transfer.full.tasks: no task 'film'; there are movies"),
        ("transfer.full.tasks", [], "transfer.full.tasks: "),
        ("encoders.sra.tasks", {"neighbours": "full"}, "no transfer set 'full' of this task"),
        ("methods.bilstm.tasks", ["tweets"], "bilstm is not a row of task movies"),
        ("tasks.movies.train_fraction", 0.0, "tasks.movies.train_fraction: "),
        ("methods.bilstm.iterations", -1, "methods.bilstm.iterations: "),
        ("seeds", [1, 1], "params.yaml: seeds: each may appear only once"),
        ("seeds", [], "seeds: "),
        ("methods", {}, "methods: "),
        ("device", None, "device: "),
        ("workers", 0, "workers: "),
        ("tasks.movies.blocks", 0, "tasks.movies.blocks: "),
        ("tasks.movies.blocks", "4", "tasks.movies.blocks: "),
        ("teachers.minilm.tuning.freeze_embeddings", 3, "teachers.minilm.tuning.freeze_embeddings: "),
        ("tasks.movies.text", ["a", "b", "c"], "tasks.movies.text: "),
        ("tasks.movies.text", ["mean"], "tasks.movies: `label` and `text` name one column, 'mean'"),
        ("tasks.neighbours.text", ["first", "label"], "`label` and `text` name one column"),
        ("tasks.neighbours.text", ["first", "first"], "`text` names the column 'first' twice"),
        ("methods.bilstm.baseline", "bilstm", "methods.bilstm.baseline: bilstm → bilstm leads"),
        ("methods.bilstm.baseline", "bilstm_kd", "methods.bilstm.baseline: bilstm → bilstm_kd → "),
        ("tasks.movies.positive", "good", "`positive`: no label 'good'; there are negative, pos"),
        ("tasks.movies.positive", "positive", "`positive` goes with the metrics f1 and auprc of two labels"),
        ("tasks.tweets.positive", "text", "tasks.tweets.positive: "),
        ("tasks.movies.metrics", ["pearson"], "tasks.movies.metrics.0: "),
        ("tasks.movies.labels", {"only": ["1"]}, "tasks.movies.labels: "),
        ("tasks.movies.labels", {"a": ["1"], "b": ["0", "1"]}, "'1' is listed under a and b"),
        ("tasks.movies.labels", {"yes": ["1"], "Yes": ["0"]}, "'yes' and 'Yes' read alike"),
        ("tasks.movies.labels", {"a": [], "b": ["0"]}, "`labels`: a has no values"),
        ("tasks.movies.labels", {"": ["1"], "b": ["0"]}, "'' is no name of a class"),
        ("tasks.movies.labels", {"a\nb": ["1"], "b": ["0"]}, r"'a\nb' is no name of a class"),
        ("tasks.movies.labels", {"a": {"min": 0, "max": 1}, "b": {"min": 1, "max": 2}}, "the ranges of a and b share"),
        ("tasks.movies.labels", {"a": {"min": 2, "max": 1}, "b": ["x"]}, "tasks.movies.labels: a: min is above max"),
        ("tasks.movies.source.sha256", "ab", "tasks.movies.source.sha256: "),
        ("tasks.movies.source.kind", "web", "tasks.movies.source: "),
        ("models.minilm.requirement", "name>=1", "models.minilm.requirement: "),
        ("teachers.minilm.tuning.learning_rates", [0.0], "teachers.minilm.tuning.learning_rates.0: "),
        ("optimisers.short.name", "sgd", "optimisers.short: "),
        ("wikipedia.source.artifact", "sdist", "wikipedia.source: `tags` pick a wheel"),
        ("wikipedia.source.tags", "linux", "wikipedia.source.tags: "),
        ("wikipedia.source.form", "parquet", "wikipedia.source.form: "),
        ("wikipedia.splitter.model", None, "wikipedia.splitter: `model` goes with senter"),
        ("wikipedia.validation.share", 0.0, "wikipedia.validation.share: "),
        ("students.bilstm.dropout", 1.0, "students.bilstm.dropout: "),
        ("methods.bilstm.objective", {"labels": 0.5}, "methods.bilstm.objective: the weights"),
        ("methods.bilstm.objective", {"soft_labels": 1.0}, "objective: `temperature` goes with"),
        ("methods.bilstm.objective", {"labels": 1.0, "temperature": 2.0}, "objective: `temperature` goes with"),
    ],
)
def test_values_out_of_bounds_name_their_key(dotted: str, value: Any, message: str) -> None:
    found = error_of(changed({dotted: value}))
    assert found.startswith("params.yaml: ") and message in found


@pytest.mark.parametrize("key", ["threshold", "temperature"])
def test_what_only_classes_decide_is_refused_of_scores(key: str) -> None:
    row, value = f"methods.bilstm_kd_ts.{key}", "dev"
    message = error_of(changed({row: value}))
    assert row in message and "tweets" in message
    params = check_params(changed({row: value, "methods.bilstm_kd_ts.tasks": ["movies"]}))
    assert getattr(params.method("bilstm_kd_ts"), key) == value


def test_the_label_whose_f1_is_taken() -> None:
    task = check_params(changed({"tasks.movies.metrics": ["f1"]})).task("movies")
    assert (task.positive_class, KINDS[task.kind].f1_label(task)) == (1, "positive")
    changes = {"tasks.movies.metrics": ["f1"], "tasks.movies.positive": "negative"}
    task = check_params(changed(changes)).task("movies")
    assert (task.positive_class, KINDS[task.kind].f1_label(task)) == (0, "negative")
    changes = changes | {"tasks.movies.metrics": ["auprc"]}
    assert KINDS["classification"].f1_label(check_params(changed(changes)).task("movies")) == "negative"
    moved = changed(changes | {"methods.bilstm.threshold": "dev", "methods.bilstm.tasks": ["movies"]})
    assert "auprc, the first metric of movies, needs no threshold" in error_of(moved)
    for task in map(check_params(RAW).task, ("movies", "tweets")):
        assert KINDS[task.kind].f1_label(task) is None


SPLIT = {"dev": 0.1, "test": 0.1}
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


def test_words_are_replaced_by_part_of_speech_only_where_there_is_a_tagger() -> None:
    without = {"tagger": {"engine": "none", "model": None}}
    error = error_of(changed(without))
    assert "transfer.full.p_pos: words are replaced by others of their part of speech" in error
    assert check_params(changed(without | {"transfer.full.p_pos": 0.0})).tagger.engine == "none"


@pytest.mark.parametrize("dotted", ["optimisers.short", "teachers.minilm.tuning"])
def test_what_selects_on_dev_is_the_metric_or_the_loss(dotted: str) -> None:
    def value(raw: dict[str, Any]) -> str:
        params = check_params(raw)
        row = params.optimisers["short"] if "short" in dotted else params.teachers["minilm"].tuning
        return Settings.of(row, 0.1, "float32", 1).select

    assert value(changed({})) == value(changed({f"{dotted}.select": "metric"})) == "metric"
    assert value(changed({f"{dotted}.select": "loss"})) == "loss"
    assert "select: " in error_of(changed({f"{dotted}.select": "accuracy"}))
