"""A second task, of pairs, beside the reviews; encoders and joint trainings, and rows that start from them."""

from pathlib import Path
from typing import Any

from .corpus import sentences
from .workspace import TASK

WARMTH = "warmth"
SENTENCES, SHARD = 200, 100
"""Of Wikipedia, and how many are in a shard."""
PIECES = {
    **{"architecture": "biattentive", "tokens": "pieces", "model": "minilm", "embedding_size": 8},
    **{"feedforward": 8, "hidden": 6, "pools": ["max", "mean", "self"], "shared": 8},
    **{"classifier": 8, "dropout": 0.0, "max_words": 16},
}
LAYERS = {
    **{"architecture": "transformer", "model": "minilm", "layers": [0], "pool": "mean"},
    **{"classifier": 8, "dropout": None, "max_words": 32},
}
TINY = {
    **{"architecture": "bert", "model": "minilm", "depth": 1, "width": 16, "heads": 2},
    **{"feedforward": 32, "pool": "last", "classifier": None, "dropout": 0.0, "max_words": 32},
}
STARTS = {"pieces": "random", "layers": "model"}
"""Students that read word pieces, and where their joint trainings start."""


def write_pairs(folder: Path) -> None:
    """Write pairs of sentences, and how many of the two praise."""
    for split, rows in sentences().items():
        lines = ["first,second,score"]
        for (one, a), (other, b) in zip(rows, rows[1:] + rows[:1], strict=True):
            lines.append(f'"{a}","{b}",{2.0 * (one + other) + 0.5}')
        (folder / f"pairs-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def edit_params(values: Any) -> None:
    """Add all of these to the reviews and their first row."""
    source = {split: f"pairs-{split}.csv" for split in ("train", "dev", "test")}
    values["tasks"][WARMTH] = dict(values["tasks"][TASK]) | {
        "source": {"kind": "files", "files": source, "format": "csv", "columns": None},
        **{"text": ["first", "second"], "kind": "regression", "label": "score", "blocks": 1},
        **{"labels": {"min": 0.0, "max": 5.0}, "metrics": ["pearson"]},
    }
    values["wikipedia"] = {
        "source": {"kind": "files", "files": ["wiki.xml.bz2"], "form": "dump"},
        "splitter": {"engine": "sentencizer", "model": None},
        "sentences": SENTENCES,
        "validation": {"share": 0.3, "sentences": 60},
        "shard_rows": SHARD,
    }
    short = dict(values["optimisers"]["short"])
    small = short | {"epochs": 4, "evaluate_every": None}
    values["optimisers"] = {
        "short": short,
        "pretraining": small,
        "joint": small | {"learning_rates": [2.0e-2]},
        "tuning": small | {"learning_rates": [1.0e-5, 1.0e-3]},
        "tuning_once": small | {"learning_rates": [1.0e-3]},
        "pairs": small | {"learning_rates": [1.0e-4, 1.0e-2], "epochs": 9},
        "pairs_once": small | {"epochs": 9},
    }
    _add_starts(values)
    row = {"data": "original", "iterations": None, "tasks": [TASK], "baseline": "bilstm"}
    answers, alone = {"objective": {"logits": 1.0}}, {"baseline": None}
    once = {"optimiser": "pairs_once"}
    of_encoder = row | {"student": "bilstm_sra", "start": "sra", "optimiser": "pairs"}
    of_group = row | {"student": "bilstm", "start": "mtl"} | answers
    bilstm = dict(values["methods"]["bilstm"])
    values["methods"] = {
        "bilstm": bilstm,
        "bilstm_sra": of_encoder | {"objective": {"labels": 1.0}},
        "bilstm_sra_kd": of_encoder | answers | once,
        "tiny_layers": of_encoder | beside_teacher() | {"start": "general"} | alone | once,
        "tiny": of_encoder | {"student": "tiny", "start": "tiny_layers"} | answers,
        "tuned": of_group | {"optimiser": "tuning", "tasks": None},
        "taken": of_group | {"optimiser": None, "tasks": None},
        "elsewhere": bilstm | {"start": "alone", "tasks": [WARMTH]},
    }
    for name in STARTS:
        own = of_group | alone | {"student": name, "start": name}
        values["methods"][f"{name}_tuned"] = own | {"optimiser": "tuning_once"}
        values["methods"][f"{name}_taken"] = own | {"optimiser": None, "tasks": None}


def beside_teacher() -> dict[str, Any]:
    """Return what a row or an encoder says that learns a running teacher's layers."""
    layers = {"embeddings": 1.0, "hidden": 1.0, "attentions": 1.0}
    return {"student": "tiny", "objective": layers, "teacher_runs": {"layers": [2]}}


def _add_starts(values: Any) -> None:
    """Add the students, encoders and joint trainings."""
    values["students"]["bilstm_sra"] |= {"hidden": 8, "width": 32, "classifier": 8}
    values["students"] |= {"pieces": PIECES, "layers": LAYERS, "tiny": TINY}
    sra = {"student": "bilstm_sra", "wikipedia": None, "min_count": 1, "tasks": {TASK: "original"}, "centre": True}
    pretraining = {"optimiser": "pretraining"}
    values["encoders"] = {"sra": sra | pretraining, "general": beside_teacher() | {"wikipedia": 100} | pretraining}
    values["catalogues"] = {"wiki": {"encoder": "sra", "approximate": None}}
    mtl = {"student": "bilstm", "start": "vectors", "optimiser": "joint"}
    mtl["tasks"] = {TASK: "original", WARMTH: "original"}
    values["joint"] = {"mtl": mtl, "alone": mtl | {"tasks": {TASK: "original"}}}
    values["joint"] |= {name: mtl | {"student": name, "start": start} for name, start in STARTS.items()}
