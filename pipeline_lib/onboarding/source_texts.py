"""The texts of a task's own files as they are, before anything is prepared."""

from collections.abc import Iterator
from pathlib import Path

from pipeline_lib.corpora.tasks.fetching import input_paths
from pipeline_lib.corpora.tasks.labelled import read_options
from pipeline_lib.params import GlueFolder, OwnFiles, Params
from pipeline_lib.tables.reader import read_batches


def source_texts(params: Params, name: str) -> Iterator[list[list[str]]] | None:
    """Return batches of a task's texts: the first sentences and, for pairs, the second ones.

    None if its source has to be fetched first.
    """
    task = params.task(name)
    if not isinstance(task.source, OwnFiles | GlueFolder):
        return None
    paths = input_paths(task.source, Path(params.inputs), f"params.yaml: tasks.{name}.source")
    return (
        [batch.texts(column) for column in task.text]
        for split in paths
        for path in paths[split]
        for batch in read_batches(path, task.text, (), read_options(task.source, split))
    )
