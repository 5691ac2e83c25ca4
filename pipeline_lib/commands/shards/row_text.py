"""Prints single rows: their changes in colour and as text, labels, and the models' answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from pipeline_lib.inspection.changes import RuleName, Sentence, in_words, sentences_of
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.rows import Answer, InspectedRow, Names, answer, label_name

_STYLES: dict[RuleName, str] = {"mask": "bold red", "replace": "cyan underline"}


def print_row(console: Console, row: InspectedRow, measure: str = "", gap: bool = True) -> None:
    """Print one row as a block.

    :param measure: what its score means; :param gap: whether an empty line follows.
    """
    head = Text(row.id, "bold")
    if row.rules:
        head.append(f"  {', '.join(row.rules)}")
    if row.label is not None:
        head.append(f"  label {_value(row.label)}")
    if row.score is not None:
        head.append(f"  {row.score:.4f} {measure}", "dim")
    print_text(console, head)
    for sentence in row.sentences:
        print_text(console, _coloured(sentence))
        if row.rules and row.rules != ["original"]:
            print_text(console, Text(f"  {in_words(sentence)}", "dim"))
    print_answer(console, "teacher", row.teacher)
    print_answer(console, "student", row.student)
    if row.original is not None:
        for sentence in row.original.sentences:
            print_text(console, Text("  from: ", "dim").append(sentence.text))
        print_answer(console, "teacher to that", row.original.teacher)
    if gap:
        console.print()


def print_stored_row(console: Console, rows: JoinedRows, batch: RowBatch, names: Names) -> None:
    """Print a batch of one row as a block.

    Colour is never the only cue: a line of text says what was changed, so that nothing is lost in
    pipes, in logs or on readers who cannot tell the colours apart.
    """
    record = batch.table.to_pylist()[0]
    print_text(console, _head(rows.place(batch.shard, batch.start), record, names))
    sentences = sentences_of(record)
    for sentence in sentences:
        print_text(console, _coloured(sentence))
        if rows.is_transfer:
            print_text(console, Text(f"  {in_words(sentence)}", "dim"))
    further = {n: batch.answers[n][n][0].as_py() for n in rows.further}
    if values := further if sentences else record | further:
        rest = [f"{n}={v!r:.60}" for n, v in values.items() if n not in ("key", "label")]
        print_text(console, Text("  " + "  ".join(rest)))
    if batch.logits is not None:
        teacher = answer(batch.logits, names, rows.kind)
        if teacher is None:
            print_text(console, Text("  teacher: no answer", "dim"))
        print_answer(console, "teacher", teacher, batch.logits[0].tolist())
    for vectors in batch.vectors.values():
        print_text(console, _vector(vectors[0]))
    console.print()


def _head(location: str, record: dict[str, Any], names: Names) -> Text:
    head = Text(location, "bold")
    if "key" in record:
        head.append(f"  key {record['key']:016x}", "dim")
    if "iteration" in record:
        kind = f"iteration {record['iteration']}" if record["iteration"] else "original"
        head.append(f"  {kind}")
    if record.get("title"):
        head.append(f"  {record['title']}", "italic")
    if "label" in record:
        label = label_name(record["label"], names)
        head.append("  no label" if label is None else f"  label {_value(label)}")
    return head


def _vector(vector: np.ndarray) -> Text:
    if np.isnan(vector).any():
        return Text("  vector: none", "dim")
    length = float(np.linalg.norm(vector))
    first = " ".join(f"{value:+.3f}" for value in vector[:6])
    return Text(f"  vector: length {length:.3f}: {first} …")


def _coloured(sentence: Sentence) -> Text:
    line = Text("  ").append(sentence.text)
    for span in sentence.spans:
        line.stylize(_STYLES[span.rule], span.start + 2, span.end + 2)
    return line


def print_answer(console: Console, who: str, answer: Answer | None, logits: Sequence[float] = ()) -> None:
    """Print a line with one model's answer, with its logits if given; nothing if there is none."""
    if answer is None:
        return
    line = Text(f"  {who}: ")
    if answer.entropy is None:
        line.append(_value(answer.answer), "bold green")
    else:
        shares = [f"{name} {share:.3f}" for name, share in answer.probabilities.items()]
        if logits:
            shares = [f"{s} ({logit:+.2f})" for s, logit in zip(shares, logits, strict=True)]
        line.append(answer.answer, "bold green")
        line.append(f", {answer.entropy:.3f} bits: {'  '.join(shares)}")
    print_text(console, line)


def _value(value: str | float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else value


def print_text(console: Console, text: Text) -> None:
    """Print a line whose colours are only those it was given."""
    console.print(text, highlight=False)
