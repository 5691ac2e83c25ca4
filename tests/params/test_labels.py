"""Tasks of several labels: what their columns, names and metrics may be."""

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_lib.base.kinds import KINDS, kind_of
from pipeline_lib.params import check_params
from tests.kit.made_up import task_of_labels

from .variants import RETRIEVAL, SIMILARITY, changed, error_of

TAGS = {"label": "tags", "labels": {"joy": ["joy", "Joy"], "anger": ["anger"]}}


def test_a_column_per_label_or_one_of_lists() -> None:
    task = task_of_labels()
    assert task.label_names == ["toxic", "threat", "spam"]
    assert task.labels_of("train") == ["toxic", "threat", "spam"]
    assert task.labels_of("unlabelled") == []
    assert task_of_labels(**TAGS).labels_of("dev") == ["tags"]
    by_split = task_of_labels(label={"dev": ["a", "b", "c"]})
    assert by_split.labels_of("dev") == ["a", "b", "c"]
    assert not by_split.learns_from_labels


def test_every_metric_says_the_kind_of_its_task() -> None:
    assert {metric: kind_of(metric) for kind in KINDS.values() for metric in kind.metrics} == {
        **dict.fromkeys(("accuracy", "f1", "matthews_correlation", "auprc"), "classification"),
        **dict.fromkeys(("pearson", "spearman"), "regression"),
        **dict.fromkeys(("f1_micro", "f1_macro", "average_precision"), "multilabel"),
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": ["toxic", "threat"]}, "names 2 columns, and `labels` 3 labels"),
        ({"label": ["toxic", "threat", "toxic"]}, "names a column twice"),
        ({"label": ["toxic", "threat", "sentence"]}, "`label` and `text` name one column"),
        ({"labels": {"toxic": ["1"]}}, "at least 2 items"),
        ({"labels": {"toxic": ["1"], "Toxic": ["1"], "spam": ["1"]}}, "read alike"),
        ({"labels": {"toxic": ["1"], "threat": ["0"], "spam": ["1"]}}, "says that a row lacks it"),
        ({"labels": {"toxic": ["1"], "threat": [], "spam": ["1"]}}, "threat has no values"),
        (TAGS | {"labels": {"joy": ["a"], "anger": ["a"]}}, "is listed under joy and anger"),
        ({"metrics": ["accuracy"]}, "'f1_micro', 'f1_macro' or 'average_precision'"),
    ],
)
def test_faults_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        task_of_labels(**changes)


def test_pairs_of_several_labels_rank_nothing() -> None:
    several = {"kind": "multilabel", "labels": {"apart": ["apart"], "neighbours": ["neighbours"]}}
    several |= {"metrics": ["f1_micro"]}
    changes = {f"tasks.neighbours.{key}": value for key, value in several.items()}
    for rows in ({"retrieval": {"mine": RETRIEVAL}}, {"similarity": {"mine": SIMILARITY}}):
        assert "neighbours may have several labels, which rank nothing" in error_of(changed(changes | rows))


def test_a_threshold_goes_with_several_labels() -> None:
    several = {"kind": "multilabel", "labels": {"a": ["1"], "b": ["2"], "c": ["3"]}}
    several |= {"metrics": ["f1_micro"], "label": "mean"}
    changes = {f"tasks.movies.{key}": value for key, value in several.items()}
    found = check_params(
        changed(changes | {"methods.bilstm_kd.threshold": "dev", "methods.bilstm_kd.tasks": ["movies"]})
    )
    assert found.methods["bilstm_kd"].threshold == "dev"
