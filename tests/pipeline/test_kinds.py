"""A kind of task from outside the library, an ordinal scale, from a CSV to an exported student."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS, label_array, register_kind
from pipeline_lib.base.kinds.classes import Classes
from pipeline_lib.exports.opening import load_student
from pipeline_lib.params import load_params
from pipeline_lib.shards.shard_sets import ShardSet

from .corpus import BAD, GOOD, sentences
from .workspace import Workspace

EXTENSION = """
import numpy as np
import pyarrow as pa
import torch
import torch.nn.functional as F

from pipeline_lib.base.kinds.classes import Classes
from pipeline_lib.base.kinds.kind import mean_of, ratio
from pipeline_lib.params import register_kind


class Steps(Classes):
    name, thresholds, details_are = "ordinal", (), "distance"
    metrics = {"quadratic_kappa": "a quadratic kappa"}

    def label_type(self, labels):
        return pa.int16()

    def decide(self, outputs):
        return (self.probabilities(outputs).cumsum(axis=1) < 0.5).sum(axis=1)  # the median

    def loss(self, outputs, labels):  # a cumulative link: is the label at most k?
        upto = outputs.softmax(-1).cumsum(-1)[:, :-1].clamp(1e-6, 1 - 1e-6)
        is_upto = (labels[:, None] <= torch.arange(upto.shape[1])).to(upto.dtype)
        return F.binary_cross_entropy(upto, is_upto, reduction="none").sum(-1).mean()

    def of_confusion(self, metric, confusion, positive):
        steps = np.arange(confusion.shape[-1])
        weights, counts = (steps[:, None] - steps) ** 2, confusion.astype(np.float64)
        chance = counts.sum(-1)[..., None] * counts.sum(-2)[..., None, :] / counts.sum((-2, -1))[..., None, None]
        return 1 - ratio((weights * counts).sum((-2, -1)), (weights * chance).sum((-2, -1)))

    def detail_samples(self, labels, outputs):
        return {"mean_absolute_error": mean_of(abs(np.stack([self.decide(one) for one in outputs]) - labels))}


register_kind(Steps())
"""
PRELUDE = "import extension"
STARS = {"awful": BAD[:5], "poor": BAD[5:], "fine": GOOD[:5], "great": GOOD[5:]}
METHODS = ("bilstm", "bilstm_kd_ts")


def _write(folder: Path) -> None:
    for split, rows in sentences().items():
        stars = [(n, text) for _, text in rows for n, words in enumerate(STARS.values(), 1) if _has(text, words)]
        lines = ["stars,text", *(f'{number},"{text}"' for number, text in stars)]
        (folder / f"stars-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _has(text: str, words: list[str]) -> bool:
    return not {*words}.isdisjoint(text.rstrip(".").split())


@pytest.fixture(scope="module")
def finished(new_workspace: Callable[[Path], Workspace], tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = new_workspace(tmp_path_factory.mktemp("kinds") / "workspace")
    (workspace / "extension.py").write_text(EXTENSION)
    _write(workspace / "data/input")

    def edit(values: Any) -> None:
        files = {split: f"stars-{split}.csv" for split in ("train", "dev", "test")}
        task = dict(next(iter(values["tasks"].values()))) | {"text": ["text"], "label": "stars", "kind": "ordinal"}
        task |= {"source": {"kind": "files", "files": files, "format": "csv", "columns": None}, "blocks": 2}
        task |= {"labels": {name: [str(n)] for n, name in enumerate(STARS, 1)}, "metrics": ["quadratic_kappa"]}
        values |= {"tasks": {"stars": task}, "seeds": [1]}
        values["methods"] = {name: values["methods"][name] for name in METHODS}
        values["teachers"]["minilm"]["tuning"]["epochs"] = 6

    workspace.params(edit)
    for name, item in workspace.stages():
        workspace.stage(name, *item, prelude=PRELUDE).sound()
    return workspace


@pytest.fixture
def kind() -> Iterator[Classes]:
    exec(EXTENSION, {"__name__": "extension"})
    yield KINDS["ordinal"]
    del KINDS["ordinal"]


def test_teacher_and_students_learn_and_are_scored(finished: Workspace, kind: Classes) -> None:
    labels = ShardSet.open(finished / "data/tasks/stars/train").to_table()["label"]
    assert {*label_array(labels).tolist()} == {0, 1, 2, 3}
    scores = finished.scores("stars")
    assert (scores.kind, scores.metric, scores.labels) == ("ordinal", "quadratic_kappa", [*STARS])
    assert scores.teachers["minilm"].scores["test"]["quadratic_kappa"] > 0.7
    for method in scores.methods.values():
        assert method.scores["test"]["quadratic_kappa"].mean > 0.5
        assert method.details.scores["test"]["mean_absolute_error"].mean < 1
    assert (
        "a quadratic kappa of" in json.loads((finished / "data/report/report.json").read_text())["tasks"][0]["headline"]
    )


def test_the_exported_student_answers(finished: Workspace, kind: Classes) -> None:
    student = load_student(finished / "data/exports/stars")
    assert (student.kind, student.labels) == ("ordinal", [*STARS])
    texts = [f"The film is very {words[0]}." for words in STARS.values()]
    found = student.predict(texts)
    assert found.labels == [[*STARS][n] for n in kind.decide(found.logits)]
    with finished.forked("pipeline_lib.cli", "predict", "data/exports/stars", *texts, prelude=PRELUDE) as run:
        assert [line.split("\t")[0] for line in run.wait().sound().text.splitlines()] == found.labels


def test_without_its_code_it_is_refused_by_name(finished: Workspace) -> None:
    with pytest.raises(
        PotstillError, match=r"tasks.stars.kind: Input should be 'classification', .* \(found 'ordinal'\)"
    ):
        load_params(finished / "params.yaml")
    with pytest.raises(PotstillError, match=r"`kind: ordinal`, which is not registered"):
        load_student(finished / "data/exports/stars")


def test_metrics_and_the_type_of_labels_are_its_own() -> None:
    same = type("Same", (Classes,), {"name": "same"})()
    with pytest.raises(PotstillError, match="kind same: another kind has accuracy already"):
        register_kind(same)
    same.metrics = {"mine": "mine"}
    with pytest.raises(PotstillError, match="another kind has labels of type int32 already"):
        register_kind(same)
