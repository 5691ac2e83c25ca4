"""Figures that show whether an encoder's vectors have collapsed."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.results.metrics import score
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.distillation.collapse_checks import (
    collapse_warning,
    effective_rank,
    mean_cosine,
    sample_rows,
    spread_figures,
)
from pipeline_lib.training.distillation.plans import ModelReference
from pipeline_lib.training.distillation.students import best_shift

DRAW = np.random.default_rng(1)
SPREAD = DRAW.normal(size=(500, 32))


def test_ranks_and_cosines() -> None:
    assert effective_rank(np.eye(8)) == pytest.approx(8.0)
    assert effective_rank(np.outer(np.arange(1.0, 9.0), np.ones(4))) == pytest.approx(1.0)
    assert effective_rank(np.zeros((3, 4))) == pytest.approx(1.0)
    # Two directions of unlike strength: the entropy of 3/4 and 1/4.
    wanted = np.exp(-0.75 * np.log(0.75) - 0.25 * np.log(0.25))
    assert effective_rank(np.diag([3.0, 1.0])) == pytest.approx(wanted)
    # Mean cosine is that of different rows.
    assert mean_cosine(np.array([[1.0, 0.0], [0.0, 2.0]])) == pytest.approx(0.0)
    assert mean_cosine(np.array([[1.0, 0.0], [3.0, 0.0], [-1.0, 0.0]])) == pytest.approx(-1 / 3)
    assert mean_cosine(SPREAD[:1]) == 1.0
    # Rows are spread evenly.
    assert sample_rows(5).tolist() == [0, 1, 2, 3, 4]
    assert len(sample_rows(100_000)) == 4096 and sample_rows(100_000)[-1] == 99_999


def test_collapse_is_warned_of() -> None:
    assert collapse_warning("sra", spread_figures(SPREAD + 0.5, SPREAD)) is None
    alike = collapse_warning("sra", spread_figures(SPREAD * 0.1 + 1.0, SPREAD))
    assert "warning: encoders.sra: its vectors have collapsed" in alike
    line = np.outer(DRAW.normal(size=500), np.ones(32))
    assert "effective rank 1.0" in collapse_warning("sra", spread_figures(line, SPREAD))
    # Raw targets that are all alike may be learned as they are.
    assert collapse_warning("sra", spread_figures(SPREAD * 0.1 + 1.0, SPREAD * 0.1 + 1.0)) is None


RNG = np.random.default_rng(0)
LABELS = (RNG.random(300) < 0.3).astype(np.int64)
MARGINS = LABELS + RNG.normal(scale=0.7, size=300) - 2.5
"""A student that nearly always says class 0, though its margins tell the classes apart."""


@pytest.mark.parametrize("positive", [0, 1])
def test_f1_is_best_at_the_moved_threshold(positive: int) -> None:
    dev = Sentences(np.zeros(300, np.int32), np.arange(301), {"labels": LABELS}, 0)
    plan = SimpleNamespace(metric="f1", positive=positive)
    outputs = np.stack([np.zeros(300), MARGINS], axis=1).astype(np.float32)

    def f1(shift: float) -> float:
        return score("f1", LABELS, outputs - np.array([0.0, shift]), positive)

    found = f1(best_shift(outputs, dev, plan))
    assert found == pytest.approx(max(f1(m + 1e-4) for m in [*MARGINS, MARGINS.min() - 1]))
    assert found > f1(0.0) + (0.3 if positive else 0.02)


def test_a_model_that_has_changed_since_is_not_started_from(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = ModelReference.to(tmp_path)
    assert model.open() == tmp_path
    (tmp_path / "config.json").write_text("{ }")
    with pytest.raises(PotstillError, match="it was changed while students were trained"):
        model.open()
