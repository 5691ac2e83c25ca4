"""Where the run's data, models and teachers come from: a row each, or one per file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline_lib.base.files import read_record
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import (
    AnswerFiles,
    CorpusFiles,
    Finished,
    GlueFolder,
    LocalModel,
    NeighbourPairs,
    OwnFiles,
    Params,
    VectorFile,
)
from pipeline_lib.params.sources import RunSource
from pipeline_lib.params.tasks import Task
from pipeline_lib.sources.licences import card_licences, given_licences, package_licences

UNKNOWN, NONE = "unknown", "–"
SourceRow = dict[str, str]
"""``name``, ``kind``, ``from``, ``licence`` and ``sha256`` of a source."""


def source_rows(params: Params, layout: Layout) -> Iterator[SourceRow]:
    """Yield the sources of the run's data, models and teachers, with licence or terms if known."""
    for source in params.sources().values():
        yield from _rows(source, Path(params.inputs), layout)


def _rows(source: RunSource, inputs: Path, layout: Layout) -> Iterator[SourceRow]:
    settings = source.settings
    for package in source.packages:
        yield _row(source, package.requirement, package.sha256, package_licences(package))
    if source.hub:
        yield _row(source, f"{source.hub} at {settings.revision}")
    elif isinstance(settings, NeighbourPairs):
        yield _row(source, "made from the run's other data") | {"licence": NONE}
    elif isinstance(settings, CorpusFiles):
        yield _row(source, ", ".join(settings.files))
    elif not isinstance(settings, Task):
        licences = declared_licences(source, inputs, layout)
        details = provenance_text(source, layout)
        for key, path in source.paths:
            end = key.rpartition(".")[2]
            row = _row(source, path + details, _copied(source, end, layout), licences)
            is_split = isinstance(settings, OwnFiles | GlueFolder)
            yield row | {"name": f"{source.what}, {end}"} if is_split else row


def _copied(source: RunSource, end: str, layout: Layout) -> str | None:
    """Return the SHA-256 of a file, or of a model's weights, as it was fetched.

    :param end: the end of its key: a split's name, or the file's number.
    """
    match source.settings:
        case OwnFiles() | GlueFolder():
            return _digest(layout.raw_task(source.name), f"{end}.")
        case LocalModel():
            return _digest(layout.models, f"{source.name}/", ".safetensors")
        case Finished():
            return _digest(layout.checkpoints, f"{source.name}/{source.task}/", ".safetensors")
        case AnswerFiles():
            return _digest(layout.checkpoints, f"{source.name}/{source.task}/{int(end):03d}-")
        case VectorFile():
            return _digest(layout.raw_vectors)
    return None


def _digest(folder: Path, start: str = "", end: str = "") -> str | None:
    record = folder / "source.json"
    digests = read_record(record, "sha256")["sha256"] if record.exists() else {}
    named = (digests[n] for n in digests if n.startswith(start) and n.endswith(end))
    return ", ".join(named) or None


def _row(source: RunSource, origin: str, sha256: str | None = None, licences: Sequence[str] = ()) -> SourceRow:
    row = {"name": source.what, "kind": getattr(source.settings, "kind", "files"), "from": origin}
    return row | {"sha256": sha256 or NONE, "licence": "; ".join(licences) or UNKNOWN}


def declared_licences(source: RunSource, inputs: Path, layout: Layout) -> list[str]:
    """Return the licences that a source declares: its first package, its provenance, its card."""
    if source.packages:
        return package_licences(source.packages[0])
    folders = [inputs / path for _, path in source.paths]
    of_cards = [licence for folder in folders for licence in card_licences(folder)]
    return given_licences(_provenance(source, layout)) or of_cards


def provenance_text(source: RunSource, layout: Layout) -> str:
    """Return the provenance of answers in files as text: `` (model: m-1)``."""
    details = "; ".join(f"{key}: {value}" for key, value in _provenance(source, layout).items())
    return f" ({details})" if details else ""


def _provenance(source: RunSource, layout: Layout) -> dict[str, str]:
    """Return the provenance in the record of files that were read, or else params.yaml's."""
    match source.settings:
        case AnswerFiles(provenance=settings):
            record = layout.teacher(source.task, source.name) / "answers.json"
        case _:
            return {}
    return read_record(record, "provenance")["provenance"] if record.exists() else settings
