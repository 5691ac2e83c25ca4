"""A stage's record has the name that DVC gives the stage."""

import pytest

from pipeline_lib.base.stage_records import stage_name


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "train"),
        ({"task": "movies", "row": None}, "train@movies"),
        ({"row": "mtl"}, "train@mtl"),
        ({"catalogue": "wikipedia"}, "train@wikipedia"),
    ],
)
def test_stages_of_several_items_have_a_record_each(options: dict[str, str], name: str) -> None:
    assert stage_name(["stages/train.py"], options) == name
