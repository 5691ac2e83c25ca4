"""How much of a stage's training is done, shown over all of its runs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pipeline_lib.base.progress import Advance, show_progress
from pipeline_lib.training.runs import Message, TrainingSpec
from pipeline_lib.training.search import TrainingRow

Note = Callable[[Any, float, float], str]
"""What is shown of a run, given the run, its loss and its best score on dev."""


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
def show_training(
    title: str, rows: Sequence[TrainingRow], note: Note
) -> Iterator[TrainingProgress]:
    """Yield what shows the progress of these rows' runs."""
    with show_progress(title, "steps") as advance:
        yield TrainingProgress(advance, sum(row.planned_steps for row in rows), note)
