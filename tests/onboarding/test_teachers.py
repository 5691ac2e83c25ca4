"""How a teacher is tuned that `init` proposes, by the rows of the training set."""

import math

import pytest

from pipeline_lib.onboarding.teachers import Chosen, tuning_of

BASE = {"kind": "single", "batch_size": 64, "epochs": 3, "learning_rates": [2.0e-4]}


@pytest.mark.parametrize(
    ("rows", "batch_size", "epochs"),
    [
        (0, 16, 10),
        (60, 16, 10),
        (100, 16, 10),
        (192, 16, 10),
        (300, 16, 7),
        (385, 32, 10),
        (600, 32, 7),
        (770, 64, 10),
        (1000, 64, 8),
        (4028, 64, 2),
        (60_000, 64, 2),
    ],
)
def test_few_rows_get_smaller_batches_before_more_epochs(rows: int, batch_size: int, epochs: int) -> None:
    tuning = tuning_of(Chosen("minilm", "single", "minilm"), "", rows, BASE)
    assert tuning == BASE | {"batch_size": batch_size, "epochs": epochs}


def test_every_training_set_of_two_hundred_rows_gets_the_steps_that_it_needs() -> None:
    for rows in range(193, 5000):
        tuning = tuning_of(Chosen("minilm", "single", "minilm"), "", rows, BASE)
        assert tuning["epochs"] * math.ceil(rows / tuning["batch_size"]) >= 126
