"""Trainings that are the same are run once; the longest starts first."""

from dataclasses import dataclass
from typing import Any

import pytest

from pipeline_lib.engine import Tell
from pipeline_lib.trained import Trained, train_distinct


@dataclass(frozen=True)
class Job:
    key: str
    planned_rows: int

    @property
    def trained(self) -> Trained:
        return Trained("students", self.key)


ORDER: list[str] = []
JOBS = [Job("short", 1), Job("long", 9), Job("short", 1), Job("medium", 4)]


def note(job: Job, tell: Tell) -> dict[str, Any]:
    ORDER.append(job.key)
    tell(job.planned_rows)
    return {"key": job.key}


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_gets_its_record(workers: int) -> None:
    heard: list[tuple[int, Any]] = []
    found = dict(train_distinct(note, JOBS, workers, False, lambda *message: heard.append(message)))
    assert {number: record["key"] for number, record in found.items()} == {
        number: job.key for number, job in enumerate(JOBS)
    }
    assert all(JOBS[number].planned_rows == rows for number, rows in heard)


def test_the_longest_is_first_and_none_is_run_twice() -> None:
    ORDER.clear()
    heard: list[int] = []
    list(train_distinct(note, JOBS, 1, False, lambda number, _: heard.append(number)))
    assert ORDER == ["long", "medium", "short"]
    assert heard == [1, 3, 0]
