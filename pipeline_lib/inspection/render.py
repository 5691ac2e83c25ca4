"""Prints the rows of a shard set: words coloured by rule, and the teacher's answer below them.

Colour is never the only cue: a line of text says what was changed, so that nothing is lost in
pipes, in logs or on readers who cannot tell the colours apart.
"""

from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from pipeline_lib.inspection.changes import in_words, sentences_of
from pipeline_lib.inspection.view import View
from pipeline_lib.shards.columns import FIRST, MASKED, REPLACED, SECOND

STYLES = {MASKED: "bold red", REPLACED: "cyan underline"}


def print_rows(console: Console, view: View, chosen: np.ndarray) -> None:
    """Print the chosen rows, one block each."""
    for row, record in zip(chosen.tolist(), view.table.take(chosen).to_pylist(), strict=True):
        _print(console, _head(view, row, record))
        for number, side in enumerate((FIRST, SECOND) if f"text{SECOND}" in record else (FIRST,)):
            _print(console, _sentence(record, side))
            if view.is_transfer:
                _print(console, Text(f"  {in_words(sentences_of(record)[number])}", "dim"))
        if view.logits is not None:
            _print(console, _answer(view, row))
        for side in view.vectors or ():
            _print(console, _vector(view, row, side))
        console.print()


def print_totals(console: Console, totals: dict[str, Any], shown: int) -> None:
    """Print the totals of all selected rows, shown or not."""
    _print(console, Text(f"{shown:,} of {totals['rows']:,} rows shown. In all of them:", "bold"))
    for name, value in totals.items():
        if name != "rows":
            _print(
                console,
                Text(f"  {name}: {value:,}" if isinstance(value, int) else f"  {name}: {value}"),
            )


def _print(console: Console, text: Text) -> None:
    console.print(text, highlight=False)


def _head(view: View, row: int, record: dict[str, Any]) -> Text:
    head = Text(f"{view.place(row)}", "bold")
    if "key" in record:
        head.append(f"  key {record['key']:016x}", "dim")
    if "iteration" in record:
        kind = "original" if record["iteration"] == 0 else f"iteration {record['iteration']}"
        head.append(f"  {kind}")
    if record.get("title"):
        head.append(f"  {record['title']}", "italic")
    if "label" in record:
        label = record["label"]
        head.append("  no label" if label is None else f"  label {view.label_name(label)}")
    return head


def _sentence(record: dict[str, Any], side: str) -> Text:
    line = Text("  ")
    if record.get(f"rules{side}") is not None:
        for word, rule in zip(record[f"words{side}"], record[f"rules{side}"], strict=True):
            line.append(word, STYLES.get(rule, "")).append(" ")
        return line
    if f"text{side}" in record:
        return line.append(record[f"text{side}"])
    rest = {name: value for name, value in record.items() if name not in ("key", "label")}
    return line.append("  ".join(f"{name}={value!r:.60}" for name, value in rest.items()))


def _answer(view: View, row: int) -> Text:
    if np.isnan(view.logits[row]).any():
        return Text("  teacher: no answer", "dim")
    if view.is_regression:
        return Text("  teacher: ").append(f"{view.logits[row, 0]:.3f}", "bold green")
    logits, shares = view.logits[row], view.probabilities[row]
    best = int(shares.argmax())
    each = "  ".join(
        f"{view.label_name(i)} {share:.3f} ({logit:+.2f})"
        for i, (share, logit) in enumerate(zip(shares, logits, strict=True))
    )
    line = Text("  teacher: ").append(view.label_name(best), "bold green")
    return line.append(f", {view.entropy[row]:.3f} bits: {each}")


def _vector(view: View, row: int, side: str) -> Text:
    vector = view.vectors[side][np.array([row])][0]
    if np.isnan(vector).any():
        return Text("  vector: none", "dim")
    length = float(np.linalg.norm(vector))
    common = float(vector @ view.common / max(length * np.linalg.norm(view.common), 1e-12))
    first = " ".join(f"{value:+.3f}" for value in vector[:6])
    return Text(f"  vector: length {length:.3f}, cosine with the mean {common:.3f}: {first} …")
