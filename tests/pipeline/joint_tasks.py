"""A second task, of pairs, beside the reviews; encoders and joint trainings, and rows that start from them."""

from typing import Any

from .pair_tasks import STUDENTS
from .workspace import TASK

WARMTH = "warmth"
SENTENCES, SHARD = 200, 100
"""Of Wikipedia, and how many are in a shard."""
TINY = {
    **{"architecture": "bert", "model": "minilm", "depth": 1, "width": 16, "heads": 2},
    **{"feedforward": 32, "pool": "last", "classifier": None, "dropout": 0.0, "max_words": 32},
}
STARTS = {"pieces": "random", "layers": "model"}
"""Students that read word pieces, and where their joint trainings start."""


def edit_params(values: Any) -> None:
    source = {split: f"pairs-{split}.csv" for split in ("train", "dev", "test")}
    values["tasks"][WARMTH] = dict(values["tasks"][TASK]) | {
        "source": {"kind": "files", "files": source, "format": "csv", "columns": None},
        **{"text": ["first", "second"], "kind": "regression", "label": "score", "blocks": 1},
        **{"labels": {"min": 0.0, "max": 100.0}, "metrics": ["pearson"]},
    }
    values["wikipedia"] = {
        "source": {"kind": "files", "files": ["wiki.xml.bz2"], "form": "dump"},
        "splitter": {"engine": "sentencizer", "model": None},
        "sentences": SENTENCES,
        "validation": {"share": 0.3, "sentences": 60},
        "shard_rows": SHARD,
    }
    short = dict(values["optimisers"]["short"])
    small = short | {"epochs": 4, "evaluate_every": None, "learning_rates": [1.0e-2]}
    values["optimisers"] = {
        "short": short,
        "pretraining": small,
        "joint": small | {"learning_rates": [2.0e-2]},
        "tuning": small | {"learning_rates": [1.0e-5, 1.0e-3]},
        "one_epoch": small | {"epochs": 1},
        "pairs": small | {"learning_rates": [1.0e-4, 2.0e-2], "epochs": 6},
        "layers": small | {"epochs": 3},
        "after_layers": small | {"learning_rates": [1.0e-4, 1.0e-2]},
    }
    _add_starts(values)
    row = {"data": "original", "iterations": None, "tasks": [TASK], "baseline": "bilstm"}
    answers, alone = {"objective": {"logits": 1.0}}, {"baseline": None}
    of_encoder = row | {"student": "bilstm_sra", "start": "sra", "optimiser": "pairs"}
    of_group = row | {"student": "bilstm", "start": "mtl"} | answers
    bilstm = dict(values["methods"]["bilstm"])
    values["methods"] = {
        "bilstm": bilstm,
        "bilstm_sra": of_encoder | {"objective": {"labels": 1.0}},
        "bilstm_sra_kd": of_encoder | answers | {"optimiser": "layers"},
        "tiny_layers": of_encoder | beside_teacher() | {"start": "general", "optimiser": "layers"} | alone,
        "tiny": of_encoder | {"student": "tiny", "start": "tiny_layers", "optimiser": "after_layers"} | answers,
        "tuned": of_group | {"optimiser": "tuning", "tasks": None},
        "taken": of_group | {"optimiser": None, "tasks": None},
        "elsewhere": bilstm | {"start": "alone", "tasks": [WARMTH]},
    }
    for name in STARTS:
        own = of_group | alone | {"student": name, "start": name}
        values["methods"][f"{name}_tuned"] = own | {"optimiser": "one_epoch"}
        values["methods"][f"{name}_taken"] = own | {"optimiser": None, "tasks": None}


def beside_teacher() -> dict[str, Any]:
    layers = {"embeddings": 1.0, "hidden": 1.0, "attentions": 1.0}
    return {"student": "tiny", "objective": layers, "teacher_runs": {"layers": [2]}}


def _add_starts(values: Any) -> None:
    values["students"]["bilstm_sra"] |= {"hidden": 8, "width": 32, "classifier": 8}
    values["students"] |= {"pieces": STUDENTS["biattentive"], "layers": STUDENTS["layers"], "tiny": TINY}
    sra = {"student": "bilstm_sra", "wikipedia": None, "min_count": 1, "tasks": {TASK: "original"}, "centre": True}
    pretraining = {"optimiser": "pretraining"}
    values["encoders"] = {"sra": sra | pretraining, "general": beside_teacher() | {"wikipedia": 100} | pretraining}
    mtl = {"student": "bilstm", "start": "vectors", "optimiser": "joint"}
    mtl["tasks"] = {TASK: "original", WARMTH: "original"}
    values["joint"] = {"mtl": mtl, "alone": mtl | {"tasks": {TASK: "original"}}}
    values["joint"] |= {
        name: mtl | {"student": name, "start": start, "optimiser": "one_epoch"} for name, start in STARTS.items()
    }
