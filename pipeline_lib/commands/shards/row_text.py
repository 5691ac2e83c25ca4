"""Prints single rows: their changes in colour and as text, labels, and the models' answers."""

from rich.console import Console
from rich.text import Text

from pipeline_lib.inspection.changes import WORD_RULES, Sentence, in_words
from pipeline_lib.inspection.render import STYLES
from pipeline_lib.inspection.rows import Answer, InspectedRow

_STYLES = {name: STYLES[rule] for rule, name in WORD_RULES.items()}


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
    _print(console, head)
    for sentence in row.sentences:
        _print(console, coloured(sentence))
        if row.rules and row.rules != ["original"]:
            _print(console, Text(f"  {in_words(sentence)}", "dim"))
    print_answer(console, "teacher", row.teacher)
    print_answer(console, "student", row.student)
    if row.original is not None:
        for sentence in row.original.sentences:
            _print(console, Text("  from: ", "dim").append(sentence.text))
        print_answer(console, "teacher to that", row.original.teacher)
    if gap:
        console.print()


def coloured(sentence: Sentence) -> Text:
    """Return a sentence with each changed word in the colour of its rule."""
    line = Text("  ").append(sentence.text)
    for span in sentence.spans:
        line.stylize(_STYLES[span.rule], span.start + 2, span.end + 2)
    return line


def print_answer(console: Console, who: str, answer: Answer | None) -> None:
    """Print a line with one model's answer; nothing if there is none."""
    if answer is None:
        return
    line = Text(f"  {who}: ")
    if answer.entropy is None:
        line.append(_value(answer.answer), "bold green")
    else:
        shares = "  ".join(f"{name} {share:.3f}" for name, share in answer.probabilities.items())
        line.append(answer.answer, "bold green").append(f", {answer.entropy:.3f} bits: {shares}")
    _print(console, line)


def _value(value: str | float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else value


def _print(console: Console, text: Text) -> None:
    console.print(text, highlight=False)
