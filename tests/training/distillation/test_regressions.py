"""Regressions as students: fitted to labels or logits, of words and n-grams, for texts and pairs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.students.student import load_student
from pipeline_lib.models.students.vocabulary import vector_source, write_vocabulary
from pipeline_lib.params import Params, check_params
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.training_texts import training_texts
from pipeline_lib.training.distillation.plans import make_plan
from pipeline_lib.training.distillation.regressions import student_row
from pipeline_lib.training.linear import fit_linear
from pipeline_lib.training.search import Searched, train_rows
from tests.kit.tasks import write_task
from tests.pipeline.corpus import sentences, write_encoder
from tests.pipeline.workspace import small_params

pytestmark = pytest.mark.usefixtures("store_home")
TASK = "reviews"
DEV = [text for _, text in sentences()["dev"]]
PAIRS = list(zip(DEV, DEV[1:] + DEV[:1], strict=True))
SCORES = {
    "kind": "regression",
    "labels": {"min": 0.0, "max": 99.0},
    "metrics": ["pearson"],
    "text": ["first", "second"],
}


def params_of(student: dict[str, Any], task: dict[str, Any], term: str = "labels", **row: Any) -> Params:
    values = small_params()
    values["tasks"][TASK] |= task
    values["students"]["linear"] = {"architecture": "regression", "max_words": 32} | student
    values["optimisers"]["fit"] = {"name": "lbfgs", "penalties": [1.0e-1, 1.0e-3]}
    method = {"student": "linear", "start": "vectors", "data": "original", "optimiser": "fit"}
    values["methods"] = {"linear": method | {"objective": {term: 1.0}} | row}
    return check_params(values)


def fit(params: Params, folder: Path, pair: bool) -> Searched[Any]:
    layout = Layout(folder / "data")
    write_encoder(layout.model("minilm"))
    write_task(layout, TASK, pair)
    texts, source = training_texts(layout.split(TASK, "train")), vector_source(params.vocabulary, layout)
    write_vocabulary([texts], params.vocabulary, source, layout.vocabulary(TASK))
    plan = make_plan(params, TASK, "linear", layout)
    row = student_row(plan, layout.vocabulary(TASK), layout.split(TASK, "dev"), [1, 2], "cpu")
    return train_rows([row], LocalEngine(1))["linear"]


@pytest.mark.parametrize("objective", ["labels", "logits"])
@pytest.mark.parametrize(
    ("student", "task", "least"),
    [
        pytest.param({"ngrams": 2}, {}, 0.95, id="words and n-grams"),
        pytest.param({"ngrams": 0}, {}, 0.7, id="words"),
        pytest.param({"ngrams": 3, "mean": False, "buckets": 1024}, {}, 0.9, id="n-grams"),
        pytest.param({"ngrams": 0}, SCORES, 0.4, id="pairs with scores"),
    ],
)
def test_a_regression_is_saved_as_it_was_scored(
    tmp_path: Path, student: dict[str, Any], task: dict[str, Any], least: float, objective: str
) -> None:
    searched = fit(params_of(student, task, objective), tmp_path, bool(task))
    (spec, record), (again, _) = searched.trainings.values()
    assert spec.result.key == again.result.key, "it draws nothing at random"
    assert record.best_dev > least and record.steps == 1
    loaded = load_student(spec.result.folder)
    logits, labels = loaded.logits(PAIRS if task else DEV), np.array([label for label, _ in sentences()["dev"]])
    if task:
        truth = 20.0 * labels + 10.0 * np.roll(labels, -1)
        assert np.corrcoef(logits[:, 0], truth)[0, 1] == pytest.approx(record.best_dev, abs=1e-3)
    else:
        assert (logits.argmax(1) == labels).mean() == pytest.approx(record.best_dev)
        assert loaded.model.config.embedding_size == 2, "a number for each class, not a vector"


def test_squared_errors_give_ridge_regression() -> None:
    generator = np.random.default_rng(0)
    features, targets = generator.normal(size=(40, 6)), generator.normal(size=(40, 2)) + 3
    [weights], bias = fit_linear(
        [features], lambda out: (out - torch.tensor(targets)).pow(2).sum(1).mean(), outputs=2, penalty=0.1
    )
    centred = features - features.mean(0)
    inverse = np.linalg.inv(centred.T @ centred / 20 + 0.1 * np.eye(6))
    expected = inverse @ centred.T @ (targets - targets.mean(0)) / 20
    np.testing.assert_allclose(weights, expected, atol=1e-3)
    np.testing.assert_allclose(bias, targets.mean(0) - features.mean(0) @ expected, atol=1e-3)


@pytest.mark.parametrize(
    ("student", "row", "message"),
    [
        ({"ngrams": 0, "mean": False}, {}, "nothing is left to read"),
        ({"ngrams": 1}, {"optimiser": "short"}, "fitted by `name: lbfgs`"),
        ({"ngrams": 1}, {"start": "random"}, "it starts from vectors"),
        ({"ngrams": 1}, {"objective": {"patience": 1.0, "labels": 1.0}}, "learns labels, logits or soft_labels"),
    ],
)
def test_what_cannot_be_fitted_is_refused(student: dict[str, Any], row: dict[str, Any], message: str) -> None:
    with pytest.raises(PotstillError, match=message):
        params_of(student, {}, **row)


def test_every_labelled_task_gets_its_yardsticks_unless_their_names_are_taken() -> None:
    values = small_params() | {"yardsticks": True}
    before = [*values["methods"]]
    assert [*check_params(values).methods] == [*before, "tfidf", "regression"]
    values["students"]["tfidf"] = values["students"]["bilstm"]
    assert [*check_params(values).methods] == [*before, "regression"]
    values["tasks"][TASK]["text"] = ["first", "second"]
    assert [*check_params(values).methods] == [*before, "regression_of_pairs"]


def test_ngrams_of_pairs_are_refused() -> None:
    with pytest.raises(PotstillError, match="not their n-grams"):
        params_of({"ngrams": 2}, SCORES)
