"""A task whose rows may have several labels, in columns of marks or as lists: its files and parameters."""

from pathlib import Path
from typing import Any

from .corpus import GOOD, sentences

NAMES = ["praise", "pictures", "surprise"]


def labels_of(text: str) -> list[str]:
    words = {*text.removesuffix(".").split()}
    has = [words & {*GOOD}, words & {"film", "scene", "cast"}, "surprise" in words]
    return [name for name, applies in zip(NAMES, has, strict=True) if applies]


def write_marks(folder: Path) -> None:
    """Write each split with a column of marks for each label."""
    for split, rows in sentences().items():
        lines = [",".join(["text", *NAMES])]
        lines += [",".join([f'"{t}"', *(str(int(name in labels_of(t))) for name in NAMES)]) for _, t in rows]
        (folder / f"marks-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_tags(folder: Path) -> None:
    """Write the same labels as lists in one column."""
    for split, rows in sentences().items():
        lines = ["text,tags", *(f'"{text}",{"|".join(labels_of(text))}' for _, text in rows)]
        (folder / f"tags-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def task_of(template: dict[str, Any], name: str, label: str | list[str], values: dict[str, list[str]]) -> dict:
    """Return a task of the files that are called so."""
    files = {split: f"{name}-{split}.csv" for split in ("train", "dev", "test")}
    return template | {
        "source": {"kind": "files", "files": files, "format": "csv", "columns": None},
        **{"text": ["text"], "label": label, "kind": "multilabel", "labels": values, "positive": None},
        **{"metrics": ["f1_micro", "f1_macro", "average_precision"], "blocks": 2},
        "augment": {"n_iter": 1, "cap": None},
    }


def edit_params(values: Any) -> None:
    """Add the task of marks to those that are there, and its rows."""
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
