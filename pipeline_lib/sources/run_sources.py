"""Where the run's data, models and teachers come from: a row each, or one per file."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline_lib.base.files import read_record
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import (
    AnswerFiles,
    Finished,
    GlueFolder,
    LocalModel,
    OwnFiles,
    Params,
    SentenceVectorFiles,
    VectorFile,
)
from pipeline_lib.sources.licences import card_licences, given_licences, package_licences

UNKNOWN, NONE = "unknown", "–"
SourceRow = dict[str, str]
"""``name``, ``kind``, ``from``, ``licence`` and ``sha256`` of a source."""


def sources(params: Params, layout: Layout) -> Iterator[SourceRow]:
    """Yield the sources of the run's data, models and teachers, with licence or terms if known."""
    for name, task in params.tasks.items():
        if isinstance(task.source, OwnFiles | GlueFolder):
            yield from _task_files(name, task.source, layout)
        else:
            yield from _pinned(f"task {name}", task.source.model_dump())
    for name, model in params.models.items():
        if isinstance(model, LocalModel):
            digest = _weights(_digests(layout.models), name)
            yield _own_model(params, f"model {name}", model.kind, model.path, digest)
        else:
            yield from _pinned(f"model {name}", model.model_dump())
    yield from _teachers(params, layout)
    if params.wikipedia is not None:
        yield from _pinned("Wikipedia", params.wikipedia.source.model_dump())
    yield from _vectors(params, layout)


def _task_files(task: str, source: OwnFiles | GlueFolder, layout: Layout) -> Iterator[SourceRow]:
    folder = Path(source.folder if isinstance(source, GlueFolder) else "")
    fetched = {Path(name).stem: digest for name, digest in _digests(layout.raw_task(task)).items()}
    for split, path in source.files.items():
        location = (folder / path).as_posix()
        yield _row(f"task {task}, {split}", source.kind, location, fetched.get(split))


def _teachers(params: Params, layout: Layout) -> Iterator[SourceRow]:
    """Yield the teachers that were fine-tuned elsewhere, and those that are answers in files."""
    fetched = _digests(layout.checkpoints)
    for task in params.tasks:
        for name, teacher in params.teachers_of(task).items():
            part, tuning = f"teacher {name} of {task}", teacher.tuning
            if isinstance(tuning, Finished):
                digest = _weights(fetched, f"{name}/{task}")
                yield _own_model(params, part, tuning.kind, tuning.path(task), digest)
            if isinstance(tuning, AnswerFiles):
                provenance = _provenance(
                    layout.teacher(task, name) / "answers.json", tuning.provenance
                )
                for number, path in enumerate(tuning.paths(task)):
                    digest = fetched.get(f"{name}/{task}/{number:03d}-{Path(path).name}")
                    yield _given_file(part, tuning.kind, path, digest, provenance)


def _vectors(params: Params, layout: Layout) -> Iterator[SourceRow]:
    """Yield the files of word vectors and of sentence vectors."""
    words, sentences = params.vocabulary.vectors, params.sentence_vectors
    if isinstance(words, VectorFile):
        digest = next(iter(_digests(layout.raw_vectors).values()), None)
        yield _row("word vectors", words.kind, words.path, digest)
    if isinstance(sentences, SentenceVectorFiles):
        provenance = _provenance(layout.given_vectors / "vectors.json", sentences.provenance)
        for path in sentences.files:
            # These files are not copied, so no digest of them is recorded.
            yield _given_file("sentence vectors", "files", path, None, provenance)


def _row(
    name: str, kind: str, source: str, sha256: str | None, licences: Sequence[str] = ()
) -> SourceRow:
    row = {"name": name, "kind": kind, "from": source, "sha256": sha256 or NONE}
    return row | {"licence": "; ".join(licences) or UNKNOWN}


def _own_model(params: Params, name: str, kind: str, path: str, sha256: str | None) -> SourceRow:
    return _row(name, kind, path, sha256, card_licences(Path(params.inputs) / path))


def _given_file(
    name: str, kind: str, path: str, sha256: str | None, provenance: Mapping[str, str]
) -> SourceRow:
    details = "; ".join(f"{key}: {value}" for key, value in provenance.items())
    source = f"{path} ({details})" if details else path
    return _row(name, kind, source, sha256, given_licences(provenance))


def _pinned(name: str, source: Mapping[str, Any]) -> Iterator[SourceRow]:
    """Yield a package, each of several, or a place whose files have no recorded digest."""
    for part in source.get("parts") or [source]:
        if "requirement" in part:
            pinned = (part[key] for key in ("requirement", "artifact", "sha256"))
            declared = package_licences(*pinned, folder=part.get("folder"))
            yield _row(name, source["kind"], part["requirement"], part["sha256"], declared)
        else:
            yield _place(name, part)


def _place(name: str, source: Mapping[str, Any]) -> SourceRow:
    origin = source.get("dataset") or source.get("model") or ", ".join(source.get("files", []))
    if not origin:
        made = _row(name, source["kind"], "made from the run's other data", None)
        return made | {"licence": NONE}
    revision = source.get("revision")
    return _row(name, source["kind"], f"{origin} at {revision}" if revision else origin, None)


def _digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that was fetched to a folder, by its path below it."""
    record = folder / "source.json"
    return read_record(record, "sha256")["sha256"] if record.exists() else {}


def _weights(digests: Mapping[str, str], folder: str) -> str | None:
    """Return the SHA-256 of a model's weights; if they are in several files, of each."""
    named = (name for name in digests if name.startswith(f"{folder}/"))
    hashes = [digests[name] for name in named if name.endswith(".safetensors")]
    return ", ".join(hashes) or None


def _provenance(record: Path, settings: dict[str, str]) -> dict[str, str]:
    """Return the provenance in the record of files that were read, or else params.yaml's."""
    return read_record(record, "provenance")["provenance"] if record.exists() else settings
