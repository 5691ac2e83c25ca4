"""The whole pipeline by `dvc repro`: complete, the same everywhere; what runs again."""

import json
from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.work_lists import work_lists
from pipeline_lib.models.students.student import load_student
from pipeline_lib.params import load_params
from pipeline_lib.shards.columns import matrix, texts
from pipeline_lib.shards.shard_sets import SetReference, ShardSet, read_shard
from pipeline_lib.training.distillation.students import StudentTraining
from tests.commands.running import distill

from .conftest import Finished
from .workspace import METHODS, SINGLE, TASK, TEACHER, Workspace

STAGES = {
    *(f"{name}@{TASK}" for name in ("fetch_data", "prepare", "augment", "finetune_teacher")),
    *(f"{name}@{TASK}" for name in ("precompute", "train", "evaluate", "measure_speed")),
    *SINGLE,
}


def test_every_stage_ran_and_left_its_outputs(finished: Finished) -> None:
    assert set(finished.run.stages) == STAGES
    lock = finished.workspace.lock()
    assert set(lock) == STAGES
    outs = [out["path"] for stage in lock.values() for out in stage["outs"]]
    # More than one: five of fingerprint, three of fetch_models, Wikipedia's two sets, the lexicon, the vocabulary, the
    # digests of what encoders and joint trainings read, an exported student, two files of the report's metrics.
    assert len(outs) == len(STAGES) + 14
    assert [path for path in outs if not (finished.workspace / path).exists()] == []


def test_scores_are_those_of_students_that_learned(finished: Finished) -> None:
    scores = json.loads((finished.workspace / "metrics.json").read_text())[TASK]
    assert set(scores["methods"]) == set(METHODS)
    means = [scores["methods"][name]["test"]["accuracy"]["mean"] for name in METHODS]
    for value in (scores["teachers"]["minilm"]["test"]["accuracy"], *means):
        assert 0.8 < value <= 1.0, scores


def test_scores_say_what_distillation_gives(finished: Finished) -> None:
    scores = finished.workspace.scores(TASK)
    own = [scores.methods[name] for name in METHODS]
    assert [one.learned_from for one in own] == ["gold", "teacher", "teacher"]
    assert own[0].details.gain == {"dev": None, "test": None}
    assert [one.details.temperature is not None for one in own] == [False, True, False]
    for one in own[1:]:
        assert set(one.details.gain["test"]) == {"nll", "ece"}
        assert one.details.gain["test"]["nll"].low is not None
        agreement = one.routing.agreement["dev"]
        assert one.routing.best.routed["dev"] == 1.0 if agreement is None else agreement >= one.routing.figure
    report = (finished.workspace / "data/report/results.md").read_text()
    assert f"### {TASK}: calibration on test" in report and f"### {TASK}: routing" in report


def test_the_page_shows_the_whole_run(finished: Finished) -> None:
    content = json.loads((finished.workspace / "data/report/report.json").read_text())
    [task] = content["tasks"]
    assert [one["system"] for one in task["systems"]] == [f"teacher {TEACHER}", *METHODS]
    assert all(one["rate"] and one["bytes"] for one in task["systems"])
    assert {one["system"] for one in task["curves"]} == {TEACHER, *METHODS}
    assert {one["method"] for one in task["gains"]} == set(METHODS[1:])
    assert {len(own["predicted"]) for own in task["reliability"].values()} == {15}
    assert task["importance"]["method"] in METHODS[1:]
    assert {len(one["models"]) for one in task["importance"]["examples"]} == {3}
    lists = {one["name"]: one["rows"] for one in task["work_lists"]}
    assert all(lists.values())
    assert any(row["sentences"][0]["spans"] for row in lists["augmentation"])
    runs = {stage["name"]: stage["runs"] for stage in content["provenance"]["flow"]["stages"]}
    assert {name.partition("@")[0] for name in STAGES - {"report"}} == {n for n in runs if runs[n]}
    [trained], [answered] = runs["train"], runs["precompute"]
    assert trained["counts"]["trainings"] == {"computed": 2 * len(METHODS), "reused": 0}
    assert sum(answered["counts"]["shards"].values()) >= 12
    html = (finished.workspace / "data/report/index.html").read_text()
    assert task["work_lists"][0]["rows"][0]["sentences"][0]["text"][:10] in html


def test_a_student_in_use_is_scaled_routed_explained_and_exported(
    finished: Finished, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(finished.workspace.folder)
    student, lines = f"data/students/{TASK}/bilstm_kd/1", ["The film is very good.", "It is dull."]
    temperature = finished.workspace.scores(TASK).methods["bilstm_kd"].details.temperature["1"]
    found = distill("predict", student, *lines, "--format", "jsonl")
    raw = load_student(finished.workspace / student).logits(lines) / temperature
    for line, logits in zip(found.splitlines(), raw, strict=True):
        assert json.loads(line)["logits"] == pytest.approx(logits.tolist(), abs=1e-5)
    for form in ("onnx", "onnx-int8", "numpy"):
        told, out = distill("export", student, f"out-{form}", "--to", form), f"out-{form}"
        assert ("rows of dev)" in told) is (form != "numpy")
        exported = distill("predict", out, *lines, "--format", "jsonl").splitlines()
        apart = {"rel": 0.02, "abs": 0.1} if form == "onnx-int8" else {"abs": 1e-5}
        for line, logits in zip(exported, raw, strict=True):
            assert json.loads(line)["logits"] == pytest.approx(logits.tolist(), **apart)
    dev = texts(ShardSet.open(finished.workspace / f"data/tasks/{TASK}/dev").to_table())
    behind = "--teacher", f"data/teachers/{TASK}/minilm"
    forms = [student, "out-onnx", "out-numpy"]
    told = [distill("predict", form, "--route", "0.6", *behind, given="\n".join(dev)) for form in forms]
    assert [text.splitlines()[0] for text in told] == [told[0].splitlines()[0]] * 3
    answered = [line.split("\t")[2] for line in told[0].splitlines()[1:]]
    assert len(answered) == len(dev) and answered.count("student") > 0
    (explained,) = json.loads(distill("explain", student, lines[0], "--json"))
    assert list(explained["models"]) == ["teacher minilm", "bilstm_kd", "bilstm"]
    assert len(explained["models"]["bilstm"]["changes"]) == 6
    distill("export", student, str(tmp_path / "hub"), "--to", "hub")
    assert distill("predict", str(tmp_path / "hub"), *lines, "--format", "jsonl") == found
    card = (tmp_path / "hub" / "README.md").read_text()
    assert f"Logits are divided by {temperature:.4g}" in card and "bilstm_kd:" in card


def test_a_finished_run_is_looked_into(finished: Finished, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(finished.workspace.folder)
    dev, student = f"data/tasks/{TASK}/dev", "data/students/reviews/bilstm_kd/1"
    lists = work_lists(Layout(Path("data")), load_params(), TASK, 5)
    assert [len(found.rows) for found in lists] == [5] * 4
    stored = work_lists(Layout(Path("data")), load_params(), TASK, 5, "bilstm_kd", ["student"])[0]
    assert stored.student.startswith("bilstm_kd-")
    # The student that runs answers as it did when it was evaluated, temperature and all.
    out = str(tmp_path / "dev.jsonl")
    distill("shards", "export", dev, "--to", out, "--student", student)
    written = [json.loads(line) for line in Path(out).read_text().splitlines()]
    table = read_shard(Path(f"data/results/{TASK}/predictions.arrow"))
    logits = matrix(table["bilstm_kd-1"])[: len(written)]
    logits = logits / finished.workspace.scores(TASK).methods["bilstm_kd"].details.temperature["1"]
    np.testing.assert_allclose([row["student_logits"] for row in written], logits, atol=1e-5)


LATER = """
from datetime import datetime, timedelta
from pipeline_lib.results import provenance
class Later(datetime):
    @classmethod
    def now(cls, zone=None):
        return datetime.now(zone) + timedelta(days=400)
provenance.datetime = Later
provenance.cpu_name = lambda: "another processor"
"""


def test_two_reports_differ_in_their_provenance_alone(workspace: Workspace) -> None:
    before, files = workspace.report(), workspace.digests("data/report")
    for path in (workspace / "data/stages").glob("*.json"):
        record = read_json(path)
        counts = {kind: {"computed": 0, "reused": 7} for kind in record["counts"]}
        taken = {"seconds": record["seconds"] + 100, "peak_bytes": 1, "processor": "other"}
        write_json(path, record | taken | {"started": "2020-01-01T00:00:00", "counts": counts})
    workspace.stage("report", prelude=LATER).sound()
    after = workspace.report()
    assert after[:2] == before[:2]
    changed = {key for key in after[2] if after[2][key] != before[2][key]}
    assert changed == {"made", "processor", "flow", "account"}
    others = workspace.digests("data/report")
    assert {name for name in files if others[name] != files[name]} == {"index.html", "report.json"}


def test_the_outputs_answer_to_the_transfer_set(finished: Finished) -> None:
    found = finished.workspace.distill("verify", "data").sound()
    assert "fault" not in found.text.lower()
    proof = json.loads((finished.workspace / f"data/outputs/{TASK}/minilm/full/alignment.json").read_text())
    assert proof["rows"] == proof["rows_with_equal_key"] > 400
    assert proof["recomputed_rows"] > 20
    assert proof["flipped_argmax"] == 0


def test_a_second_run_runs_nothing(finished: Finished) -> None:
    assert finished.workspace.dvc("repro").sound().stages == ["fingerprint"]
    dry = finished.workspace.dvc("repro", "--dry", "--allow-missing").sound()
    assert dry.stages == ["fingerprint"]


def test_a_changed_method_is_trained_and_scored_alone(workspace: Workspace) -> None:
    before = workspace.trained()
    workspace.params(lambda params: params["methods"]["bilstm_kd"].update(start="random"))
    stages = {*workspace.dvc("repro").sound().stages}
    after_training = {f"evaluate@{TASK}", f"measure_speed@{TASK}", "report"}
    assert stages == {"fingerprint", f"train@{TASK}"} | after_training
    assert len(workspace.trained() - before) == 2


def test_a_changed_student_is_another_for_every_method(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.folder)
    inputs = Layout().vocabulary(TASK), SetReference.to(Layout().split(TASK, "dev"))

    def keys() -> set[str]:
        plans = [workspace.plan(method) for method in METHODS]
        trainings = [
            StudentTraining(p, *inputs, seed, p.optimiser.learning_rates[0], "cpu") for p in plans for seed in (1, 2)
        ]
        return {training.result.key for training in trainings}

    assert keys() == workspace.trained()
    workspace.params(lambda params: params["students"]["bilstm"].update(hidden=9))
    assert len(keys()) == 2 * len(METHODS) and not keys() & workspace.trained()
