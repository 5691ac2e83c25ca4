"""What files of answers or vectors contain, how much of the sets they cover, and what they lack."""

from collections.abc import Sequence
from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.outputs.files.answers import Answers
from pipeline_lib.outputs.files.checks import (
    check_answered,
    check_words,
    describe_answers,
    task_sets,
    unrelated_warning,
)
from pipeline_lib.outputs.files.gathering import gathered, reasons_of
from pipeline_lib.outputs.files.keyed_table import KeyedTable, content_keys, read_texts
from pipeline_lib.outputs.files.requests import Texts
from pipeline_lib.outputs.files.vector_files import Vectors
from pipeline_lib.outputs.sentence_sets import read_sides, sentence_sets
from pipeline_lib.params import Params, SentenceVectorFiles, Task
from pipeline_lib.shards.shard_sets import ShardSet, shard_sets

SHOWN = 3
"""Reasons for no answer that a summary shows."""


def vectors_of(params: Params) -> Vectors:
    """Return how files of sentence vectors are read: as set in params.yaml, or by default."""
    settings = params.sentence_vectors
    return Vectors(settings) if isinstance(settings, SentenceVectorFiles) else Vectors.by_default()


def answer_lines(files: Sequence[Path], kind: Answers, name: str, texts: Texts | None) -> list[str]:
    """Describe files of answers, and what share of a task's sets they answer, and how well.

    :param name: the task; :param texts: those of its own files, in case it has no sets yet; None: unknown.
    """
    with gathered(files, kind) as answers:
        return [*kind.described(answers), *_answered(answers, kind.task, name, texts)]


def answer_summary(files: Sequence[Path], kind: Answers, texts: Texts | None) -> str:
    """Return in one line how many of a task's texts files answer, and how.

    :param texts: those of the task's own files; None: unknown.
    """
    with gathered(files, kind) as answers:
        summary = f"{len(answers):,} answers"
        if texts is not None:
            count, total = coverage(answers, texts)
            check_answered(count, total, answers.origins.names)
            summary = f"{count:,} of {total:,} texts answered"
        without = [f"{n:,} rows without: {reason}" for reason, n in reasons_of(answers)[:SHOWN]]
        return "; ".join([summary, *without, *kind.bare_labels(answers)])


def vector_lines(files: Sequence[Path], kind: Vectors, params: Params) -> list[str]:
    """Describe files of sentence vectors, and count the encoders' sentences that have one."""
    with gathered(files, kind) as vectors:
        return [*kind.described(vectors), *_embedded(vectors, params)]


def coverage(table: KeyedTable, batches: Texts) -> tuple[int, int]:
    """Return how many texts have a value, and how many there are."""
    count = total = 0
    for texts in batches:
        indices = table.find(content_keys(texts))
        count, total = count + int((indices >= 0).sum()), total + len(indices)
    return count, total


def _coverage_lines(counts: dict[Path | str, tuple[int, int]], what: str) -> list[str]:
    return [f"{where}: {n:,} of {total:,} {what} ({n / max(total, 1):.1%})" for where, (n, total) in counts.items()]


def _answered(answers: KeyedTable, task: Task, name: str, texts: Texts | None) -> list[str]:
    layout, counts = Layout(), {}
    above = [path for path in (layout.task(name), layout.transfer_sets(name)) if path.exists()]
    for folder in (subfolder for path in above for subfolder in shard_sets(path)):
        counts[folder] = coverage(answers, (read_texts(rows, answers.mask) for rows in ShardSet.open(folder).tables()))
    if not counts and texts is not None:
        counts["the task's own files"] = coverage(answers, texts)
    if not counts:
        return ["coverage unknown, since the task has no sets yet: run `dvc repro augment`"]
    check_answered(*map(sum, zip(*counts.values(), strict=True)), answers.origins.names)
    lines = _coverage_lines(counts, "rows answered")
    if not layout.task(name).exists():
        return lines
    record = describe_answers(answers, task, task_sets(layout.task(name)))
    training = "training", record.training_rows, record.training_agreement
    for split, rows, agreed in (training, ("dev", record.dev_rows, record.best_dev)):
        if agreed is not None:
            lines.append(f"agreement with {rows:,} {split} labels: {agreed:.4f}")
    warning = unrelated_warning(answers.origins.names, "answers", record.predicted_from_words)
    return lines + [warning] * (warning is not None)


def _embedded(vectors: KeyedTable, params: Params) -> list[str]:
    if not params.sentence_encoders():
        return ["no encoder in params.yaml is trained on sentence vectors"]
    sets = [each for each in sentence_sets(params, Layout()) if (each.inputs / "manifest.json").exists()]
    if not sets:
        return ["coverage unknown without sentences: run `dvc repro split_wikipedia augment`"]
    counts = {s.inputs: coverage(vectors, ([texts] for texts in read_sides(s, vectors.mask))) for s in sets}
    count, total = map(sum, zip(*counts.values(), strict=True))
    where = vectors.origins.names
    if total and not count:
        raise PotstillError(
            f"{where}: none of the {total:,} sentences that encoders read has a vector: the file's "
            "texts, or the ids of its requests, are of others. Write them with `distill teacher vector-requests`."
        )
    correlation = check_words(vectors, "vectors", ShardSet.open(sets[0].inputs).tables(), where)
    warning = unrelated_warning(where, "vectors", correlation)
    return [*_coverage_lines(counts, "sentences have a vector"), *[warning] * (warning is not None)]
