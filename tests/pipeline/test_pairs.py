"""Two tasks about sentence pairs, one of classes and one of scores, through every stage."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import computed_on
from pipeline_lib.models.serving import Router, open_teacher, student_in_use
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.student import load_student
from pipeline_lib.models.word_importance import word_importance
from pipeline_lib.results.diagrams import read_predictions
from pipeline_lib.results.schema import RetrievalScores, SimilarityScores
from pipeline_lib.shards.columns import matrix, texts
from pipeline_lib.shards.shard_sets import ShardSet, read_shard

from .pair_tasks import JOINTLY, MORE, RETRIEVAL, TEACHERS
from .workspace import Workspace


def test_iterations_change_the_first_the_second_and_both(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    table = ShardSet.open(workspace / "data/transfer/praise/full").to_table()
    rows = table.to_pylist()
    originals = {row["key"]: row for row in rows if row["iteration"] == 0}
    changed = {
        iteration: {
            side
            for row in rows
            if row["iteration"] == iteration
            for side in ("words", "words_2")
            if row[side] != originals[row["example"]][side]
        }
        for iteration in (1, 2, 3)
    }
    assert changed == {1: {"words"}, 2: {"words_2"}, 3: {"words", "words_2"}}


def test_the_teacher_answers_every_pair(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    for task, width in (("praise", 2), ("warmth", 1)):
        outputs = ShardSet.open(workspace / f"data/outputs/{task}/minilm/full")
        inputs = ShardSet.open(workspace / f"data/transfer/{task}/full")
        assert outputs.to_table()["key"].equals(inputs.to_table()["key"])
        assert matrix(outputs.to_table()["logits"]).shape == (inputs.manifest.rows, width)
        proof = json.loads((workspace / f"data/outputs/{task}/minilm/full/alignment.json").read_text())
        assert proof["rows_with_equal_key"] == proof["rows"]
        # Rows that slipped would agree by chance: half the classes, or no correlation.
        own = proof["teachers_own_agreement"]
        assert abs(proof["agreement_with_labels"] - own) < 0.03
        assert own > (0.7 if width == 2 else 0.4)


def test_scores_name_every_metric_and_hide_the_test(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    metrics = json.loads((workspace / "metrics.json").read_text())
    scored = {"praise": ["dev"], "warmth": ["dev", "dev_more"]}
    for task, names in (("praise", {"f1", "accuracy"}), ("warmth", {"pearson", "spearman"})):
        assert list(metrics[task]["teachers"]["minilm"]) == scored[task]
        found = metrics[task]["methods"]["bilstm_kd_ts"]["dev"]
        assert names <= set(found)
        scores = workspace.scores(task)
        assert "test" in scores.rows and scores.scored_splits == scored[task]
    assert metrics["warmth"]["methods"]["bilstm"]["dev"]["pearson"]["mean"] > 0.2


def test_a_further_split_is_scored_by_every_system(finished_pairs: Workspace) -> None:
    scores = finished_pairs.scores("warmth")
    rows = read_predictions(Layout(finished_pairs / "data"), "warmth", "dev_more")
    assert scores.rows["dev_more"] == rows.num_rows == MORE
    labels = rows["label"].to_numpy()
    assert labels[-1] == 4.5 and scores.decisive_split == "dev"
    outputs = {name: matrix(rows[name])[:, 0] for name in rows.column_names[3:]}
    correlations = {name: np.corrcoef(labels, one)[0, 1] for name, one in outputs.items()}
    for name, teacher in scores.teachers.items():
        found = teacher.scores["dev_more"]["pearson"]
        assert found == pytest.approx(correlations[name], abs=1e-5)
    for name, method in scores.methods.items():
        found = method.scores["dev_more"]["pearson"].mean
        assert found == pytest.approx(correlations[f"{name}-1"], abs=1e-5)
    gain = scores.methods["bilstm_kd_ts"].gain["dev_more"].difference
    expected = correlations["bilstm_kd_ts-1"] - correlations["bilstm-1"]
    assert gain == pytest.approx(expected, abs=1e-5)
    report = (finished_pairs / "data/report/results.md").read_text()
    assert "### warmth: pearson on dev_more" in report
    assert "### warmth: mean error on dev_more" in report
    shown = finished_pairs.distill("results").sound().text
    assert "warmth: pearson on dev_more" in shown and "praise: f1 on" not in shown


def test_pairs_with_an_empty_sentence_are_left_out_or_answered(finished_pairs: Workspace, tmp_path: Path) -> None:
    layout = Layout(finished_pairs / "data")
    sets = {name: ShardSet.open(layout.split("praise", name)) for name in ("train", "dev", "test")}
    rows = {name: one.manifest.rows for name, one in sets.items()}
    assert rows == {"train": 240, "dev": 61, "test": 61}
    dropped = sets["train"].manifest.counts["dropped"]
    assert (dropped["train"]["rows"], dropped["train"]["empty_text"]) == (242, 2)
    kept = [dropped[name].get("kept_empty_text") for name in ("train", "dev", "test")]
    assert kept == [None, [61], [61]]
    # Every system answers them.
    predictions = read_predictions(layout, "praise", "test")
    systems = predictions.column_names[3:]
    assert {"minilm", "bilstm-1", "mkd_lstm-1", "dse-1"} <= {*systems}
    for system in systems:
        outputs = matrix(predictions[system])
        assert outputs.shape == (61, 2) and np.isfinite(outputs).all()
    workspace = finished_pairs.copy(tmp_path / "workspace")
    workspace.distill("shards", "show", "data/tasks/praise/dev", "--rows", "60").sound()
    *_, warning, line = workspace.stage("prepare", "--task", "praise").sound().text.splitlines()
    assert warning == (
        "warning: praise: an empty text in dev, row 61; test, row 61. These rows are kept and answered like any other."
    )
    assert line.startswith("praise: train 240, dev 61, test 61 rows; left out: 2 with empty text;")


def test_every_stage_takes_the_f1_of_the_class_that_params_name(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    scores = workspace.scores("praise")
    assert (scores.f1_label, scores.metric) == ("no", "f1")
    report = (workspace / "data/report/results.md").read_text()
    assert "f1 / accuracy in percent (f1 of class no)" in report
    for name, own in scores.methods.items():
        found = own.scores["dev"]["f1"].by_seed["1"]
        record = workspace / f"data/students/praise/{name}/1/training.json"
        assert json.loads(record.read_text())["best_dev"] == pytest.approx(found, abs=1e-6)
    teacher = json.loads((workspace / "data/teachers/praise/minilm/training.json").read_text())
    assert teacher["best_dev"] == pytest.approx(scores.teachers["minilm"].scores["dev"]["f1"], abs=0.02)


@pytest.mark.parametrize("task", ["praise", "warmth"])
def test_students_that_read_word_pieces_are_scored_as_saved(finished_pairs: Workspace, task: str) -> None:
    workspace = finished_pairs
    table = read_shard(workspace / f"data/results/{task}/predictions.arrow").to_pydict()
    scores = workspace.scores(task)
    for split in ("dev", "test"):
        rows = [number for number, name in enumerate(table["split"]) if name == split]
        pairs = texts(ShardSet.open(workspace / f"data/tasks/{task}/{split}").to_table())
        for method in (*JOINTLY, "dse", "dse_frozen"):
            student = load_student(workspace / f"data/students/{task}/{method}/1")
            found = [table[f"{method}-1"][row] for row in rows]
            np.testing.assert_array_equal(student.logits(pairs), np.array(found, np.float32))
    for method in (*JOINTLY, "dse"):
        own = scores.methods[method]
        better = own.scores["dev"][scores.metric].mean
        assert better > (0.7 if task == "praise" else 0.4)
        assert own.parameters.with_embeddings > own.parameters.without_embeddings
    assert workspace.plan("bilstm", task).model is None
    assert workspace.plan("mkd_lstm", task).model.folder == "data/raw/models/minilm"


@pytest.mark.parametrize("task", ["praise", "warmth"])
def test_a_row_learns_from_the_teachers_layers(finished_pairs: Workspace, task: str) -> None:
    workspace = finished_pairs
    every = workspace / f"data/outputs/{task}/states"
    folder = every / "minilm/original"
    inputs = ShardSet.open(workspace / f"data/transfer/{task}/original")
    states = ShardSet.open(folder)
    assert states.to_table()["key"].equals(inputs.to_table()["key"])
    assert matrix(states.to_table()["states"]).shape == (inputs.manifest.rows, 1, 32)
    proof = json.loads((folder / "alignment.json").read_text())
    assert proof["rows_with_equal_key"] == proof["rows"] == inputs.manifest.rows
    # Only the transfer set that a row with the term reads, of the teacher that it names.
    assert [path.parent for path in every.rglob("manifest.json")] == [folder]
    assert workspace.plan("pkd", task).states.digest == states.manifest.digest
    assert workspace.plan("mkd_transformer", task).states is None


def test_retrieval_is_scored_against_labels_and_the_teachers_order(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    layout = Layout(workspace / "data")
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
    report = (workspace / "data/report/results.md").read_text()
    assert "## Retrieval: warm\n\n| System | recall@1 | recall@5 | mrr@5 |" in report
    assert "## Retrieval: warm, against the order of teacher minilm" in report


def test_untuned_similarity_is_scored(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    scores = SimilarityScores.read(Layout(workspace / "data").similarity("alike"))
    assert set(scores.systems) == {"minilm, cls", "minilm, mean"}
    # The test labels are hidden.
    assert scores.split == "dev" and set(scores.rows) == {"train", "dev"}
    assert all(0.3 < own["accuracy"] <= 1.0 for own in scores.systems.values())
    report = (workspace / "data/report/results.md").read_text()
    assert "## Untuned similarity: alike\n\n| System | f1 | accuracy |" in report


def test_a_row_learns_beside_its_teacher(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    plan = workspace.plan("beside", "praise")
    assert plan.teacher.folder == "data/teachers/praise/minilm"
    assert plan.teacher_layers == [1, 2] and plan.states is None
    # What it learned its projections for is left behind.
    beside, pkd = (load_student(workspace / f"data/students/praise/{method}/1") for method in ("beside", "pkd"))
    assert {*beside.model.state_dict()} == {*pkd.model.state_dict()}
    assert beside.parameters(True) == pkd.parameters(True)


@pytest.mark.parametrize("task", ["praise", "warmth"])
def test_a_pretrained_model_reads_sentences_apart(finished_pairs: Workspace, task: str) -> None:
    workspace = finished_pairs
    given = load_file(workspace / "data/raw/models/minilm/model.safetensors")
    students = workspace / "data/students" / task
    moved = {}
    for method in ("dse", "dse_frozen"):
        own = load_file(students / method / "1/model.safetensors")
        own = {name.removeprefix("encoder.model."): weight for name, weight in own.items()}
        assert own.keys() & given.keys() >= {name for name in given if "pooler" not in name}
        moved[method] = {name for name in own if name in given and (own[name] != given[name]).any()}
    # Frozen, every number of the model is as it was.
    assert moved["dse_frozen"] == set() and len(moved["dse"]) > 20
    scores = workspace.scores(task)
    dse, frozen = (scores.methods[name].scores["dev"] for name in ("dse", "dse_frozen"))
    assert dse[scores.metric].mean > frozen[scores.metric].mean + 0.1
    encoder = load_encoder(students / "dse/1")
    vectors = encoder.encode(["The film is very good.", "", "dull"])
    assert vectors.shape == (3, 2 * 32) and encoder.width == 64
    (workspace / "sentences.txt").write_text("The film is very good.\n\ndull\n")
    asked = ("--vectors", "--file", "sentences.txt", "--out", "v.npy")
    workspace.distill("predict", str(students / "dse/1"), *asked).sound()
    np.testing.assert_array_equal(np.load(workspace / "v.npy"), vectors)


def test_results_say_which_processor_computed_them(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    outputs = ShardSet.open(workspace / "data/outputs/praise/minilm/full").manifest
    inputs = ShardSet.open(workspace / "data/transfer/praise/full").manifest
    assert {shard.computed_on for shard in outputs.shards} == {computed_on("cpu")}
    assert {shard.computed_on for shard in inputs.shards} == {None}
    for folder in ("students/praise/bilstm/1", "teachers/praise/minilm"):
        record = json.loads((workspace / "data" / folder / "training.json").read_text())
        assert record["computed_on"] == computed_on("cpu")


def test_looking_predicting_and_verifying(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    shown = workspace.distill("shards", "show", "data/transfer/warmth/full", "--rows", "3")
    assert "teacher: " in shown.sound().text and "no scores" not in shown.text
    workspace.distill("verify").sound()
    pair = "The film is very good.\tThe plot is very good."
    answer = workspace.distill("predict", "data/students/praise/bilstm_kd_ts/1", pair).sound().text
    assert answer.split("\t")[0] in ("no", "yes") and answer.endswith(f"{pair}\n")
    score = workspace.distill("predict", "data/students/warmth/bilstm/1", pair).sound().text
    assert -5.0 < float(score.split("\t")[0]) < 10.0
    answer = workspace.distill("predict", "data/students/praise/dse/1", pair).sound().text
    assert answer.split("\t")[0] in ("no", "yes")
    refused = workspace.distill("predict", "data/students/praise/bilstm/1", "only one sentence")
    assert "separated by a tab" in refused.error


def test_pairs_are_routed_and_explained_and_scores_have_an_error(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    warmth = workspace.scores("warmth").methods["bilstm_kd_ts"]
    assert warmth.routing is None and warmth.details.recall["dev"] == {}
    assert 0 < warmth.details.scores["dev"]["mean_absolute_error"].mean < 5.0
    report = (workspace / "data/report/results.md").read_text()
    assert "### warmth: mean error on dev" in report and "### warmth: routing" not in report
    assert "### praise: calibration on dev" in report and "### praise: routing" in report
    content = json.loads((workspace / "data/report/report.json").read_text())
    tasks = {one["task"]: one for one in content["tasks"]}
    assert tasks["warmth"]["routing"] is None
    for one in tasks["warmth"]["importance"]["examples"]:
        assert {len(own["changes"]) for own in one["models"].values()} == {sum(map(len, one["words"]))}
        assert float(one["label"]) >= 0 and all("score" in own for own in one["models"].values())
    assert len(tasks["warmth"]["reliability"]["bilstm_kd_ts"]["predicted"]) == 15
    explained = tasks["praise"]["importance"]["examples"]
    assert explained and {len(one["words"]) for one in explained} == {2}
    praise = workspace.scores("praise").methods["mkd_lstm"]
    assert praise.routing.curve[-1].routed == {"dev": 1.0, "test": 1.0}
    assert set(praise.routing.curve[-1].accuracy) == {"dev", "test"}
    folder = workspace / "data/students/praise/mkd_lstm/1"
    student = load_student(folder)
    teacher = workspace / "data/teachers/praise/minilm"
    opened, behind = open_teacher(teacher, student.label_names, 32)
    predict, mask = student_in_use(folder, student)
    assert mask == opened.pieces.mask_sign == "[MASK]"
    pair = ("The film is good.", "The plot is not.")
    logits, routed = Router(predict, behind, 1.0).predict([pair])
    assert routed.all()
    np.testing.assert_array_equal(logits, behind([pair]))
    for own in (predict, behind):
        assert word_importance(pair, own, mask, False).masked.shape == (10, 2)


def test_a_score_out_of_range_is_one_clear_error(finished_pairs: Workspace, tmp_path: Path) -> None:
    workspace = finished_pairs.copy(tmp_path / "workspace")
    path = workspace / "data/input/pairs-train.csv"
    lines = path.read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ",7.5"
    path.write_text("\n".join(lines) + "\n")
    workspace.stage("fetch_data", "--task", "warmth").sound()
    error = workspace.stage("prepare", "--task", "warmth").error
    assert "train.csv: row 4, column 'score': '7.5' is not a label" in error
    assert "numbers from 0 to 5" in error


def test_a_refined_teacher_stands_beside_the_others(finished_pairs: Workspace) -> None:
    workspace = finished_pairs
    encoders = set()
    for task, metric in (("praise", "f1"), ("warmth", "pearson")):
        scores = workspace.scores(task)
        assert list(scores.teachers) == ["minilm", "refined"]
        assert scores.teachers["refined"].scores["dev"][metric] > 0.5
        assert {own.teacher for own in scores.methods.values()} == {*TEACHERS}
        folder = workspace / f"data/teachers/{task}/refined"
        encoders.add((folder / "encoder.safetensors").read_bytes())
    assert len(encoders) == 1


@pytest.mark.parametrize("task", ["praise", "warmth"])
def test_each_row_learns_from_the_teacher_that_it_names(finished_pairs: Workspace, task: str) -> None:
    workspace = finished_pairs
    answers, digests = [], set()
    for name in TEACHERS:
        outputs = ShardSet.open(workspace / f"data/outputs/{task}/{name}/original")
        plan = workspace.plan(f"kd_{name}", task)
        assert plan.outputs.digest == outputs.manifest.digest
        digests.add(outputs.manifest.digest)
        proof = json.loads(outputs.folder.joinpath("alignment.json").read_text())
        assert proof["rows_with_equal_key"] == proof["rows"] == outputs.manifest.rows
        answers.append(outputs.to_table())
    assert len(digests) == 2 and answers[0]["key"].equals(answers[1]["key"])
    assert (matrix(answers[0]["logits"]) != matrix(answers[1]["logits"])).any()
    weights = [load_file(workspace / f"data/students/{task}/kd_{name}/1/model.safetensors") for name in TEACHERS]
    assert any((weights[0][name] != weights[1][name]).any() for name in weights[0])


def test_dvc_knows_every_output(finished_pairs: Workspace, tmp_path: Path) -> None:
    workspace = finished_pairs.copy(tmp_path / "workspace")
    # It fails if dvc.yaml names an output that the stage has not written.
    workspace.dvc("commit", "--force").sound()
    stages = {name.partition("@")[0] for name in workspace.lock()}
    assert {"refine_teacher", "retrieve", "similarity", "report"} <= stages
    assert workspace.dvc("repro").sound().stages == ["fingerprint"]
