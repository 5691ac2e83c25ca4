"""``distill plan``: what a run would do, and why, before it does it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.base.workspace import PIPELINE
from pipeline_lib.results.account import duration

if TYPE_CHECKING:
    from pipeline_lib.commands.planning.stages import PlannedStage
    from pipeline_lib.commands.planning.work import Work
    from pipeline_lib.params import Params

EXAMPLE = "Example: distill plan"
_SHOWN = 4
"""How many reasons of a stage are printed."""


def plan() -> None:
    """Show which stages `distill run` would run, why, and how much of their work is stored.

    A stage runs if its parameters, its code or your files changed: old and new value are shown. A stage that reads
    what another one makes runs only if that comes out different. No stage is run, and no data are changed.
    """
    from pipeline_lib.commands.planning.stages import planned_stages
    from pipeline_lib.commands.planning.work import work_of
    from pipeline_lib.params import load_params

    params, stages = load_params(), planned_stages()
    if not stages:
        say("Nothing to do: everything is up to date.")
        return
    work = {stage.name: work_of(stage, params) for stage in stages}
    seconds = _seconds(stages, work)
    for stage in stages:
        for line in _lines(stage, work[stage.name], duration(seconds[stage.name])):
            say(line)
    certain = [stage.name for stage in stages if stage.reasons]
    sums = [duration(sum(seconds[name] for name in names)) for names in (certain, seconds)]
    others = len(stages) - len(certain)
    other = f", {others} if what they read changes" if others else ""
    say(f"\n{len(certain)} stage{'s' * (len(certain) != 1)} to run{other}: about {' to '.join(dict.fromkeys(sums))}.")
    if line := _offered(params, stages):
        say(line)
    say("Next:  distill run")


def _offered(params: "Params", stages: Sequence["PlannedStage"]) -> str | None:
    from pipeline_lib.commands.store.refill import offer

    try:
        command = offer(params, Layout(), {stage.name for stage in stages if not stage.is_kept})
    except (PotstillError, OSError):
        # What they read is not here yet.
        return None
    if command is None:
        return None
    if command.endswith("--adopt"):
        return f"data/ has outputs of other code or libraries: {command} checks and takes them."
    return f"data/ has outputs that the store lacks: {command} takes them."


def _seconds(stages: Sequence["PlannedStage"], work: dict[str, "Work | None"]) -> dict[str, float]:
    """Return about how long each stage takes, by its last rate here and what is to be computed."""
    from pipeline_lib.commands.planning.forecast import Forecast
    from pipeline_lib.params.profiles import read_values

    forecast = Forecast.read(PIPELINE, read_values(Path("params.yaml")), Layout())
    amounts = {name: (counted.kind, counted.new) if counted else () for name, counted in work.items()}
    amounts |= {stage.name: ("rows", 0) for stage in stages if stage.is_kept}
    return {name: forecast.seconds_of(name, *amount) for name, amount in amounts.items()}


def _lines(stage: "PlannedStage", work: "Work | None", time: str) -> Iterator[str]:
    reasons = stage.reasons[:_SHOWN]
    if len(stage.reasons) > _SHOWN:
        reasons.append(f"and {len(stage.reasons) - _SHOWN} more")
    if not reasons:
        reasons = [f"if {_named(stage.after)} changes what it reads"]
    if stage.is_kept:
        reasons.append("DVC has its outputs from an earlier run with the same values")
    elif work is not None:
        reasons.append(str(work))
    for number, reason in enumerate(reasons):
        first = number == 0
        yield f"{stage.name if first else '':<26} {time if first else '':>10}  {reason}".rstrip()


def _named(stages: Sequence[str]) -> str:
    return f"{', '.join(stages[:2])} or another" if len(stages) > 2 else " or ".join(stages)
