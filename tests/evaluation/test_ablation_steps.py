"""Which row is a step from which."""

from typing import Any

import pytest

from pipeline_lib.evaluation.ablation_steps import previous
from pipeline_lib.evaluation.heldout import System
from pipeline_lib.params import Method
from pipeline_lib.results.schema import ParameterCounts, Training

ROW = {
    "student": "bilstm", "start": "vectors", "data": "original", "iterations": None,
    "objective": {"labels": 1.0}, "optimiser": "short", "baseline": None, "tasks": None,
}  # fmt: skip
LOGITS = {"logits": 1.0}
SIZE = ParameterCounts(without_embeddings=1, with_embeddings=1)
TRAINING = Training(learning_rate=1.0, best_dev_by_rate={}, rows=1, steps=1, batch_size=1, best_step={})


def system(teacher: str = "minilm", **changes: Any) -> System:
    row = Method.model_validate(ROW | changes)
    source = "gold" if row.objective.weights.keys() == {"labels"} else "teacher"
    return System(row, teacher, source, {}, SIZE, TRAINING)


LABELS = system()
KD = system(objective=LOGITS)
KD_TS = system(objective=LOGITS, data="full", optimiser="long")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (KD_TS, ("kd", "sentences")),
        (system(objective=LOGITS, iterations=2), ("kd", "sentences")),
        (system(objective=LOGITS, start="sra"), ("kd", "start")),
        (system(objective=LOGITS, threshold="dev"), ("kd", "decision")),
        (system(objective=LOGITS, optimiser="long"), ("kd", "optimiser")),
        # Another teacher is another source of what is learned, but not to a row on labels.
        (system("mpnet", objective=LOGITS), ("kd", "answers")),
        (system("mpnet", optimiser="long"), ("labels", "optimiser")),
        (system(objective={"logits": 0.5, "labels": 0.5}), ("kd", "answers")),
        (system(objective=LOGITS, student="cnn"), None),
        (system(objective=LOGITS, data="full", start="sra"), None),
        (KD, ("labels", "answers")),
    ],
)
def test_a_step_is_from_the_nearest_row_with_one_difference(row: System, expected: tuple[str, str] | None) -> None:
    systems = {"labels": LABELS, "kd": KD, "row": row, "below": KD_TS}
    assert previous("row", systems) == expected and previous("labels", systems) is None
