"""The schema of ``speed/<task>.json``: timings, written by ``measure_speed``, read by the report.

Timings are not reproducible, so they are apart from the scores, and no result depends on them.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field

from pipeline_lib.base.record_files import Record, RecordFile

Place = Literal["one_core", "all_cores", "accelerator"]
"""Where a system runs; ``all_cores`` is left out where there is only one."""
Kind = Literal["teachers", "students"]
Duration = Annotated[float, Field(gt=0)]
Milliseconds = Annotated[Duration, AfterValidator(lambda value: round(value, 3))]
RECORDS = ("training.json", "search.json")
"""The files beside a model that it does not need."""


class Rate(Record):
    """Sentences, or pairs, per second: the median over the turns, the lowest and the highest."""

    median: Duration
    min: Duration
    max: Duration

    @classmethod
    def of(cls, rates: Sequence[float]) -> Self:
        """Summarise the rates of the turns."""
        values = {"median": median(rates), "min": min(rates), "max": max(rates)}
        return cls(**{name: round(value, 2) for name, value in values.items()})


class Form(Record):
    """A system in one form.

    :ivar bytes: on disk: the model and what it needs to read text.
    :ivar latency_ms: of a single sentence on one core: the median, in milliseconds; None if it runs
        on an accelerator only.
    """

    bytes: int
    rates: dict[Place, Rate]
    latency_ms: Milliseconds | None


class Timed(Record):
    """A teacher, or the students of one architecture.

    :ivar method: whose student was timed; None for a teacher.
    """

    method: str | None
    forms: dict[str, Form]
    not_timed: dict[str, str]

    def fastest(self, hardware: Place = "one_core") -> tuple[str, Form] | None:
        """Return the name and timings of the form that is fastest there."""
        forms = {name: form for name, form in self.forms.items() if hardware in form.rates}
        return max(forms.items(), key=lambda one: one[1].rates[hardware].median, default=None)


class TaskSpeed(RecordFile):
    """The timings of one task's teachers and students, from raw text to logits.

    :ivar accelerator: its name; None if there is none, or params.yaml asks for the processor.
    :ivar sentences: how many different ones were read, or pairs; :ivar split: theirs.
    :ivar seconds: the least duration of a turn; :ivar repeats: turns of each system.
    :ivar exported: the method whose student was exported, the best on dev; None if none was.
    """

    cpu: str
    cores: int
    accelerator: str | None
    torch: str
    onnxruntime: str | None
    split: str
    pair: bool
    sentences: int
    seconds: float
    repeats: int
    seed: int
    exported: str | None
    teachers: dict[str, Timed]
    students: dict[str, Timed]

    def fastest(self, kind: Kind, name: str, hardware: Place = "one_core") -> tuple[str, Form] | None:
        """Return the fastest form of a system; None if it was not timed there."""
        timed: dict[str, Timed] = getattr(self, kind)
        return timed[name].fastest(hardware) if name in timed else None


def folder_bytes(folder: Path) -> int:
    """Return a model's size on disk: the model, and what it needs to read text."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in RECORDS)
    return sum(path.stat().st_size for path in files)
