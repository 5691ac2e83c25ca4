"""What files of answers contain, how much of the sets they cover, and what they lack."""

from collections.abc import Sequence
from pathlib import Path

from pipeline_lib.base.layout import Layout
from pipeline_lib.outputs.files.answers import Answers
from pipeline_lib.outputs.files.checks import check_answered, describe_answers, task_sets
from pipeline_lib.outputs.files.gathering import frequent, gather
from pipeline_lib.outputs.files.keyed_table import KeyedTable, content_keys, read_texts
from pipeline_lib.outputs.files.requests import Texts
from pipeline_lib.params import Task
from pipeline_lib.shards.shard_sets import ShardSet, shard_sets

SHOWN = 3
"""Reasons for no answer that a summary shows."""


def answer_lines(files: Sequence[Path], kind: Answers, name: str, texts: Texts | None) -> list[str]:
    """Describe files of answers, and what share of a task's sets they answer, and how well.

    :param name: the task; :param texts: those of its own files, in case it has no sets yet; None: unknown.
    """
    answers = gather(files, kind)
    return [*kind.described(answers), *_answered(answers, kind.task, name, texts)]


def answer_summary(files: Sequence[Path], kind: Answers, texts: Texts | None) -> str:
    """Return in one line how many of a task's texts files answer, and how.

    :param texts: those of the task's own files; None: unknown.
    """
    answers = gather(files, kind)
    summary = f"{len(answers):,} answers"
    if texts is not None:
        count, total = coverage(answers, texts)
        check_answered(count, total, answers.origins.names)
        summary = f"{count:,} of {total:,} texts answered"
    without = [f"{n:,} rows without: {reason}" for reason, n in frequent(answers.errors)[:SHOWN]]
    return "; ".join([summary, *without, *kind.bare_labels(answers)])


def coverage(table: KeyedTable, batches: Texts) -> tuple[int, int]:
    """Return how many texts have a value, and how many there are."""
    count = total = 0
    for texts in batches:
        indices = table.find(content_keys(texts))
        count, total = count + int((indices >= 0).sum()), total + len(indices)
    return count, total


def _answered(answers: KeyedTable, task: Task, name: str, texts: Texts | None) -> list[str]:
    layout, counts = Layout(), {}
    above = [path for path in (layout.task(name), layout.transfer_sets(name)) if path.exists()]
    for folder in (subfolder for path in above for subfolder in shard_sets(path)):
        counts[folder] = coverage(answers, (read_texts(rows, answers.mask) for rows in ShardSet.open(folder).tables()))
    if not counts and texts is not None:
        counts["the task's own files"] = coverage(answers, texts)
    if not counts:
        return ["coverage unknown, since the task has no sets yet: run `distill run augment`"]
    check_answered(*map(sum, zip(*counts.values(), strict=True)), answers.origins.names)
    lines = [f"{at}: {n:,} of {total:,} rows answered ({n / max(total, 1):.1%})" for at, (n, total) in counts.items()]
    if not layout.task(name).exists():
        return lines
    record = describe_answers(answers, task, task_sets(layout.task(name)))
    training = "training", record.training_rows, record.training_agreement
    for split, rows, agreed in (training, ("dev", record.dev_rows, record.best_dev)):
        if agreed is not None:
            lines.append(f"agreement with {rows:,} {split} labels: {agreed:.4f}")
    return lines
