"""The flow: who waits for whom, and the records that stages leave of their runs."""

from pathlib import Path

import pytest

from pipeline_lib.base import stage_records
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.base.flow import read_flow
from pipeline_lib.base.layout import Layout, student_place
from pipeline_lib.base.stage_records import count, read_stage_record, recorded, stage_name

PIPELINE = """
stages:
  report: {cmd: r, deps: [data/results, "data/tasks"], outs: [data/report]}
  evaluate:
    cmd: e
    deps: ["data/students/${item.task}", "data/tasks/${item.task}"]
    outs: ["data/results/${item.task}"]
  train: {cmd: t, deps: ["data/tasks/${item.task}/dev"], outs: ["data/students/${item.task}"]}
  prepare: {cmd: p, outs: ["data/tasks/${item.task}"]}
  retrieve: {cmd: i, outs: [data/found]}
"""


def test_stages_stand_behind_those_that_they_wait_for(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text(PIPELINE)
    found = read_flow(tmp_path / "dvc.yaml", Layout(tmp_path))
    after = {stage["name"]: stage["after"] for stage in found["stages"]}
    # What a stage waits for by way of another is left out.
    assert after == {"prepare": [], "train": ["prepare"], "evaluate": ["train"], "report": ["evaluate"], "retrieve": []}
    order = list(after)
    assert order.index("prepare") < order.index("train") < order.index("evaluate")
    assert read_flow(tmp_path / "none.yaml", Layout(tmp_path)) == {"stages": [], "seconds": 0}
    (tmp_path / "dvc.yaml").write_text(PIPELINE)
    layout = Layout(tmp_path)
    record = {"command": "x", "started": "2026-01-02T03:04:05+00:00", "seconds": 2.5, "counts": {}}
    # One name is the beginning of another's.
    for name in ("train@a", "train@b", "train_joint", "report"):
        write_json(layout.stage_record(name), record)
    layout.stage_record("evaluate@a").write_text("truncated")
    found = read_flow(tmp_path / "dvc.yaml", layout)
    runs = {stage["name"]: [run["item"] for run in stage["runs"]] for stage in found["stages"]}
    assert (runs["train"], runs["report"], runs["evaluate"]) == (["a", "b"], [None], [])
    assert found["seconds"] == 7.5
    assert read_json(layout.stage_record("report"))["seconds"] == 2.5
    pipeline = Path(__file__).parents[2] / "dvc.yaml"
    stages = read_flow(pipeline, Layout(Path("nowhere")))["stages"]
    after = {stage["name"]: stage["after"] for stage in stages}
    assert after["augment"] == ["prepare"] and after["evaluate"] == ["train"]
    assert after["measure_speed"] == ["evaluate"] and "measure_speed" in after["report"]


def test_a_stage_that_ends_well_leaves_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stage_records, "_counts", {})
    monkeypatch.setattr(stage_records, "_names", set())
    monkeypatch.setattr(stage_records, "_accelerators", {"Card B"})
    monkeypatch.setattr(stage_records, "used_accelerators", lambda: ["Card A"])

    def main(task: str) -> None:
        for reused in (True, True, False):
            count("shards", reused)
        for name in ("a", "a", "b"):
            count("trainings", False, name)
        if task == "bad":
            raise ValueError

    for options, item in (({}, ""), ({"task": "a", "row": None}, "@a"), ({"row": "b"}, "@b")):
        assert stage_name(["stages/train.py"], options) == f"train{item}"
    recorded(main, ["stages/train.py", "--task", "movies"])(task="movies")
    record = read_stage_record(Layout().stage_record("train@movies"))
    assert record["command"] == "python -m pipeline_lib.stages.train --task movies"
    assert record["counts"]["shards"] == {"computed": 1, "reused": 2}
    assert record["counts"]["trainings"] == {"computed": 2, "reused": 0}
    assert record["accelerators"] == ["Card A", "Card B"]
    with pytest.raises(ValueError):
        recorded(main, ["stages/train.py"])(task="bad")
    assert read_stage_record(Layout().stage_record("train@bad")) is None


def test_a_template_is_a_path_and_its_inverse() -> None:
    layout = Layout(Path("there"))
    folder = layout.heldout_outputs("movies", "llm", "dev")
    assert folder == Path("there/outputs/movies/heldout/llm/dev")
    names = {"task": "movies", "teacher": "llm", "split": "dev"}
    assert Layout.heldout_outputs.match(folder) == (layout, names)
    assert Layout.states.match(folder) is None
    assert layout.models == Path("there/raw/models")
    with pytest.raises(ValueError, match="shorter"):
        Layout().teacher("movies")
    place = student_place(Path("data/students/movies/bilstm/1"))
    assert place is not None
    assert (place.layout, place.task, place.method, place.seed) == (Layout(), "movies", "bilstm", 1)
    assert student_place(Path("data/students/movies/bilstm/best")) is None
    assert student_place(Path("data/teachers/movies/bilstm/1")) is None
