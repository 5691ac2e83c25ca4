"""Which stage of dvc.yaml reads what another one writes."""

import re
from pathlib import Path

from ruamel.yaml import YAML

ITEM = re.compile(r"\$\{item[^}]*\}")
"""The placeholder of a task or row."""


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
