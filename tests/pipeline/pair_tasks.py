"""Two tasks of sentence pairs and one of several labels: their files and parameters."""

from pathlib import Path
from typing import Any

from datasets import Dataset

from tests.kit.hub_folders import write_data_set

from .corpus import GOOD, sentences

EMPTY = {"train": [(None, "", 1), ("The plot is dull.", " ", 0)]}
EMPTY |= {"dev": [("The plot is dull.", "", 0)], "test": [(None, "The film is very good.", -1)]}
"""Pairs of which one sentence is empty, or both."""
MORE = 30
"""Rows of one more labelled split: those of dev but for the last."""


def write_praise(folder: Path) -> None:
    """Write pairs of sentences in the hub's layout: does the second praise?"""
    splits = {}
    for split, rows in sentences().items():
        pairs = zip(rows, rows[1:] + rows[:1], strict=True)
        values = [(a, b, -1 if split == "test" else other) for (_, a), (other, b) in pairs]
        columns = zip(*values, *EMPTY[split], strict=True)
        named = dict(zip(("first", "second", "praise"), map(list, columns), strict=True))
        splits[split] = Dataset.from_dict(named)
    write_data_set(folder / "pairs", "praise", splits)


def write_pairs(folder: Path) -> None:
    for split, rows in sentences().items():
        lines = ["first,second,score"]
        for (one, a), (other, b) in zip(rows, rows[1:] + rows[:1], strict=True):
            score = "" if split == "test" else 40.0 * (one + other) + 10.0
            lines.append(f'"{a}","{b}",{score}')
        (folder / f"pairs-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    more = "\n".join((folder / "pairs-dev.csv").read_text().splitlines()[:MORE])
    (folder / "pairs-dev_more.csv").write_text(f'{more}\n"dull","The film is good.",90\n')


STUDENTS = {
    "biattentive": {
        **{"architecture": "biattentive", "tokens": "pieces", "model": "minilm", "embedding_size": 12},
        **{"feedforward": 12, "hidden": 8, "pools": ["max", "mean", "self"], "shared": 16},
        **{"classifier": 8, "dropout": 0.0, "max_words": 16},
    },
    "layers": {
        **{"architecture": "transformer", "model": "minilm", "layers": [0], "pool": "mean", "classifier": 8},
        **{"dropout": None, "max_words": 32},
    },
}
STUDENTS["siamese"] = {
    **{"architecture": "dse", "model": "minilm", "layers": None, "last": 2, "classifier": 64},
    **{"dropout": None, "frozen": False, "max_words": 16},
}
STUDENTS["frozen"] = STUDENTS["siamese"] | {"frozen": True}
STUDENTS["two_layers"] = STUDENTS["layers"] | {"layers": [0, 1], "pool": "last"}
JOINT = {
    "mkd_lstm": {"student": "biattentive", "start": "vectors"},
    "mkd_transformer": {"student": "layers", "start": "model", "tasks": ["praise"]},
    "pkd": {
        **{"student": "two_layers", "start": "model", "data": "original", "optimiser": "short"},
        "objective": {"logits": 0.5, "labels": 0.5, "patience": 1.0},
    },
    "beside": {
        **{"student": "two_layers", "start": "model", "data": "original", "optimiser": "quick"},
        "objective": {"logits": 1.0, "embeddings": 0.1, "hidden": 0.1, "attentions": 0.1},
        **{"teacher_runs": {"layers": [1, 2]}, "tasks": ["praise"]},
    },
    "dse": {
        **{"student": "siamese", "start": "model", "data": "original", "optimiser": "slow"},
        "objective": {"logits": 0.5, "labels": 0.5},
    },
    "dse_frozen": {
        **{"student": "frozen", "start": "model", "data": "original", "optimiser": "once"},
        **{"objective": {"logits": 1.0}, "tasks": ["praise"]},
    },
}
"""Rows of students that read both sentences at once, in word pieces; and, last, each apart."""
PIECES = {"warmth": ("mkd_lstm", "pkd", "dse")}
PIECES["praise"] = (*PIECES["warmth"], "mkd_transformer", "beside")
"""Those of a task that learn."""
TEACHERS = ("minilm", "refined")
"""One row each learns from their answers to the same transfer set."""
STUDENT = {"kind": "student", "task": "warmth", "method": "bilstm_kd_ts"}
RETRIEVAL = {
    "source": {"kind": "task", "task": "warmth", "split": "dev", "relevant": 80.0, "graded": True},
    "queries": 10,
    "systems": {
        "f": STUDENT | {"score": "f", "label": None},
        "cosine": STUDENT | {"score": "cosine", "label": None},
        "mean": {"kind": "model", "model": "minilm", "pooling": "mean", "max_length": 16},
        "reread": {"kind": "reranked", "first": "mean", "top": 8},
    },
    "teacher": {"task": "warmth", "teacher": "minilm", "label": None, "pool": 4},
    "at": [1, 5],
}
SIMILARITY = {"task": "praise", "encoders": [], "model": "minilm", "poolings": ["cls", "mean"]}


def tasks_of(template: dict[str, Any]) -> dict[str, Any]:
    source = {
        "kind": "files",
        "files": {split: f"pairs-{split}.csv" for split in ("train", "dev", "dev_more", "test")},
        "format": "csv",
        "columns": None,
    }
    common = template | {"source": source, "text": ["first", "second"], "blocks": 2}
    hub = {"kind": "hub", "dataset": "pairs", "config": "praise", "revision": "0" * 40}
    praise = {
        "source": hub | {"splits": {split: split for split in ("train", "dev", "test")}},
        "label": "praise",
        "labels": {"no": ["0"], "yes": ["1"]},
        "metrics": ["f1", "accuracy"],
        "positive": "no",
    }
    warmth = {
        "kind": "regression",
        "label": "score",
        "labels": {"min": 0.0, "max": 100.0},
        "metrics": ["pearson", "spearman"],
        "positive": None,
    }
    return {"praise": common | praise, "warmth": common | warmth}


def edit_params(values: Any) -> None:
    template = dict(next(iter(values["tasks"].values())))
    values["tasks"] = tasks_of(template | {"augment": {"n_iter": 3, "cap": None}})
    values["seeds"] = [1]
    alone = values["teachers"]["minilm"]
    alone["tuning"]["epochs"] = 6
    both = {"kind": "refined", "ranking": {}}
    alone["states"] = {"layers": [1], "storage": "float16"}
    values["teachers"]["refined"] = alone | {**{"data": ["original"], "states": None, "tuning": alone["tuning"] | both}}
    values["refined"] = ["refined"]
    names = ("bilstm", "bilstm_kd_ts")
    values["methods"] = {name: values["methods"][name] for name in names} | {
        name: values["methods"]["bilstm_kd_ts"] | {"baseline": None, **own} for name, own in JOINT.items()
    }
    short, long = (values["optimisers"][name] for name in ("short", "long"))
    short |= {"learning_rates": [1.0e-2], "epochs": 8}
    long |= {"learning_rates": [1.0e-2], "max_steps": 120}
    values["optimisers"] |= {"quick": short | {"learning_rates": [5.0e-3], "epochs": 6}, "once": short | {"epochs": 1}}
    # At the others' rate, a siamese Transformer of random weights learns or not by chance.
    values["optimisers"]["slow"] = short | {"learning_rates": [2.0e-3], "epochs": 6}
    values["students"] |= STUDENTS
    values["retrieval"], values["similarity"] = {"warm": RETRIEVAL}, {"alike": SIMILARITY}
    for name in ("bilstm_kd_ts", *JOINT):
        values["methods"][name]["teacher"] = "minilm"
    for name in TEACHERS:
        row = {"data": "original", "optimiser": "once", "baseline": None, "teacher": name}
        row |= {"tasks": ["praise"]} if name == "minilm" else {}
        values["methods"][f"kd_{name}"] = values["methods"]["bilstm_kd_ts"] | row


NAMES = ["praise", "pictures", "surprise"]


def labels_of(text: str) -> list[str]:
    words = {*text.removesuffix(".").split()}
    has = [words & {*GOOD}, words & {"film", "scene", "cast"}, "surprise" in words]
    return [name for name, applies in zip(NAMES, has, strict=True) if applies]


def write_marks(folder: Path) -> None:
    for split, rows in sentences().items():
        lines = [",".join(["text", *NAMES])]
        lines += [",".join([f'"{t}"', *(str(int(name in labels_of(t))) for name in NAMES)]) for _, t in rows]
        (folder / f"marks-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def task_of(template: dict[str, Any], name: str, label: str | list[str], values: dict[str, list[str]]) -> dict:
    files = {split: f"{name}-{split}.csv" for split in ("train", "dev", "test")}
    return template | {
        "source": {"kind": "files", "files": files, "format": "csv", "columns": None},
        **{"text": ["text"], "label": label, "kind": "multilabel", "labels": values, "positive": None},
        **{"metrics": ["f1_micro", "f1_macro", "average_precision"], "blocks": 2},
        "augment": {"n_iter": 1, "cap": None},
    }


def add_marks(values: Any) -> None:
    others = [*values["tasks"]]
    template = dict(next(iter(values["tasks"].values())))
    values["tasks"]["marks"] = task_of(template, "marks", NAMES, {name: ["1"] for name in NAMES})
    values["teachers"]["refined"]["tasks"] = others
    rows = values["methods"]
    for name, row in rows.items():
        if name not in ("bilstm", "bilstm_kd_ts"):
            row["tasks"] = row["tasks"] or others
    of_marks = dict(rows["bilstm_kd_ts"]) | {"tasks": ["marks"], "baseline": None}
    short = of_marks | {"data": "original", "optimiser": "short"}
    rows["at_threshold"] = short | {"threshold": "dev", "temperature": "dev", "baseline": "bilstm"}
    rows["soft"] = of_marks | {"objective": {"soft_labels": 0.5, "labels": 0.5, "temperature": 2.0}}
    rows["of_both"] = short | {"start": "both", "optimiser": None}
    values["joint"]["both"] = {
        **{"student": "bilstm", "start": "vectors", "optimiser": "short"},
        **{"teacher": "minilm", "tasks": {"marks": "original", "warmth": "original"}},
    }
