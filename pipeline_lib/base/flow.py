"""The flow: which stage reads what another wrote, when each last ran, and what it reused."""

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.stage_records import read_stage_record


def read_flow(pipeline: Path, layout: Layout) -> dict[str, Any]:
    """Return the stages in the order of the flow, with the records of their last runs here.

    :returns: ``stages``: name, ``after`` (its direct dependencies, without those they depend on themselves), ``runs``
        with item, start, seconds, and units of work computed and reused; and ``seconds``, the total of all runs.
    """
    after = _direct(stages_before(pipeline))
    stages = [{"name": name, "after": sorted(after[name]), "runs": _runs(name, layout)} for name in _in_order(after)]
    seconds = sum(run["seconds"] for stage in stages for run in stage["runs"])
    return {"stages": stages, "seconds": round(seconds, 1)}


def _direct(before: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out the dependencies that a stage has through another."""

    def all_before(name: str) -> set[str]:
        return before[name].union(*(all_before(other) for other in before[name]))

    return {name: others - set().union(*(all_before(other) for other in others)) for name, others in before.items()}


def _in_order(after: dict[str, set[str]]) -> list[str]:
    """Return the stages, each after its dependencies, otherwise in the order of dvc.yaml."""
    order: list[str] = []
    while left := [name for name in after if name not in order]:
        order += [name for name in left if after[name] <= set(order)][:1] or left
    return order


def _runs(stage: str, layout: Layout) -> list[dict[str, Any]]:
    runs = []
    folder = layout.stage_record(stage).parent
    for path in sorted(folder.glob(f"{stage}*.json")):
        name, _, item = path.stem.partition("@")
        record = read_stage_record(path) if name == stage else None
        if record is not None:
            runs.append({"item": item or None, **record})
    return runs


ITEM = re.compile(r"\$\{item[^}]*\}")


def stages_before(pipeline: Path) -> dict[str, set[str]]:
    """Return, for each stage, the stages whose outputs it reads."""
    if not pipeline.exists():
        return {}
    stages = YAML(typ="safe").load(pipeline.read_text(encoding="utf-8"))["stages"]
    outs = {name: [ITEM.sub("*", out) for out in stage.get("outs", [])] for name, stage in stages.items()}
    deps = {name: [ITEM.sub("*", dep) for dep in stage.get("deps", [])] for name, stage in stages.items()}
    return {
        name: {
            other
            for other, written in outs.items()
            if other != name and any(_overlap(a, b) for a in read for b in written)
        }
        for name, read in deps.items()
    }


def _overlap(one: str, other: str) -> bool:
    """Whether two paths are equal, or one is inside the other."""
    a, b = Path(one).parts, Path(other).parts
    return a[: len(b)] == b or b[: len(a)] == a
