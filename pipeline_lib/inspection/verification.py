"""Finds what is wrong with a shard set: damaged files, or outputs that belong to other inputs."""

from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import pair_of
from pipeline_lib.shards.shard_sets import ShardSet, check_answers


def faults_of_set(folder: Path) -> list[str]:
    """Return one line per fault of the set in ``folder``; none if it is sound."""
    try:
        shard_set = ShardSet.open(folder)
    except PotstillError as error:
        return [str(error)]
    return shard_set.verify() + _mixed_up(folder, shard_set)


def _mixed_up(folder: Path, outputs: ShardSet) -> list[str]:
    """Return the fault of outputs that do not match their inputs; inputs alone have none."""
    pair = pair_of(folder)
    if pair is None or pair.outputs != folder:
        return []
    if not (pair.inputs / "manifest.json").exists():
        return [f"{folder}: its inputs {pair.inputs} are missing"]
    try:
        check_answers(ShardSet.open(pair.inputs).manifest, outputs.manifest)
    except PotstillError as error:
        return [f"{folder}: {error}"]
    return []
