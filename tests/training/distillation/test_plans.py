"""Plans refer to what they start from by content."""

from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.training.distillation.plans import ModelReference


def test_a_model_that_has_changed_since_is_not_started_from(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = ModelReference.to(tmp_path)
    assert model.open() == tmp_path
    (tmp_path / "config.json").write_text("{ }")
    with pytest.raises(PotstillError, match="it was changed while students were trained"):
        model.open()
