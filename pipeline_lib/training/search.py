"""Learning-rate search, shared by students, encoders and teachers.

Every rate is tried with the first seed, and the best on dev is used for all seeds.  So a row and
its baseline can both be given a list of rates at little cost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from pipeline_lib.shards.engine.protocol import Engine
from pipeline_lib.shards.training_records import SearchRecord, TrainingRecord
from pipeline_lib.training.runs import Message, Spec, train_all

Name = tuple[str, int, float]
"""A row's name, seed and learning rate."""


@dataclass(frozen=True)
class TrainingRow(Generic[Spec]):
    """Runs that differ only in learning rate and seed: ``spec`` maps (seed, rate) to the run."""

    name: str
    rates: Sequence[float]
    seeds: Sequence[int]
    spec: Callable[[int, float], Spec]

    def search(self) -> list[tuple[int, float]]:
        """Return (seed, rate) of the runs that can start at once: all, if there is one rate."""
        seeds = self.seeds if len(self.rates) == 1 else self.seeds[:1]
        return [(seed, rate) for seed in seeds for rate in self.rates]

    @property
    def planned_steps(self) -> int:
        """The approximate number of steps that all its runs take."""
        trainings = len(self.rates) + len(self.seeds) - 1
        return self.spec(self.seeds[0], self.rates[0]).planned_steps * trainings


@dataclass(frozen=True)
class Searched(Generic[Spec]):
    """The outcome of a row: each seed's run and record at the best rate of ``by_rate``, the first seed's records."""

    rate: float
    by_rate: dict[float, TrainingRecord]
    trainings: dict[int, tuple[Spec, TrainingRecord]]

    @property
    def records(self) -> list[TrainingRecord]:
        """The records, in the order of the seeds."""
        return [record for _, record in self.trainings.values()]

    def write(self, folder: Path) -> None:
        """Write ``search.json``: the chosen rate, and every rate's score on dev."""
        records = {f"{rate:g}": record for rate, record in self.by_rate.items()}
        scores = {rate: record.best_dev for rate, record in records.items()}
        losses = {rate: record.best_dev_loss for rate, record in records.items()}
        SearchRecord(
            seed=next(iter(self.trainings)),
            learning_rate=self.rate,
            best_dev_by_rate=scores,
            dev_loss_by_rate=None if None in losses.values() else losses,
        ).write(folder / "search.json")


def train_rows(
    rows: Sequence[TrainingRow[Spec]],
    engine: Engine,
    on_progress: Callable[[Spec, Message], None] = lambda spec, message: None,
    on_done: Callable[[Spec], None] = lambda spec: None,
) -> dict[str, Searched[Spec]]:
    """Execute the rows' runs, or find their results; return each row's outcome by its name.

    :param on_progress: called with a run and what it reports.
    :param on_done: called with each run once its result is available, trained or found.
    """
    specs: dict[Name, Spec] = {}
    records: dict[Name, TrainingRecord] = {}

    def train(names: Sequence[tuple[TrainingRow[Spec], int, float]]) -> None:
        new = {(row.name, *params): row.spec(*params) for row, *params in names}
        new = {name: spec for name, spec in new.items() if name not in records}
        specs.update(new)
        order = list(new.values())
        results = train_all(order, engine, lambda n, message: on_progress(order[n], message))
        for number, record in results:
            records[list(new)[number]] = record
            on_done(order[number])

    train([(row, seed, rate) for row in rows for seed, rate in row.search()])
    searched = {}
    for row in rows:
        by_rate = {rate: records[row.name, row.seeds[0], rate] for rate in row.rates}
        searched[row.name] = max(by_rate, key=lambda rate: by_rate[rate].merit), by_rate
    train([(row, seed, searched[row.name][0]) for row in rows for seed in row.seeds])

    def outcome(row: TrainingRow[Spec]) -> Searched[Spec]:
        rate, by_rate = searched[row.name]
        names = {seed: (row.name, seed, rate) for seed in row.seeds}
        return Searched(rate, by_rate, {seed: (specs[name], records[name]) for seed, name in names.items()})

    return {row.name: outcome(row) for row in rows}
