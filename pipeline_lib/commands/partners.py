"""Which folder of teacher outputs answers to which folder of inputs, by the layout of ``data``."""

import os
from dataclasses import dataclass
from pathlib import Path

from pipeline_lib.base.errors import DistilleryError


@dataclass(frozen=True)
class Pair:
    """Inputs and the teacher's outputs for them; either folder may not be there (yet)."""

    inputs: Path
    outputs: Path


def find_pair(folder: Path) -> Pair | None:
    """Return the pair that ``folder`` is one half of, or None if it belongs to none.

    ``transfer/T/R`` goes with ``outputs/T/R``, ``tasks/T/dev`` with ``outputs/T/heldout/dev``,
    ``wikipedia/S`` with ``vectors/wikipedia/S``; ``vectors/tasks/T/R`` answers to ``transfer/T/R``.
    """
    parts = Path(os.path.abspath(folder)).parts
    if len(parts) > 4 and parts[-4:-2] == ("vectors", "tasks"):
        return _pair(folder, 4, ("transfer", parts[-2], parts[-1]), None)
    if len(parts) > 3 and parts[-3:-1] == ("vectors", "wikipedia"):
        return _pair(folder, 3, ("wikipedia", parts[-1]), None)
    if len(parts) > 2 and parts[-2] == "wikipedia":
        return _pair(folder, 2, None, ("vectors", "wikipedia", parts[-1]))
    if len(parts) > 4 and parts[-4] == "outputs" and parts[-2] == "heldout":
        return _pair(folder, 4, ("tasks", parts[-3], parts[-1]), None)
    if len(parts) > 3 and parts[-3] == "outputs":
        return _pair(folder, 3, ("transfer", parts[-2], parts[-1]), None)
    if len(parts) > 3 and parts[-3] == "transfer":
        return _pair(folder, 3, None, ("outputs", parts[-2], parts[-1]))
    if len(parts) > 3 and parts[-3] == "tasks" and parts[-1].startswith(("dev", "test")):
        return _pair(folder, 3, None, ("outputs", parts[-2], "heldout", parts[-1]))
    return None


def _pair(
    folder: Path, depth: int, inputs: tuple[str, ...] | None, outputs: tuple[str, ...] | None
) -> Pair:
    data = Path(os.path.relpath(Path(os.path.abspath(folder)).parents[depth - 1]))
    return Pair(
        data.joinpath(*inputs) if inputs else folder,
        data.joinpath(*outputs) if outputs else folder,
    )


def shard_sets(folder: Path) -> list[Path]:
    """Return every folder with a manifest at or below ``folder``, sorted.

    :raises DistilleryError: if there is none.
    """
    found = sorted(path.parent for path in Path(folder).rglob("manifest.json"))
    if not found:
        raise DistilleryError(f"{folder}: no shard sets here. Run `dvc repro` to make them.")
    return found
