"""How long a run will still take: by a stage's last time here, or by that of the default run.

A stage runs if something that it reads was made anew.  DVC decides that stage by stage, so the
forecast counts what comes after a stage that ran, and shrinks as DVC skips some of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipeline_lib.base.files import read_json
from pipeline_lib.base.flow import stages_before
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.stage_records import read_stage_record
from pipeline_lib.base.workspace import shipped

USUAL = 5.0
"""Seconds of a stage of which nothing is known."""
_TELLING = 0.1
"""What share of its work a stage must have computed for its seconds to tell what the rest takes."""


@dataclass
class Forecast:
    """The stages of a run, in no particular order, and what is known of them so far.

    :ivar expected: seconds by stage, such as ``train@movies``.
    :ivar before: the stages that a stage reads from, directly or not, by name without item.
    :ivar rates: seconds of a row or a training, by stage with or without its item, and kind.
    """

    expected: dict[str, float]
    before: dict[str, set[str]]
    rates: dict[tuple[str, str], float] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, pipeline: Path, params: Any, layout: Layout) -> "Forecast":
        """Read the stages of a pipeline and when each last ran here.

        :param params: the values of params.yaml, whose keys are the items of the stages.
        """
        usual = read_json(shipped("stage_seconds.json"))
        stages = YAML(typ="safe").load(pipeline.read_text(encoding="utf-8"))["stages"]
        expected, rates = {}, {}
        for name, settings in stages.items():
            default = dict(usual.get(name, {"seconds": USUAL}))
            seconds = default.pop("seconds")
            rates |= {(name, kind): seconds / amount for kind, amount in default.items()}
            for stage in _instances(name, settings, params):
                record = read_stage_record(layout.stage_record(stage))
                expected[stage] = record["seconds"] if record else seconds
                for kind, rate in _rates(record) if record else ():
                    rates[stage, kind] = rates[name, kind] = rate
        direct = stages_before(pipeline)
        return cls(expected, {name: _all_before(name, direct) for name in direct}, rates)

    def seconds_of(self, stage: str, kind: str | None = None, new: int = 0) -> float:
        """Return how long a stage takes.

        :param kind: of work that is counted, ``rows`` or ``trainings``; None: all of the stage's.
        :param new: how much of it is to be computed.
        """
        usual = self.expected.get(stage, USUAL)
        if kind is None:
            return usual
        name = stage.partition("@")[0]
        rate = self.rates.get((stage, kind), self.rates.get((name, kind)))
        whole = usual * bool(new) if rate is None else rate * new
        return max(min(usual, USUAL), whole)

    def finish(self, stage: str, seconds: float) -> None:
        """Note that a stage ran, and how long it took."""
        self.measured[stage] = seconds

    def skip(self, stage: str) -> None:
        """Note that DVC skipped a stage."""
        self.skipped.add(stage)

    def seconds_left(self, running: str, share: float, seconds: float) -> float:
        """Return the seconds that the run still takes, by this machine's speed so far.

        :param running: the stage that is running; :param share: how much of it is done, from 0 to
            1; :param seconds: how long it has been running.
        """
        pace = self._pace()
        remaining = max(self.expected.get(running, USUAL) * pace - seconds, 0.0)
        if share > 0.05:
            remaining = seconds * (1.0 - share) / share
        made = {*self.measured, running}
        waiting = self.expected.keys() - made - self.skipped
        return remaining + pace * sum(
            self.expected[stage] for stage in waiting if any(self._reads(stage, o) for o in made)
        )

    def _pace(self) -> float:
        """Return how much longer than expected the finished stages took."""
        expected = sum(self.expected.get(stage, USUAL) for stage in self.measured)
        return max(0.2, sum(self.measured.values()) / expected) if expected > 20.0 else 1.0

    def _reads(self, stage: str, other: str) -> bool:
        """Whether a stage reads what another makes, as far as their names and items tell."""
        (name, _, item), (other_name, _, other_item) = stage.partition("@"), other.partition("@")
        apart = item and other_item and item != other_item
        same = not apart or f"{name}@{other_item}" not in self.expected
        return other_name != "fingerprint" and other_name in self.before.get(name, set()) and same


def _instances(name: str, settings: Any, params: Any) -> list[str]:
    """Return the stages that DVC makes of one entry of dvc.yaml."""
    matrix = settings.get("matrix")
    if not matrix:
        return [name]
    [items] = matrix.values()
    return [f"{name}@{item}" for item in params.get(items.strip("${}"), [])]


def _rates(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the kinds of work of which a stage computed enough, and the seconds of one."""
    for kind, counts in record["counts"].items():
        computed = counts["computed"]
        if computed and computed >= _TELLING * (computed + counts["reused"]):
            yield kind, record["seconds"] / computed


def _all_before(name: str, direct: dict[str, set[str]]) -> set[str]:
    return direct[name].union(*(_all_before(other, direct) for other in direct[name]))
