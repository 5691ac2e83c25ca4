from pathlib import Path

import pytest

from pipeline_lib.base.layout import Layout, student_place


def test_a_template_is_a_path_and_its_inverse() -> None:
    layout = Layout(Path("there"))
    folder = layout.heldout_outputs("movies", "llm", "dev")
    assert folder == Path("there/outputs/movies/heldout/llm/dev")
    names = {"task": "movies", "teacher": "llm", "split": "dev"}
    assert Layout.heldout_outputs.match(folder) == (layout, names)
    assert Layout.states.match(folder) is None
    assert layout.models == Path("there/raw/models")
    # A template needs all of its names.
    with pytest.raises(ValueError, match="shorter"):
        Layout().teacher("movies")
    # Only a seed is a students folder.
    place = student_place(Path("data/students/movies/bilstm/1"))
    assert place is not None
    assert (place.layout, place.task, place.method, place.seed) == (Layout(), "movies", "bilstm", 1)
    assert student_place(Path("data/students/movies/bilstm/best")) is None
    assert student_place(Path("data/teachers/movies/bilstm/1")) is None
