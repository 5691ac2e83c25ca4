"""Finished trainings, kept outside DVC's outputs under the digest of all that determines them.

So a new seed trains one student, old settings find theirs again, and a killed stage goes on with
what is missing.
"""

from dataclasses import dataclass
from pathlib import Path

from pipeline_lib.files import clear_folder, link_or_copy, read_json, sha256_folder, write_json
from pipeline_lib.store import state_folder


@dataclass(frozen=True)
class Trained:
    """The place of one training's result.

    :ivar kind: students or encoders; :ivar key: digest of all that determines it.
    """

    kind: str
    key: str

    @property
    def folder(self) -> Path:
        """Where the finished model lies."""
        return state_folder() / self.kind / self.key

    @property
    def checkpoint(self) -> Path:
        """Where the training keeps its state."""
        return state_folder() / "checkpoints" / f"{self.kind}-{self.key}.safetensors"

    @property
    def _seal(self) -> Path:
        return self.folder.with_suffix(".json")

    def is_whole(self) -> bool:
        """Whether it is there, finished and undamaged."""
        if not self._seal.exists():
            return False
        return read_json(self._seal).get("sha256") == sha256_folder(self.folder)

    def clear(self) -> Path:
        """Return the folder, emptied, to write the result into."""
        return clear_folder(self.folder)

    def seal(self) -> None:
        """Declare the result finished: without a seal it was interrupted, or has been damaged."""
        write_json(self._seal, {"sha256": sha256_folder(self.folder)})

    def place(self, target: Path) -> None:
        """Link the result's files into ``target``."""
        for path in sorted(self.folder.iterdir()):
            link_or_copy(path, target / path.name)
