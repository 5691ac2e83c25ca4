"""Two tasks whose rows may have several labels, from columns and from lists, to int8 students."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lib.base.kinds import label_array, score
from pipeline_lib.base.layout import Layout
from pipeline_lib.exports.opening import load_student
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.shard_sets import ShardSet, read_shard

from .corpus import GOOD, sentences
from .workspace import Workspace

NAMES = ["praise", "pictures", "surprise"]
FORMS = {"marks": NAMES, "tags": "tags"}


def _labels(text: str) -> list[str]:
    words = {*text.removesuffix(".").split()}
    has = [words & {*GOOD}, words & {"film", "scene", "cast"}, "surprise" in words]
    return [name for name, applies in zip(NAMES, has, strict=True) if applies]


def _write(folder: Path) -> None:
    """Write each split as columns of marks and as a column of lists."""
    for split, rows in sentences().items():
        marks, tags = [",".join(["text", *NAMES])], ["text,tags"]
        for _, text in rows:
            labels = _labels(text)
            marks.append(",".join([f'"{text}"', *(str(int(name in labels)) for name in NAMES)]))
            tags.append(f'"{text}",{"|".join(labels)}')
        for name, lines in (("marks", marks), ("tags", tags)):
            (folder / f"{name}-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _task(template: dict[str, Any], name: str) -> dict[str, Any]:
    files = {split: f"{name}-{split}.csv" for split in ("train", "dev", "test")}
    values = {label: ["1"] if name == "marks" else [label] for label in NAMES}
    return template | {
        "source": {"kind": "files", "files": files, "format": "csv", "columns": None},
        **{"text": ["text"], "label": FORMS[name], "kind": "multilabel", "labels": values},
        **{"metrics": ["f1_micro", "f1_macro", "average_precision"], "positive": None, "blocks": 2},
    }


@pytest.fixture(scope="module")
def finished(new_workspace: Callable[[Path], Workspace], tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Run the whole pipeline on both tasks."""
    workspace = new_workspace(tmp_path_factory.mktemp("several") / "workspace")
    _write(workspace / "data/input")

    def edit(values: Any) -> None:
        template = dict(next(iter(values["tasks"].values())))
        values["tasks"] = {name: _task(template, name) for name in FORMS}
        values["seeds"] = [1]
        values["teachers"]["minilm"]["tuning"]["epochs"] = 8
        rows = values["methods"]
        rows["bilstm_kd"]["threshold"] = "dev"
        soft = {"soft_labels": 0.5, "labels": 0.5, "temperature": 2.0}
        others = {"tasks": ["marks"], "baseline": None}
        rows["soft"] = rows["bilstm_kd_ts"] | {"objective": soft, **others}
        values["joint"]["both"] = {
            **{"student": "bilstm", "start": "vectors"},
            **{"optimiser": "short", "tasks": {"marks": "original", "tags": "original"}},
        }
        of_both = {"start": "both", "optimiser": None, "data": "original", "tasks": ["tags"]}
        rows["of_both"] = rows["bilstm_kd"] | of_both | {"threshold": None, "temperature": None}

    workspace.params(edit)
    workspace.run_stages()
    return workspace


def test_both_forms_of_a_file_give_the_same_labels(finished: Workspace) -> None:
    for split in ("train", "dev", "test"):
        one, two = (ShardSet.open(finished / f"data/tasks/{n}/{split}").table() for n in FORMS)
        assert one.select(["key", "label"]).equals(two.select(["key", "label"]))
    assert label_array(one["label"]).sum(axis=0).min() > 5
    outputs = (ShardSet.open(finished / f"data/outputs/{n}/minilm/full") for n in FORMS)
    logits = [matrix(output.table()["logits"]) for output in outputs]
    np.testing.assert_array_equal(*logits)
    assert logits[0].shape[1] == 3


def test_the_teacher_is_one_of_several_labels_and_its_answers_are_aligned(finished: Workspace) -> None:
    config = json.loads((finished / "data/teachers/marks/minilm/config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"
    assert [*config["id2label"].values()] == NAMES
    proof = json.loads((finished / "data/outputs/marks/minilm/full/alignment.json").read_text())
    assert proof["rows_with_equal_key"] == proof["rows"]
    assert abs(proof["agreement_with_labels"] - proof["teachers_own_agreement"]) < 0.03


def test_students_learn_each_label(finished: Workspace) -> None:
    scores = TaskScores.read(finished / "data/results/marks/scores.json")
    assert (scores.kind, scores.metric) == ("multilabel", "f1_micro")
    assert scores.teachers["minilm"].scores["test"]["f1_micro"] > 0.7
    predictions = read_shard(finished / "data/results/marks/predictions.arrow")
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
    assert scores.methods["bilstm_kd_ts"].scores["test"]["f1_micro"].mean > 0.6
    assert TaskScores.read(finished / "data/results/tags/scores.json").methods["of_both"]


def test_thresholds_are_chosen_on_dev_and_are_in_the_student(finished: Workspace) -> None:
    folder = finished / "data/students/marks/bilstm_kd/1"
    shift = json.loads((folder / "training.json").read_text())["threshold_shift"]
    assert len(shift) == 3 and any(shift)
    predictions = read_shard(finished / "data/results/marks/predictions.arrow")
    rows = predictions.filter(predictions["split"].to_numpy(zero_copy_only=False) == "dev")
    labels, outputs = label_array(rows["label"]), matrix(rows["bilstm_kd-1"])
    for number in range(3):
        marks, values = labels[:, [number]], outputs[:, [number]]
        at_zero = score("f1_macro", marks, values)
        assert all(at_zero >= score("f1_macro", marks, values - v) for v in np.unique(outputs[:, number]))


def test_predict_explain_and_the_exported_student(finished: Workspace, tmp_path: Path) -> None:
    text = "The film is very good to my surprise."
    exported = load_student(finished / "data/exports/marks")
    assert (exported.kind, exported.labels) == ("multilabel", NAMES)
    [labels] = exported.predict([text]).labels
    run = finished.distill("predict", "data/exports/marks", text, "--format", "jsonl").sound()
    answer = json.loads(run.text)
    assert answer["labels"] == labels and {*answer["probabilities"]} == {*NAMES}
    folder = "data/students/marks/bilstm_kd_ts/1"
    explained = finished.distill("explain", folder, text, "--label", "praise").sound().text
    assert "not praise" in explained or "praise" in explained
    assert "no label 'joy'" in finished.distill("explain", folder, text, "--label", "joy").text
    routed = finished.distill("predict", folder, text, "--route", "0.2")
    assert routed.status == 1 and "several labels a text" in routed.text
    shutil.rmtree(tmp_path)


def test_the_page_shows_each_label(finished: Workspace) -> None:
    report = json.loads((finished / "data/report/report.json").read_text())
    task = next(one for one in report["tasks"] if one["task"] == "marks")
    assert task["tables"]["labels"]["header"][:3] == ["Label", "Rows", "teacher minilm"]
    assert [row[0] for row in task["tables"]["labels"]["rows"]] == NAMES
    assert task["confusion"] is None and task["reliability"]
    assert all(one["label"].removeprefix("not ") in NAMES for one in task["importance"]["examples"])
    page = (finished / "data/report/index.html").read_text()
    assert "marks: F1 by label on test" in page
    assert "micro-averaged F1" in task["headline"]


def test_sets_are_shown_and_verified(finished: Workspace) -> None:
    shown = finished.distill("shards", "show", "data/transfer/marks/full").sound().text
    assert "label praise" in shown or "label (none)" in shown
    counted = finished.distill("shards", "stats", "data/tasks/marks/train", "--json").sound().text
    assert {*json.loads(counted)["labels"]} == {*NAMES}
    listed = finished.distill("shards", "worklist", "marks", "--rows", "2").sound().text
    assert "teacher" in listed
    assert finished.distill("check").sound()
    layout = Layout(finished / "data")
    assert layout.exported("marks").exists()
