"""The record of timings: which form is fastest, what is refused, what a model takes on disk."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.results.speed import Rate, TaskSpeed, folder_bytes
from tests.kit.made_up import made_up_form, made_up_speed

FORM = made_up_form(1.0, 4, rates={"one_core": {"median": 0.0, "min": 1.0, "max": 1.0}})
NO_RATE = {"method": None, "forms": {"onnx": FORM}, "not_timed": {}}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"sentences_per_second": {}}, "sentences_per_second: Extra inputs"),
        ({"cores": "two"}, "cores: Input should be a valid integer"),
        ({"teachers": {"minilm": {"method": None, "not_timed": {}}}}, "teachers.minilm.forms: "),
        ({"students": {}, "cpu": None}, "cpu: "),
        ({"students": {"bilstm": NO_RATE}}, "students.bilstm.forms.onnx.rates.one_core.median: "),
    ],
)
def test_a_damaged_file_is_named_with_key_and_remedy(tmp_path: Path, change: dict[str, Any], place: str) -> None:
    path = tmp_path / "movies.json"
    made_up_speed().write(path)
    write_json(path, read_json(path) | change)
    with pytest.raises(PotstillError) as refused:
        TaskSpeed.read(path)
    assert str(refused.value).startswith(f"{path}: {place}")
    assert "Delete it and run `distill run` to make it again." in str(refused.value)


def test_the_fastest_form_is_sought_where_it_runs() -> None:
    forms = {"torch float32": made_up_form(100.0, 4), "onnx": made_up_form(120.0, 4)}
    forms["torch float32"]["rates"]["all_cores"]["median"] = 500.0
    timed = {"method": None, "forms": forms, "not_timed": {}}
    speed = made_up_speed(teachers={"minilm": timed})
    assert speed.fastest("teachers", "minilm")[0] == "onnx"
    assert speed.fastest("teachers", "minilm", "all_cores")[0] == "torch float32"
    assert speed.fastest("teachers", "minilm", "accelerator") is None
    assert speed.fastest("teachers", "other") is None
    rate = Rate.of([30.0, 10.0, 20.123456])
    assert (rate.median, rate.min, rate.max) == (20.12, 10.0, 30.0)


def test_a_model_is_all_of_its_folder_but_the_records(tmp_path: Path) -> None:
    sizes = {"config.json": 3, "onnx/model.onnx": 50, "training.json": 700, "search.json": 900}
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
    assert folder_bytes(tmp_path) == 53
