"""A task whose rows may have several labels, from columns and from lists, to an int8 student."""

import json

import numpy as np
import pytest

from pipeline_lib.base.kinds import label_array, score
from pipeline_lib.exports.opening import load_student
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.shard_sets import ShardSet, read_shard

from .pair_tasks import NAMES
from .workspace import Workspace


def test_the_teacher_is_one_of_several_labels_and_its_answers_are_aligned(pairs: Workspace) -> None:
    config = json.loads((pairs / "data/teachers/marks/minilm/config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"
    assert [*config["id2label"].values()] == NAMES
    proof = json.loads((pairs / "data/outputs/marks/minilm/full/alignment.json").read_text())
    assert proof["rows_with_equal_key"] == proof["rows"]
    outputs = ShardSet.open(pairs / "data/outputs/marks/minilm/full").to_table()
    assert matrix(outputs["logits"]).shape[1] == 3
    assert abs(proof["agreement_with_labels"] - proof["teachers_own_agreement"]) < 0.03


def test_students_learn_each_label(pairs: Workspace) -> None:
    scores = TaskScores.read(pairs / "data/results/marks/scores.json")
    assert (scores.kind, scores.metric) == ("multilabel", "f1_micro")
    assert scores.teachers["minilm"].scores["test"]["f1_micro"] > 0.7
    predictions = read_shard(pairs / "data/results/marks/predictions.arrow")
    rows = predictions.filter(predictions["split"].to_numpy(zero_copy_only=False) == "test")
    labels = label_array(rows["label"])
    for name, method in scores.methods.items():
        outputs = matrix(rows[f"{name}-1"])
        for metric in scores.metrics:
            found = method.scores["test"][metric].mean
            assert found == pytest.approx(score(metric, labels, outputs), abs=1e-6)
        assert {*method.details.scores["test"]} == {"nll", "ece"}
        assert {*method.details.recall["test"]} == {*NAMES}
        assert method.routing is None
    assert scores.methods["bilstm_kd_ts"].scores["test"]["f1_micro"].mean > 0.4
    assert scores.methods["of_both"].scores["test"]["f1_micro"].mean > 0.4


def test_thresholds_are_chosen_on_dev_and_are_in_the_student(pairs: Workspace) -> None:
    folder = pairs / "data/students/marks/at_threshold/1"
    shift = json.loads((folder / "training.json").read_text())["threshold_shift"]
    assert len(shift) == 3 and any(shift)
    predictions = read_shard(pairs / "data/results/marks/predictions.arrow")
    rows = predictions.filter(predictions["split"].to_numpy(zero_copy_only=False) == "dev")
    labels, outputs = label_array(rows["label"]), matrix(rows["at_threshold-1"])
    for number in range(3):
        marks, values = labels[:, [number]], outputs[:, [number]]
        at_zero = score("f1_macro", marks, values)
        assert all(at_zero >= score("f1_macro", marks, values - v) for v in np.unique(outputs[:, number]))


def test_predict_explain_and_the_exported_student(pairs: Workspace) -> None:
    text = "The film is very good to my surprise."
    exported = load_student(pairs / "data/exports/marks")
    assert (exported.kind, exported.labels) == ("multilabel", NAMES)
    [labels] = exported.predict([text]).labels
    run = pairs.distill("predict", "data/exports/marks", text, "--format", "jsonl").sound()
    answer = json.loads(run.text)
    assert answer["labels"] == labels and {*answer["probabilities"]} == {*NAMES}
    folder = "data/students/marks/bilstm_kd_ts/1"
    explained = pairs.distill("explain", folder, text, "--label", "praise").sound().text
    assert "not praise" in explained or "praise" in explained
    assert "no label 'joy'" in pairs.distill("explain", folder, text, "--label", "joy").text
    routed = pairs.distill("predict", folder, text, "--route", "0.2")
    assert routed.status == 1 and "several labels a text" in routed.text


def test_the_page_shows_each_label(pairs: Workspace) -> None:
    report = json.loads((pairs / "data/report/report.json").read_text())
    task = next(one for one in report["tasks"] if one["task"] == "marks")
    assert task["tables"]["labels"]["header"][:3] == ["Label", "Rows", "teacher minilm"]
    assert [row[0] for row in task["tables"]["labels"]["rows"]] == NAMES
    assert task["confusion"] is None and task["reliability"]
    assert all(one["label"].removeprefix("not ") in NAMES for one in task["importance"]["examples"])
    page = (pairs / "data/report/index.html").read_text()
    assert "marks: F1 by label on test" in page
    assert "micro-averaged F1" in task["headline"]
