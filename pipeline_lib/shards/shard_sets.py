"""Arrow shard sets: a folder of Arrow IPC files and, written last, a :class:`Manifest` that vouches for them.

``data/transfer/movies/full/b000-i001.arrow`` is block 0 of a transfer set in iteration 1; 0 has the original examples.
Files are uncompressed, so that reading is memory-mapping.  A folder without a manifest is unfinished: nothing reads it.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path, read_json, sha256_file, sha256_json, write_json

FORMAT = 1
"""Version of the layout; bump it when shards written before can no longer be read."""
MANIFEST = "manifest.json"
_ITERATION = re.compile(r"-i(\d+)\.arrow$")


@dataclass(frozen=True)
class Shard:
    """One Arrow file of a set: its name in the folder, rows, bytes and SHA-256 (hex).

    :ivar source: the digest of the input shard that this one belongs to, row for row, or None.
    :ivar computed_on: the processor, if that affects the last digits; :ivar counts: what was counted meanwhile.
    """

    name: str
    rows: int
    bytes: int
    sha256: str
    source: str | None = None
    computed_on: str | None = None
    counts: dict[str, Any] | None = None


@dataclass(frozen=True)
class Manifest:
    """What a shard set holds (``schema``: column to Arrow type) and what it was made from.

    ``made_from`` holds digests and settings; ``counts`` what was kept and dropped, and why.
    """

    kind: str
    schema: dict[str, str]
    shards: list[Shard]
    made_from: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def rows(self) -> int:
        """Total number of rows of all shards."""
        return sum(shard.rows for shard in self.shards)

    @property
    def digest(self) -> str:
        """SHA-256 of what the set holds: kind, schema and every shard's name, rows and bytes.

        Settings and processors are left out: a set that comes out the same under other settings is
        the same set, and what was made from it remains valid.
        """
        shards = [(shard.name, shard.rows, shard.sha256) for shard in self.shards]
        return sha256_json([self.format, self.kind, self.schema, shards])

    def upto(self, iterations: int | None) -> "Manifest":
        """Return the part of a transfer set up to an iteration; None: all of it."""
        if iterations is None:
            return self
        return replace(self, shards=[s for s in self.shards if int(_ITERATION.search(s.name)[1]) <= iterations])


_MANIFEST_TYPE = TypeAdapter(Manifest)


def write_shard(path: Path, table: pa.Table, source: str | None = None, keep_first: bool = False) -> Shard:
    """Write ``table`` as one uncompressed Arrow IPC file, atomically, and describe it; equal tables give equal bytes.

    :param source: digest of the input shard whose rows these belong to.
    :param keep_first: keep a file that another process wrote meanwhile, and describe that one.
    """
    with (
        atomic_path(path, keep_first) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        # One record batch per shard: rows are addressed by number, zero-copy columns stay whole.
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    return describe_shard(path, table.num_rows, source)


def describe_shard(path: Path, rows: int, source: str | None = None) -> Shard:
    """Return the :class:`Shard` entry of a finished file, reading it once for its digest."""
    return Shard(path.name, rows, path.stat().st_size, sha256_file(path), source)


def read_shard(path: Path) -> pa.Table:
    """Memory-map one shard."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except FileNotFoundError as error:
        raise PotstillError(f"{path}: shard not found. Run `distill run` to make it.") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise PotstillError(
            f"{path}: truncated or not an Arrow file ({error}). Delete its folder and run `distill run`: "
            "only the damaged shard is computed again."
        ) from error


def read_checked(path: Path, sha256: str) -> pa.Table:
    """Memory-map one shard whose bytes are those of the manifest."""
    table = read_shard(path)
    if sha256_file(path) != sha256:
        raise PotstillError(
            f"{path}: altered since it was written (its SHA-256 is not the manifest's). Delete its "
            "folder and run `distill run`."
        )
    return table


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Finish a shard set: write its ``manifest.json``, atomically and last."""
    write_json(Path(folder) / MANIFEST, asdict(manifest))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a finished shard set."""
    path = Path(folder) / MANIFEST
    if not path.exists():
        raise PotstillError(f"{folder}: no manifest.json, so not a finished shard set. Run `distill run`.")
    raw = read_json(path)
    if not isinstance(raw, dict):
        raise PotstillError(f"{path}: not a manifest (not a JSON object). Run `distill run` again.")
    if raw.get("format") != FORMAT:
        raise PotstillError(f"{path}: format {raw.get('format')}, this version reads {FORMAT}. Run `distill run`.")
    try:
        return _MANIFEST_TYPE.validate_python(raw, extra="forbid")
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"]))
        raise PotstillError(f"{path}: not a manifest ({key}: {fault['msg']}). Run `distill run` again.") from error


def schema_of(table: pa.Table) -> dict[str, str]:
    """Return column names and Arrow types as text, for a manifest."""
    return {field.name: str(field.type) for field in table.schema}


@dataclass(frozen=True, repr=False)
class ShardSet:
    """A finished shard set, open for reading: it has a length, and iterates over its rows as dicts."""

    folder: Path
    manifest: Manifest

    @classmethod
    def open(cls, folder: Path) -> "ShardSet":
        """Open the set in ``folder``; see :func:`read_manifest` for the errors."""
        return cls(Path(folder), read_manifest(folder))

    def path(self, shard: Shard) -> Path:
        """Return the file of ``shard``."""
        return self.folder / shard.name

    def read(self, shard: Shard) -> pa.Table:
        """Memory-map one shard."""
        table = read_shard(self.path(shard))
        if table.num_rows != shard.rows:
            raise PotstillError(
                f"{self.path(shard)}: {table.num_rows} rows, the manifest says {shard.rows}. "
                "Delete the folder and run `distill run`."
            )
        return table

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {kind}" for name, kind in self.manifest.schema.items())
        size = sum(shard.bytes for shard in self.manifest.shards) / 1e6
        rows, shards = len(self), len(self.manifest.shards)
        return f"{self.folder}: {self.manifest.kind}, {rows:,} rows in {shards:,} shards, {size:,.1f} MB\n  {columns}"

    def __len__(self) -> int:
        return self.manifest.rows

    def __bool__(self) -> bool:
        # An empty set is a set.
        return True

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for table in self.tables():
            for batch in table.to_batches(max_chunksize=1000):
                yield from batch.to_pylist()

    def tables(self) -> Iterator[pa.Table]:
        """Yield every shard's table, memory-mapped, in the manifest's order."""
        yield from map(self.read, self.manifest.shards)

    def to_table(self) -> pa.Table:
        """Return all rows as one table of memory-mapped chunks; without shards, no columns."""
        return pa.concat_tables([*self.tables()] or [pa.table({})])

    def to_pandas(self) -> Any:
        """Return all rows as a pandas data frame."""
        return self.to_table().to_pandas()

    def verify(self) -> list[str]:
        """Check every shard's presence, size, digest, rows and columns; return a line per fault."""
        return [fault for shard in self.manifest.shards if (fault := self._fault(shard))]

    def _fault(self, shard: Shard) -> str | None:
        path = self.path(shard)
        if not path.exists():
            return f"{path}: missing"
        if path.stat().st_size != shard.bytes:
            return f"{path}: {path.stat().st_size} bytes, the manifest says {shard.bytes} (truncated)"
        if sha256_file(path) != shard.sha256:
            return f"{path}: altered (its SHA-256 is not the manifest's)"
        table = read_shard(path)
        if (table.num_rows, schema_of(table)) != (shard.rows, self.manifest.schema):
            return f"{path}: its rows or columns are not those of the manifest, which was altered"
        return None


def shard_sets(folder: Path) -> list[Path]:
    """Return every folder with a manifest at or below ``folder``, sorted."""
    folders = sorted(path.parent for path in Path(folder).rglob(MANIFEST))
    if not folders:
        raise PotstillError(f"{folder}: no shard sets here. Run `distill run` to make them.")
    return folders


def check_answers(inputs: Manifest, outputs: Manifest) -> None:
    """Check that output shard k carries input shard k's digest and has as many rows."""
    if len(inputs.shards) != len(outputs.shards):
        raise PotstillError(
            f"{len(outputs.shards)} output shards for {len(inputs.shards)} input shards. Run `distill run`."
        )
    for shard, answer in zip(inputs.shards, outputs.shards, strict=True):
        if answer.source != shard.sha256 or answer.rows != shard.rows:
            raise PotstillError(
                f"{answer.name}: does not belong to input shard {shard.name} "
                f"({shard.sha256[:12]}). The outputs are those of another input; run `distill run`."
            )


class SetReference(BaseModel):
    """A shard set, or its first iterations, by folder and digest (the manifest's)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str
    iterations: int | None
    digest: str

    @classmethod
    def to(cls, folder: Path, iterations: int | None = None) -> "SetReference":
        """Refer to the finished set in ``folder``, up to an iteration or (None) to all of it."""
        digest = read_manifest(folder).upto(iterations).digest
        return cls(folder=folder.as_posix(), iterations=iterations, digest=digest)

    @property
    def rows(self) -> int:
        """How many rows the set has."""
        return read_manifest(Path(self.folder)).upto(self.iterations).rows

    def open(self) -> ShardSet:
        """Open the set after checking manifest and shards."""
        folder = Path(self.folder)
        shards = ShardSet(folder, read_manifest(folder).upto(self.iterations))
        if shards.manifest.digest != self.digest:
            raise PotstillError(f"{self.folder}: it was changed since it was looked up. Run `distill run` again.")
        faults = shards.verify()
        if faults:
            raise PotstillError(
                f"{faults[0]} ({len(faults)} of {len(shards.manifest.shards)} shards damaged). "
                f"Delete {self.folder} and run `distill run`: only what is damaged is computed again."
            )
        return shards
