"""Describes files of sentence vectors for ``distill check`` and ``distill teacher``."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline_lib.outputs.files.vector_table import GivenVectors
    from pipeline_lib.params import Params, SentenceVectorFiles


def vector_settings(params: "Params") -> "SentenceVectorFiles":
    """Return how files of sentence vectors are read: as set in params.yaml, or by default."""
    from pipeline_lib.params import SentenceVectorFiles

    if isinstance(params.sentence_vectors, SentenceVectorFiles):
        return params.sentence_vectors
    return usual_settings()


def usual_settings() -> "SentenceVectorFiles":
    """Return the default settings for reading files of sentence vectors."""
    from pipeline_lib.params import SentenceVectorFiles

    values = {"files": ["-"], "format": None, "mask": "[MASK]", "provenance": {}}
    return SentenceVectorFiles.model_validate(values | {"storage": "float32"})


@contextmanager
def gathered(files: Sequence[Path], settings: "SentenceVectorFiles") -> Iterator["GivenVectors"]:
    """Yield the vectors of files, kept in a temporary folder until the block ends.

    :raises DistilleryError: if they are invalid.
    """
    from pipeline_lib.outputs.files.vector_table import gather_vectors

    with tempfile.TemporaryDirectory() as folder:
        yield gather_vectors(files, settings, Path(folder))


def vector_lines(
    files: Sequence[Path], settings: "SentenceVectorFiles", params: "Params"
) -> list[str]:
    """Describe files of sentence vectors, and count the encoders' sentences that have one.

    :raises DistilleryError: if the vectors are invalid.
    """
    with gathered(files, settings) as vectors:
        where = ", ".join(path.name for path in files)
        return [*_described(vectors), *_covered(vectors, settings, params, where)]


def _described(vectors: "GivenVectors") -> list[str]:
    import numpy as np

    from pipeline_lib.outputs.files.answers import frequent

    lengths = np.linalg.norm(vectors.vectors[vectors.places[:10_000]], axis=1)
    lines = [", ".join(f"{count:,} {what}" for what, count in vectors.counts.items())]
    lines += [f"error, {count:,} rows: {reason}" for reason, count in frequent(vectors.errors)]
    lines.append(
        f"{vectors.width:,} values each, of length {lengths.min():.3f} to {lengths.max():.3f}"
    )
    return lines + [f"{name}: {value}" for name, value in vectors.provenance.items()]


def _covered(
    vectors: "GivenVectors", settings: "SentenceVectorFiles", params: "Params", where: str
) -> list[str]:
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.outputs.files.vector_checks import check_related
    from pipeline_lib.outputs.sentence_sets import covered, sentence_sets
    from pipeline_lib.shards.shard_sets import ShardSet

    if not params.sentence_encoders():
        return ["no encoder in params.yaml is trained on sentence vectors"]
    wanted = sentence_sets(params, Layout())
    there = [shard_set for shard_set in wanted if (shard_set.inputs / "manifest.json").exists()]
    if not there:
        return ["coverage unknown without sentences: run `dvc repro split_wikipedia augment`"]
    lines = []
    for shard_set in there:
        known, total = covered(shard_set, vectors, settings.mask)
        share = f"{known:,} of {total:,} sentences have a vector ({known / max(total, 1):.1%})"
        lines.append(f"{shard_set.inputs}: {share}")
    tables = ShardSet.open(there[0].inputs).tables()
    warning = check_related(vectors, tables, settings.mask, where)
    return lines + [warning] * (warning is not None)


def vector_requests(params: "Params", out: Path, model: str | None) -> str:
    """Write the sentences that have no vector yet; return a message for the user.

    :param model: the model of an OpenAI batch; None writes just the rows.
    :raises DistilleryError: if there are no sentences yet.
    """
    from functools import partial

    from pipeline_lib.base.errors import DistilleryError
    from pipeline_lib.base.files import write_json_lines
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.outputs.files.llm_batches import embedding_request, requests_of
    from pipeline_lib.outputs.sentence_sets import read_sides, sentence_sets

    settings, sets = vector_settings(params), sentence_sets(params, Layout())
    missing = [
        shard_set.inputs for shard_set in sets if not (shard_set.inputs / "manifest.json").exists()
    ]
    if missing or not params.sentence_encoders():
        raise DistilleryError(
            f"{missing[0]}: not there yet. Run `dvc repro split_wikipedia augment` first."
            if missing
            else "encoders: none is trained on sentence vectors. Add a row to params.yaml."
        )
    # If a model computes the vectors, there are no files.
    named = settings.files if settings is params.sentence_vectors else []
    paths = [Path(params.inputs) / path for path in named]
    there = [path for path in paths if path.exists()]
    sentences = ([texts] for shard_set in sets for texts in read_sides(shard_set, settings.mask))
    with _known(there, settings) as vectors:
        rows = requests_of(sentences, vectors)
        if model is not None:
            rows = map(partial(embedding_request, model=model), rows)
        count = write_json_lines(out, rows)
    absent = [str(path) for path in paths if path not in there]
    note = f" ({', '.join(absent)} not there yet)" if absent else ""
    return f"{out}: {count:,} sentences need a vector{note}"


@contextmanager
def _known(
    files: Sequence[Path], settings: "SentenceVectorFiles"
) -> Iterator["GivenVectors | None"]:
    if not files:
        yield None
        return
    with gathered(files, settings) as vectors:
        yield vectors
