"""A student of a file of probabilities alone: nothing is labelled, and no teacher is run.

Beside the examples stand unlabelled texts with a word of their own.
"""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline_lib.base.kinds.probabilities import softmax
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.shards.columns import matrix, texts
from pipeline_lib.shards.shard_sets import ShardSet, read_shard
from tests.kit.causal import write_causal

from .corpus import sentences
from .workspace import OUTPUTS, TASK, TEACHER, TRANSFER, Workspace

ROW = "bilstm_kd_ts"
STAGES = ("fetch_data", "prepare", "augment", "fetch_models", "finetune_teacher")
STAGES += ("precompute", "train", "evaluate", "measure_speed", "report")
MORE = 3
LEFT_OUT = 7
"""Rows of the file that the teacher did not answer."""


def write_file(workspace: Workspace) -> None:
    """Write what the teacher answered in the first run, as an API would have."""
    heldout = workspace / f"data/outputs/{TASK}/heldout/{TEACHER}"
    pairs = [(TRANSFER, workspace / OUTPUTS)]
    pairs += [(f"data/tasks/{TASK}/{split}", heldout / split) for split in ("dev", "test")]
    texts, probs = [], []
    for inputs, outputs in pairs:
        texts += ShardSet.open(workspace / inputs).to_table()["text"].to_pylist()
        found = softmax(matrix(ShardSet.open(outputs).to_table()["logits"]))
        probs += found[:, ::-1].round(4).tolist()
    for label, text in sentences()["train"][:MORE]:
        texts.append(f"{text} anew")
        probs.append([0.9, 0.1] if label else [0.1, 0.9])
    (workspace / "data/input/more.tsv").write_text("\n".join(["sentence", *texts[-MORE:]]) + "\n")
    # A text of two blocks was answered twice, in the same way.
    error = [None] * len(texts)
    for row in range(LEFT_OUT):
        probs[row], error[row] = None, "refused"
    table = pa.table({"text": texts, "probs": probs, "error": error})
    said = {"classes": json.dumps(["positive", "negative"]), "provenance": '{"model": "elsewhere"}'}
    path = workspace / "data/input/answers.parquet"
    pq.write_table(table.replace_schema_metadata(said), path)


def edit(values: Any) -> None:
    task = values["tasks"][TASK]
    task |= {"label": None, "labels": {"negative": [], "positive": []}}
    task["source"]["files"]["unlabelled"] = "more.tsv"
    values["transfer"]["full"]["unlabelled"] = True
    own = {"kind": "answers", "files": ["answers.parquet"], "classes": None}
    own |= {"mask": "[MASK]"}
    row = {"model": None, "max_length": None, "tasks": None, "data": None}
    values["teachers"] = {"llm": row | {"tuning": own | {"provenance": {"terms": "free"}}}}
    values["methods"] = {ROW: values["methods"][ROW] | {"baseline": None}}
    values["seeds"] = [1]


def unlabel(workspace: Workspace) -> None:
    for split, rows in sentences().items():
        lines = ["sentence", *(text for _, text in rows)]
        (workspace / f"data/input/{split}.tsv").write_text("\n".join(lines) + "\n")


def test_a_language_model_is_asked(workspace: Workspace) -> None:
    def ask(values: Any) -> None:
        values["tasks"][TASK] |= {"label": None, "labels": {"negative": [], "positive": []}}
        values["models"]["lm"] = {"kind": "path", "path": "lm"}
        row = {"model": "lm", "max_length": 64, "tuning": {"kind": "scored", "prompt": "asked.txt"}}
        values["teachers"] = {"lm": row}
        values["methods"] = {ROW: values["methods"][ROW] | {"baseline": None}}
        values["seeds"] = [1]

    write_causal(workspace / "data/input/lm", "gpt2")
    (workspace / "data/input/asked.txt").write_text("One of {labels}.\n\nText: {text}\nAnswer:\n")
    unlabel(workspace)
    workspace.params(ask)
    workspace.distill("check").sound()
    printed = {name: workspace.stage(name).sound().text for name in STAGES}
    assert "no score on dev" in printed["finetune_teacher"] and "rows recomputed" in printed["precompute"]
    teacher = load_teacher(workspace / f"data/teachers/{TASK}/lm", "cpu", "float32")
    assert teacher.prompt.begin == "One of negative, positive.\n\n"
    dev = ShardSet.open(workspace / f"data/tasks/{TASK}/dev").to_table()
    stored = ShardSet.open(workspace / f"data/outputs/{TASK}/heldout/lm/dev").to_table()["logits"]
    np.testing.assert_allclose(matrix(stored), teacher.predict(texts(dev), 64, 4096), atol=1e-3)
    method = workspace.scores(TASK).methods[ROW]
    assert method.agreement["test"] > 0.5 and len(method.routing.stretches["1"]) == 10
    assert "language model" in (workspace / f"data/speed/{TASK}.json").read_text()
    shown = workspace.distill("teacher", "check").sound().text
    assert shown.startswith("One of negative, positive.\n\nText: ") and shown.count("\tthe ") <= 10 < shown.count("\n")
    routed = workspace.distill("predict", f"data/students/{TASK}/{ROW}/1", "good", "--route", "0.99").sound().text
    assert "answered alone at 99.0%" in routed


def test_labels_are_nowhere(workspace: Workspace) -> None:
    write_file(workspace)
    unlabel(workspace)
    workspace.params(edit)
    workspace.distill("check").sound()
    printed = {name: workspace.stage(name).sound().text for name in STAGES}
    assert f"unlabelled {MORE} rows" in printed["prepare"]
    transfer = ShardSet.open(workspace / TRANSFER)
    added = [shard.name for shard in transfer.manifest.shards if shard.name.startswith("u")]
    assert [name for name in added if "i000" in name] == [f"u{n:03d}-i000.arrow" for n in range(3)]
    originals = ShardSet.open(workspace / TRANSFER.with_name("original")).manifest
    assert not any(shard.name.startswith("u") for shard in originals.shards)
    vocabulary = workspace / f"data/vocabularies/{TASK}/tokenizer.json"
    assert "anew" in json.loads(vocabulary.read_text())["model"]["vocab"]
    assert f"{LEFT_OUT} errors" in printed["finetune_teacher"]
    assert "no score on dev" in printed["finetune_teacher"]
    outputs = workspace / f"data/outputs/{TASK}/llm/full"
    listed = (outputs / "unanswered.jsonl").read_text().splitlines()
    assert f"{len(listed)} without an answer" in printed["precompute"]
    assert len(listed) >= LEFT_OUT and json.loads(listed[0])["text"]
    assert f"{len(listed)} have no answer from the teacher" in printed["train"]
    made_from = ShardSet.open(outputs).manifest.made_from
    assert made_from["provenance"] == {"model": "elsewhere", "terms": "free"}
    workspace.distill("verify", "data").sound()
    scores = workspace.scores(TASK)
    assert scores.scored_splits == [] and scores.teachers["llm"].unanswered == {}
    assert scores.methods[ROW].agreement["test"] > 0.8
    table = read_shard(workspace / f"data/results/{TASK}/predictions.arrow")
    answers = matrix(table.filter(pc.equal(table["split"], "test"))[f"{ROW}-1"]).argmax(1)
    assert np.mean(answers == [label for label, _ in sentences()["test"]]) > 0.8
    assert "agreement with the teacher is not a score" in workspace.distill("results").sound().text
    # What is damaged is refused before anything is made of it.
    path = workspace / "data/raw/checkpoints/llm" / TASK / "000-answers.parquet"
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])
    assert "000-answers.parquet: not a readable Parquet file" in (workspace.stage("finetune_teacher").error)
