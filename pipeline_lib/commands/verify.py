"""``distill verify``: check everything that stages made and fetched against its digests."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.terminal import say

if TYPE_CHECKING:
    from pipeline_lib.shards.shard_sets import ShardSet

EXAMPLE = "Example: distill verify data/students data/outputs"
REMEDY = (
    "Delete the folders named and run `distill run`, or, for an index of other sentences, the same `distill index`: "
    "what the store has whole is not made again."
)


def verify(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders of artifacts or indexes, at any depth; by default data.")
    ] = None,
) -> None:
    """Check shards, models, vocabularies, scores and indexes: nothing is missing or altered.

    Every file's digest is compared with the one recorded when it was written, and outputs with their inputs, row for
    row.  Prints the faults and the remedy, and exits with status 1, if there are any.
    """
    faults: list[str] = []
    for record in [path for above in folders or [Path("data")] for path in _records(above)]:
        new = _checked(record)
        say(f"{'FAULT' if new else 'ok   '} {record.parent}")
        faults += new
    if faults:
        raise PotstillError("\n".join([*faults, REMEDY]))


def _records(above: Path) -> list[Path]:
    from pipeline_lib.base.seals import RECORDS, is_seal
    from pipeline_lib.shards.shard_sets import MANIFEST

    records = [path for name in RECORDS for path in above.rglob(name) if is_seal(path)]
    records += above.rglob(MANIFEST)
    if not records:
        raise PotstillError(
            f"{above}: nothing here has digests. Name a folder that a stage or `distill index` "
            "has written, such as data."
        )
    return sorted(records)


def _checked(record: Path) -> list[str]:
    from pipeline_lib.base.seals import RECORDS, faults_of
    from pipeline_lib.shards.shard_sets import read_manifest

    folder = record.parent
    if record.name in RECORDS:
        return faults_of(record)
    faults = _faults_of_set(folder)
    if faults or read_manifest(folder).kind != "index":
        return faults
    from pipeline_lib.retrieval.index import faults_of_index

    return faults_of_index(folder)


def _faults_of_set(folder: Path) -> list[str]:
    from pipeline_lib.shards.shard_sets import ShardSet

    try:
        shard_set = ShardSet.open(folder)
    except PotstillError as error:
        return [str(error)]
    return shard_set.verify() + _mixed_up(folder, shard_set)


def _mixed_up(folder: Path, outputs: "ShardSet") -> list[str]:
    """Return the fault of outputs that do not match their inputs; inputs alone have none."""
    from pipeline_lib.base.layout import pair_of
    from pipeline_lib.shards.shard_sets import ShardSet, check_answers

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
