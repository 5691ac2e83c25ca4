"""The small files for `dvc plots` and `dvc metrics`."""

import csv
from pathlib import Path

from pipeline_lib.report.plots import LEAVES, summary, write_accuracy_speed, write_curves
from pipeline_lib.results.collect import TaskResult
from tests.kit.made_up import made_up_method, made_up_scores, made_up_speed


def _result(task: str = "movies") -> TaskResult:
    methods = {"bilstm": made_up_method(0.78), "bilstm_kd": made_up_method(0.82)}
    return TaskResult(task, made_up_scores(methods), made_up_speed())


def test_a_summary_has_few_leaves_whatever_the_tasks() -> None:
    values = summary([_result()])["movies"]
    assert (values["method"], values["student"]) == ("bilstm_kd", 82.0) and values["teacher"] > 0
    for count in (1, 3, 7, 30):
        found = summary([_result(f"task{number}") for number in range(count)])
        leaves = sum(len(values) for values in found.values())
        assert 0 < leaves <= LEAVES
        assert all("student" in values for values in found.values())


def test_each_curve_is_a_file_of_the_first_seed(tmp_path: Path) -> None:
    history = [{"step": 10, "epoch": 1.0, "loss": 0.5, "dev": 0.75}]
    curves = [
        {"system": "bilstm", "seed": seed, "history": [one | {"dev": 0.75 / seed} for one in history]}
        for seed in (1, 2)
    ]
    write_curves(tmp_path, [{"task": "movies", "curves": curves}])
    [path] = tmp_path.iterdir()
    assert path.name == "movies_bilstm.csv"
    assert path.read_text() == "step,loss,dev\n10,0.5,0.75\n"


def test_each_timed_system_has_a_score_and_a_speed(tmp_path: Path) -> None:
    systems = [
        {"system": name, "score": 0.5, "form": form, "rate": form and 20.0}
        for name, form in (("teacher minilm", "onnx"), ("bilstm", "torch float32"), ("untimed", None))
    ]
    systems.append(systems[0] | {"system": "unscored", "score": None})
    write_accuracy_speed(tmp_path / "a.csv", [{"task": "movies", "systems": systems}])
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["system"] for row in rows] == ["minilm", "bilstm"]
    assert all(float(row["score"]) > 0 and float(row["sentences_per_second"]) > 0 for row in rows)
