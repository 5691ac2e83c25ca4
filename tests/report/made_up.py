"""A small project to make a report of, with hostile text wherever text may stand."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.files import write_json
from pipeline_lib.base.flow import read_flow
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.work_lists import work_lists
from pipeline_lib.params import Params
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.content import page_content
from pipeline_lib.results.provenance import provenance
from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.shard_sets import write_shard
from pipeline_lib.sources.run_sources import source_rows
from tests.inspection.made_up import TASK, TEACHER, made_up_transfer, odds, params, write_set
from tests.kit.made_up import made_up_method, made_up_scores, made_up_speed, made_up_training

HOSTILE = "</script><!--<img src=http://evil.example/x onerror=alert(1)>\"'`&lt;"
LABELS = ["bad\"'><b onclick=alert(2)>", "good"]
METHODS = ("bilstm", "bilstm_kd_ts")
PIPELINE = """
stages:
  prepare: {cmd: p, outs: ["data/tasks/${item.task}"]}
  train: {cmd: t, deps: ["data/tasks/${item.task}"], outs: ["data/students/${item.task}"]}
  evaluate: {cmd: e, deps: [data/tasks, data/students/x], outs: [data/results]}
"""


def made_up_content(folder: Path, **changes: Any) -> dict[str, Any]:
    layout, settings = Layout(folder / "data"), made_up_params()
    made_up_transfer(layout)
    texts = [HOSTILE, "a quiet triumph", "so dull", "not bad at all"]
    for split in ("dev", "test"):
        _write_split(layout, split, texts)
    _write_answers(layout, len(texts))
    gain = {"difference": 0.02, "low": 0.004, "high": 0.033, "p": 0.006, "p_holm": 0.012}
    made = {"bilstm": made_up_method(0.88), "bilstm_kd_ts": made_up_method(0.9, gain)}
    scores = made_up_scores(made).model_copy(update={"labels": LABELS} | changes)
    scores.write(layout.scores(TASK))
    for method in METHODS:
        for seed in settings.seeds:
            _write_training(layout.student(TASK, method, seed), seed)
    write_json(layout.importance(TASK), _importance())
    record = {"command": "x", "started": "2026-01-02T03:04:05+00:00", "seconds": 75.0}
    counts = {
        "shards": {"computed": 3, "reused": 9},
        "rows": {"computed": 1500, "reused": 4500},
        "tokens": {"computed": 45_000, "reused": 0},
    }
    record |= {"peak_bytes": 2**31, "accelerators": ["Card A"], "counts": counts}
    write_json(layout.stage_record(f"train@{TASK}"), record)
    (folder / "dvc.yaml").write_text(PIPELINE)
    result = TaskResult(TASK, scores, made_up_speed())
    lists = {TASK: [*map(asdict, work_lists(layout, settings, TASK, 30))]}
    content = page_content(settings, layout, [result], [], lists)
    flow = read_flow(folder / "dvc.yaml", layout)
    return content | {"provenance": provenance(settings, layout, flow, source_rows(settings, layout))}


def made_up_params() -> Params:
    shipped = params()
    task = shipped.tasks[TASK].model_copy(update={"labels": {LABELS[0]: ["0"], LABELS[1]: ["1"]}})
    methods = {name: shipped.methods[name] for name in METHODS}
    own = {"tasks": {TASK: task}, "methods": methods, "seeds": [1, 2]}
    return shipped.model_copy(update=own | {"encoders": {}, "joint": {}})


def _write_split(layout: Layout, split: str, texts: list[str]) -> None:
    keys = pa.array(range(len(texts)), pa.uint64())
    labels = pa.array([0, 1, 0, 1], pa.int32())
    table = pa.table({"key": keys, "label": labels, "text": texts})
    outputs = layout.heldout_outputs(TASK, TEACHER, split)
    shares = [0.9, 0.95, 0.2, 0.4]
    write_set(layout.split(TASK, split), {"b000": table}, outputs, [odds(own) for own in shares])
    proof = {"rows": len(texts), "rows_with_equal_key": len(texts), "flipped_argmax": 0}
    write_json(outputs / "alignment.json", proof)


def _write_answers(layout: Layout, rows: int) -> None:
    logits = list_column(np.array([odds(own) for own in (0.8, 0.9, 0.6, 0.3)] * 2, np.float32))
    columns = {f"{method}-{seed}": logits for method in METHODS for seed in (1, 2)}
    told = {
        "split": ["dev"] * rows + ["test"] * rows,
        "row": [*range(rows)] * 2,
        "label": pa.array([0, 1, 0, 1] * 2, pa.int32()),
    }
    write_shard(layout.predictions(TASK), pa.table(told | {TEACHER: logits} | columns))


def _write_training(folder: Path, seed: int) -> None:
    history = [
        {"step": step, "epoch": step / 10, "loss": 1 / step, "dev": score}
        # A correlation of constants is no number.
        for step, score in ((10, float("nan")), (20, 0.8 + seed / 100), (30, 0.79))
    ]
    write_json(folder / "training.json", made_up_training(history=history))


def _importance() -> dict[str, Any]:
    def model(changes: list[float], label: str) -> dict[str, Any]:
        shares = dict(zip(LABELS, (0.3, 0.7), strict=True))
        own = {"label": label, "probabilities": shares, "entropy": 0.5, "changes": changes}
        return own | {"masked_labels": [LABELS[0]] * len(changes)}

    example = {
        "row": 1,
        "label": LABELS[1],
        "distillation": "helped",
        "text": [HOSTILE],
        "words": [["a", HOSTILE]],
        "models": {
            "bilstm": model([0.1, -0.2], LABELS[0]),
            "bilstm_kd_ts": model([0.0, 0.8], LABELS[1]),
            f"teacher {TEACHER}": model([0.0, 0.4], LABELS[1]),
        },
    }
    names = {"method": "bilstm_kd_ts", "baseline": "bilstm", "teacher": TEACHER}
    return names | {"seed": 1, "split": "test", "examples": [example]}
