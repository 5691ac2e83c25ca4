"""Shard sets for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from pipeline_lib.shards.shard_sets import Manifest, ShardSet, schema_of, write_manifest, write_shard


def write_set(
    folder: Path, kind: str, tables: Mapping[str, pa.Table], sources: Sequence[str | None] | None = None
) -> ShardSet:
    """Write tables by file name as a shard set, and open it.

    :param sources: the digests of the shards that they belong to, row for row.
    """
    sources = sources or [None] * len(tables)
    shards = [
        write_shard(folder / name, table, source) for (name, table), source in zip(tables.items(), sources, strict=True)
    ]
    write_manifest(folder, Manifest(kind, schema_of(next(iter(tables.values()))), shards))
    return ShardSet.open(folder)
