"""The user's own files, and the record of what was fetched.

Files are copied, not linked: DVC makes its outputs read-only and shares them with its cache, and
the user's own files must remain untouched.
"""

from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import copy_file, fresh_folder, write_json
from pipeline_lib.base.seals import SOURCE, digests
from pipeline_lib.params import ModelVectors, VectorFile

VECTOR_FILES = {"glove": "vectors.txt", "word2vec": "vectors.txt", "word2vec_binary": "vectors.bin"}
"""Name under which a vector file of each format is written."""


def fetch_vectors(vectors: ModelVectors | VectorFile, inputs: Path, target: Path) -> None:
    """Fetch a vector file, or write only ``source.json`` where the teacher's vectors are used."""
    fresh_folder(target)
    if isinstance(vectors, VectorFile):
        path = existing_file(Path(inputs) / vectors.path, "params.yaml: vocabulary.vectors.path")
        copy_file(path, target / VECTOR_FILES[vectors.format])
    write_source(target, vectors.model_dump(mode="json"))


def write_source(target: Path, settings: Any) -> None:
    """Write ``target/source.json``: the settings, and the SHA-256 of each file below ``target``."""
    write_json(target / SOURCE, {"source": settings, "sha256": digests(target)})


def existing_file(path: Path, where: str) -> Path:
    """Return ``path`` if it is a file.

    :param where: the key of params.yaml that names it, for the message.
    """
    if not path.is_file():
        raise PotstillError(f"{where}: {path} not found. Put the file there, or correct the path.")
    return path
