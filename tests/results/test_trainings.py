"""Learning curves: what they say of the evaluation that was kept."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.report.charts import learning_chart
from pipeline_lib.results.trainings import Curve, task_curves
from tests.kit.made_up import made_up_training
from tests.tour import TOUR

LOOKS = [{"step": 10, "epoch": 0.5, "loss": 0.4, "dev": 0.9, "dev_loss": 0.3}]
LOOKS.append({"step": 20, "epoch": 1.0, "loss": 0.2, "dev": 0.8, "dev_loss": 0.25})


def curves(folder: Path, history: list[dict[str, Any]], kind: str) -> list[Curve]:
    params, layout = load_params(TOUR), Layout(folder)
    [joint] = [name for name, row in params.joint.items() if "movies" in row.tasks]
    joined = [
        one | {f"{name}_by_task": {"movies": one[name], "tweets": 0.5} for name in ("dev", "dev_loss") if name in one}
        for one in history
    ]
    folders = {layout.joint_students(joint, seed): joined for seed in params.seeds}
    folders |= {layout.student("movies", "bilstm", seed): history for seed in params.seeds}
    for target, evaluations in folders.items():
        write_json(target / "training.json", made_up_training(history=evaluations))
    return [one for one in task_curves(params, "movies", layout) if one["kind"] == kind]


@pytest.mark.parametrize("kind", ["method", "joint"])
def test_the_kept_evaluation_is_named_by_the_loss_that_chose_it(kind: str, tmp_path: Path) -> None:
    drawn = curves(tmp_path, LOOKS, kind)
    assert [one["history"] for one in drawn] == [LOOKS] * 3
    figure = learning_chart("a", "bilstm", 0, drawn[:1], "dev")
    assert [row[-1] for row in figure.rows] == ["", "kept: lowest loss on dev, 0.2500"]
    assert "step 20: 80.0, kept: lowest loss on dev, 0.2500" in str(figure.svg)


def test_by_the_metric_it_is_just_kept(tmp_path: Path) -> None:
    plain = [{key: value for key, value in one.items() if key != "dev_loss"} for one in LOOKS]
    drawn = curves(tmp_path, plain, "method")
    assert [row[-1] for row in learning_chart("a", "bilstm", 0, drawn[:1], "dev").rows] == ["", "kept"]
