"""References to shard sets by folder and digest: what a plan holds instead of the rows."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.shards.shard_sets import ShardSet, read_manifest


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
            raise PotstillError(f"{self.folder}: it was changed since it was looked up. Run `dvc repro` again.")
        faults = shards.verify()
        if faults:
            raise PotstillError(
                f"{faults[0]} ({len(faults)} of {len(shards.manifest.shards)} shards damaged). "
                f"Delete {self.folder} and run `dvc repro`: only what is damaged is computed again."
            )
        return shards
