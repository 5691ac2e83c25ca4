"""Two tasks about sentence pairs, one of classes and one of scores, through every stage."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from pipeline_lib.base.layout import Layout
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.student import load_student
from pipeline_lib.results.diagrams import read_predictions
from pipeline_lib.results.schema import RetrievalScores, SimilarityScores
from pipeline_lib.shards.columns import matrix, texts
from pipeline_lib.shards.shard_sets import ShardSet, read_shard

from .pair_tasks import MORE, PIECES, RETRIEVAL, TEACHERS
from .workspace import Workspace

FROZEN = {"praise": ["dse_frozen"], "warmth": []}
"""Rows whose model is not trained."""


def test_the_teacher_answers_every_pair(pairs: Workspace) -> None:
    for task, width in (("praise", 2), ("warmth", 1)):
        outputs = ShardSet.open(pairs / f"data/outputs/{task}/minilm/full")
        inputs = ShardSet.open(pairs / f"data/transfer/{task}/full")
        assert outputs.to_table()["key"].equals(inputs.to_table()["key"])
        assert matrix(outputs.to_table()["logits"]).shape == (inputs.manifest.rows, width)
        proof = json.loads((pairs / f"data/outputs/{task}/minilm/full/alignment.json").read_text())
        assert proof["rows_with_equal_key"] == proof["rows"]
        # Rows that slipped would agree by chance: half the classes, or no correlation.
        own = proof["teachers_own_agreement"]
        assert abs(proof["agreement_with_labels"] - own) < 0.03
        assert own > (0.7 if width == 2 else 0.4)


def test_scores_name_every_metric_and_hide_the_test(pairs: Workspace) -> None:
    metrics = json.loads((pairs / "metrics.json").read_text())
    scored = {"praise": ["dev"], "warmth": ["dev", "dev_more"]}
    for task, names in (("praise", {"f1", "accuracy"}), ("warmth", {"pearson", "spearman"})):
        assert list(metrics[task]["teachers"]["minilm"]) == scored[task]
        found = metrics[task]["methods"]["bilstm_kd_ts"]["dev"]
        assert names <= set(found)
        scores = pairs.scores(task)
        assert "test" in scores.rows and scores.scored_splits == scored[task]
    assert metrics["warmth"]["methods"]["bilstm"]["dev"]["pearson"]["mean"] > 0.2


def test_a_further_split_is_scored_by_every_system(pairs: Workspace) -> None:
    scores = pairs.scores("warmth")
    rows = read_predictions(Layout(pairs / "data"), "warmth", "dev_more")
    assert scores.rows["dev_more"] == rows.num_rows == MORE
    labels = rows["label"].to_numpy()
    assert labels[-1] == 90.0 and scores.decisive_split == "dev"
    outputs = {name: matrix(rows[name])[:, 0] for name in rows.column_names[3:]}
    correlations = {name: np.corrcoef(labels, one)[0, 1] for name, one in outputs.items()}
    # In the labels' unit: they stand apart by 40.
    assert all(np.abs(outputs[name] - labels).mean() < 15.0 for name in ("minilm", "refined", "bilstm-1"))
    for name, teacher in scores.teachers.items():
        found = teacher.scores["dev_more"]["pearson"]
        assert found == pytest.approx(correlations[name], abs=1e-5)
    for name, method in scores.methods.items():
        found = method.scores["dev_more"]["pearson"].mean
        assert found == pytest.approx(correlations[f"{name}-1"], abs=1e-5)
    gain = scores.methods["bilstm_kd_ts"].gain["dev_more"].difference
    expected = correlations["bilstm_kd_ts-1"] - correlations["bilstm-1"]
    assert gain == pytest.approx(expected, abs=1e-5)
    report = (pairs / "data/report/results.md").read_text()
    assert "### warmth: pearson on dev_more" in report
    assert "### warmth: mean error on dev_more" in report
    shown = pairs.distill("results").sound().text
    assert "warmth: pearson on dev_more" in shown and "praise: f1 on" not in shown


def test_pairs_with_an_empty_sentence_are_left_out_or_answered(pairs: Workspace, tmp_path: Path) -> None:
    layout = Layout(pairs / "data")
    sets = {name: ShardSet.open(layout.split("praise", name)) for name in ("train", "dev", "test")}
    rows = {name: one.manifest.rows for name, one in sets.items()}
    assert rows == {"train": 240, "dev": 61, "test": 61}
    dropped = sets["train"].manifest.counts["dropped"]
    assert (dropped["train"]["rows"], dropped["train"]["empty_text"]) == (242, 2)
    kept = [dropped[name].get("kept_empty_text") for name in ("train", "dev", "test")]
    assert kept == [None, [61], [61]]
    predictions = read_predictions(layout, "praise", "test")
    systems = predictions.column_names[3:]
    assert {"minilm", "bilstm-1", "mkd_lstm-1", "dse-1"} <= {*systems}
    for system in systems:
        outputs = matrix(predictions[system])
        assert outputs.shape == (61, 2) and np.isfinite(outputs).all()
    workspace = pairs.copy(tmp_path / "workspace")
    workspace.distill("shards", "show", "data/tasks/praise/dev", "--rows", "60").sound()
    *_, warning, line = workspace.stage("prepare", "--task", "praise").sound().text.splitlines()
    assert warning == (
        "warning: praise: an empty text in dev, row 61; test, row 61. These rows are kept and answered like any other."
    )
    assert line.startswith("praise: train 240, dev 61, test 61 rows; left out: 2 with empty text;")


def test_every_stage_takes_the_f1_of_the_class_that_params_name(pairs: Workspace) -> None:
    scores = pairs.scores("praise")
    assert (scores.f1_label, scores.metric) == ("no", "f1")
    report = (pairs / "data/report/results.md").read_text()
    assert "f1 / accuracy in percent (f1 of class no)" in report
    for name, own in scores.methods.items():
        found = own.scores["dev"]["f1"].by_seed["1"]
        record = pairs / f"data/students/praise/{name}/1/training.json"
        assert json.loads(record.read_text())["best_dev"] == pytest.approx(found, abs=1e-6)
    teacher = json.loads((pairs / "data/teachers/praise/minilm/training.json").read_text())
    assert teacher["best_dev"] == pytest.approx(scores.teachers["minilm"].scores["dev"]["f1"], abs=0.02)


@pytest.mark.parametrize("task", ["praise", "warmth"])
def test_students_that_read_word_pieces_are_scored_as_saved(pairs: Workspace, task: str) -> None:
    table = read_shard(pairs / f"data/results/{task}/predictions.arrow").to_pydict()
    scores = pairs.scores(task)
    for split in ("dev", "test"):
        rows = [number for number, name in enumerate(table["split"]) if name == split]
        inputs = texts(ShardSet.open(pairs / f"data/tasks/{task}/{split}").to_table())
        for method in (*PIECES[task], *FROZEN[task]):
            student = load_student(pairs / f"data/students/{task}/{method}/1")
            found = [table[f"{method}-1"][row] for row in rows]
            np.testing.assert_array_equal(student.logits(inputs), np.array(found, np.float32))
    for method in PIECES[task]:
        own = scores.methods[method]
        better = own.scores["dev"][scores.metric].mean
        assert better > (0.7 if task == "praise" else 0.4)
        assert own.parameters.with_embeddings > own.parameters.without_embeddings
    assert pairs.plan("bilstm", task).model is None
    assert pairs.plan("mkd_lstm", task).model.folder == "data/raw/models/minilm"


@pytest.mark.parametrize("task", ["praise", "warmth"])
def test_a_row_learns_from_the_teachers_layers(pairs: Workspace, task: str) -> None:
    every = pairs / f"data/outputs/{task}/states"
    folder = every / "minilm/original"
    inputs = ShardSet.open(pairs / f"data/transfer/{task}/original")
    states = ShardSet.open(folder)
    assert states.to_table()["key"].equals(inputs.to_table()["key"])
    assert matrix(states.to_table()["states"]).shape == (inputs.manifest.rows, 1, 32)
    proof = json.loads((folder / "alignment.json").read_text())
    assert proof["rows_with_equal_key"] == proof["rows"] == inputs.manifest.rows
    # Only the transfer set that a row with the term reads, of the teacher that it names.
    assert [path.parent for path in every.rglob("manifest.json")] == [folder]
    assert pairs.plan("pkd", task).states.digest == states.manifest.digest
    assert pairs.plan("mkd_lstm", task).states is None


def test_retrieval_is_scored_against_labels_and_the_teachers_order(pairs: Workspace) -> None:
    layout = Layout(pairs / "data")
    scores = RetrievalScores.read(layout.retrieval("warm"))
    assert (scores.queries, scores.teacher, scores.at) == (10, "minilm", [1, 5])
    # Of the 60 first sentences some have an answer: both sentences of the pair praise.
    assert scores.left_out == 50 and scores.relevant >= 10
    assert set(scores.systems) == set(RETRIEVAL["systems"])
    # Of three systems four documents, of one eight: some are the same.
    assert 8 <= scores.teacher_pairs <= 16
    assert list(scores.systems["f"].judged["recall@5"].by_seed) == ["1"]
    assert list(scores.systems["mean"].judged["recall@5"].by_seed) == [""]
    for own in scores.systems.values():
        assert set(own.judged) == set(scores.measures)
        assert all(0.0 <= value.mean <= 1.0 for value in own.judged.values())
    first, read = (scores.systems[name].teacher for name in ("mean", "reread"))
    assert all(read[measure].mean >= first[measure].mean for measure in first)
    assert read["ndcg@5"].mean > first["ndcg@5"].mean
    report = (pairs / "data/report/results.md").read_text()
    assert "## Retrieval: warm\n\n| System | recall@1 | recall@5 | mrr@5 |" in report
    assert "## Retrieval: warm, against the order of teacher minilm" in report


def test_untuned_similarity_is_scored(pairs: Workspace) -> None:
    scores = SimilarityScores.read(Layout(pairs / "data").similarity("alike"))
    assert set(scores.systems) == {"minilm, cls", "minilm, mean"}
    # The test labels are hidden.
    assert scores.split == "dev" and set(scores.rows) == {"train", "dev"}
    assert all(0.3 < own["accuracy"] <= 1.0 for own in scores.systems.values())
    report = (pairs / "data/report/results.md").read_text()
    assert "## Untuned similarity: alike\n\n| System | f1 | accuracy |" in report


def test_a_row_learns_beside_its_teacher(pairs: Workspace) -> None:
    plan = pairs.plan("beside", "praise")
    assert plan.teacher.folder == "data/teachers/praise/minilm"
    assert plan.teacher_layers == [1, 2] and plan.states is None
    # What it learned its projections for is left behind.
    beside, pkd = (load_student(pairs / f"data/students/praise/{method}/1") for method in ("beside", "pkd"))
    assert {*beside.model.state_dict()} == {*pkd.model.state_dict()}
    assert beside.parameters(True) == pkd.parameters(True)


@pytest.mark.parametrize("task", ["praise", "warmth"])
def test_a_pretrained_model_reads_sentences_apart(pairs: Workspace, task: str) -> None:
    given = load_file(pairs / "data/raw/models/minilm/model.safetensors")
    students = pairs / "data/students" / task
    moved = {}
    for method in ("dse", *FROZEN[task]):
        own = load_file(students / method / "1/model.safetensors")
        own = {name.removeprefix("encoder.model."): weight for name, weight in own.items()}
        assert own.keys() & given.keys() >= {name for name in given if "pooler" not in name}
        moved[method] = {name for name in own if name in given and (own[name] != given[name]).any()}
    assert len(moved["dse"]) > 20
    scores = pairs.scores(task)
    for frozen in FROZEN[task]:
        # Every number of the model is as it was.
        assert moved[frozen] == set()
        dse, other = (scores.methods[name].scores["dev"][scores.metric].mean for name in ("dse", frozen))
        assert dse > other + 0.1
    encoder = load_encoder(students / "dse/1")
    vectors = encoder.encode(["The film is very good.", "", "dull"])
    assert vectors.shape == (3, 2 * 32) and encoder.width == 64
    (pairs / "sentences.txt").write_text("The film is very good.\n\ndull\n")
    asked = ("--vectors", "--file", "sentences.txt", "--out", "v.npy")
    pairs.distill("predict", str(students / "dse/1"), *asked).sound()
    np.testing.assert_array_equal(np.load(pairs / "v.npy"), vectors)


def test_pairs_are_routed_and_explained_and_scores_have_an_error(pairs: Workspace) -> None:
    warmth = pairs.scores("warmth").methods["bilstm_kd_ts"]
    assert warmth.routing is None and warmth.details.recall["dev"] == {}
    assert 0 < warmth.details.scores["dev"]["mean_absolute_error"].mean < 30.0
    report = (pairs / "data/report/results.md").read_text()
    assert "### warmth: mean error on dev" in report and "### warmth: routing" not in report
    assert "### praise: calibration on dev" in report and "### praise: routing" in report
    content = json.loads((pairs / "data/report/report.json").read_text())
    tasks = {one["task"]: one for one in content["tasks"]}
    assert tasks["warmth"]["routing"] is None
    for one in tasks["warmth"]["importance"]["examples"]:
        assert {len(own["changes"]) for own in one["models"].values()} == {sum(map(len, one["words"]))}
        assert float(one["label"]) >= 0 and all("score" in own for own in one["models"].values())
    assert len(tasks["warmth"]["reliability"]["bilstm_kd_ts"]["predicted"]) == 15
    explained = tasks["praise"]["importance"]["examples"]
    assert explained and {len(one["words"]) for one in explained} == {2}
    praise = pairs.scores("praise").methods["mkd_lstm"]
    assert praise.routing.curve[-1].routed == {"dev": 1.0, "test": 1.0}
    assert set(praise.routing.curve[-1].accuracy) == {"dev", "test"}


def test_a_refined_teacher_stands_beside_the_others(pairs: Workspace) -> None:
    encoders = set()
    for task, metric in (("praise", "f1"), ("warmth", "pearson")):
        scores = pairs.scores(task)
        assert list(scores.teachers) == ["minilm", "refined"]
        assert scores.teachers["refined"].scores["dev"][metric] > 0.5
        assert {own.teacher for own in scores.methods.values()} == {*TEACHERS}
        answers = ShardSet.open(pairs / f"data/outputs/{task}/refined/original")
        assert pairs.plan("kd_refined", task).outputs.digest == answers.manifest.digest
        folder = pairs / f"data/teachers/{task}/refined"
        encoders.add((folder / "encoder.safetensors").read_bytes())
    assert len(encoders) == 1


def test_each_row_learns_from_the_teacher_that_it_names(pairs: Workspace) -> None:
    answers = []
    for name in TEACHERS:
        outputs = ShardSet.open(pairs / f"data/outputs/praise/{name}/original")
        assert pairs.plan(f"kd_{name}", "praise").outputs.digest == outputs.manifest.digest
        proof = json.loads(outputs.folder.joinpath("alignment.json").read_text())
        assert proof["rows_with_equal_key"] == proof["rows"] == outputs.manifest.rows
        answers.append(outputs.to_table())
    assert answers[0]["key"].equals(answers[1]["key"])
    assert (matrix(answers[0]["logits"]) != matrix(answers[1]["logits"])).any()
    weights = [load_file(pairs / f"data/students/praise/kd_{name}/1/model.safetensors") for name in TEACHERS]
    assert any((weights[0][name] != weights[1][name]).any() for name in weights[0])


def test_every_stage_has_what_dvc_yaml_names(pairs: Workspace) -> None:
    stages = pairs.graph()
    assert {"refine_teacher@refined", "retrieve@warm", "similarity@alike", "report"} <= {s.name for s in stages}
    assert [str(path) for stage in stages for path in stage.deps + stage.outs if not path.exists] == []
    pairs.distill("verify").sound()
    # The first stage, which always runs, moves nothing.
    assert pairs.moved(lambda values: None) == set()
