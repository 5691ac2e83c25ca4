"""How much of a stage's training is done, shown over all of its runs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pipeline_lib.base.progress import Advance, show_progress
from pipeline_lib.shards.training_records import AnswersRecord, TeacherRecord, TrainingRecord
from pipeline_lib.training.runs import Message, TrainingSpec
from pipeline_lib.training.search import TrainingRow

Note = Callable[[Any, float, float], str]
"""What is shown of a run, given the run, its loss and what it reports as its best."""


def losses(training: TrainingSpec, loss: float, best: float) -> str:
    """Return a run's loss, and its best score, or its lowest loss, on dev so far."""
    on_dev = f"lowest on dev {-best:.4f}" if training.is_by_loss else f"best dev {max(best, 0):.4f}"
    return f"loss {loss:.3f} {on_dev}"


def on_dev(record: TrainingRecord | TeacherRecord | AnswersRecord) -> str:
    """Return a model's score on dev, and the loss that chose its evaluation, if one did."""
    loss = record.best_dev_loss
    return f"{record.best_dev:.4f}" + ("" if loss is None else f" at the lowest loss {loss:.4f}")


class TrainingProgress:
    """Adds up the steps of all runs.  A run that was found counts with all its steps."""

    def __init__(self, advance: Advance, total: int, note: Note) -> None:
        self._advance, self._total, self._note = advance, total, note
        self._done: dict[int, int] = {}

    def on_progress(self, run: TrainingSpec, message: Message) -> None:
        """Show what a run reports."""
        step, steps, loss, best = message
        self._done[id(run)] = run.planned_steps * step // steps
        self._advance(sum(self._done.values()), self._total, self._note(run, loss, best))

    def on_done(self, run: TrainingSpec) -> None:
        """Count a run as finished."""
        self._done[id(run)] = run.planned_steps


@contextmanager
def show_training(title: str, rows: Sequence[TrainingRow], note: Note) -> Iterator[TrainingProgress]:
    """Yield what shows the progress of these rows' runs."""
    with show_progress(title, "steps") as advance:
        yield TrainingProgress(advance, sum(row.planned_steps for row in rows), note)
