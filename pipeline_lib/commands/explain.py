"""``distill explain``: which words matter to a prediction, for teacher, student and baseline."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import student_place
from pipeline_lib.base.terminal import say, say_json
from pipeline_lib.base.text import printable
from pipeline_lib.commands.options import PARAMS, ParamsFile

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table
    from rich.text import Text as Cell

    from pipeline_lib.base.progress import Advance
    from pipeline_lib.base.text import Text as Sentences
    from pipeline_lib.models.students.folders import Predict
    from pipeline_lib.models.students.student import Student
    from pipeline_lib.models.word_importance import Importance

EXAMPLE = 'Example: distill explain data/students/movies/bilstm_kd_ts/1 "A joy from start to end."'
WARM, COLD = (255, 90, 60), (70, 130, 255)
"""The colours of the greatest rise and the greatest fall."""


def explain(
    model: Annotated[Path, Argument(help="A student's folder.")],
    texts: Annotated[list[str], Argument(metavar="TEXT...", help="Sentences; a pair has a tab between.")],
    teacher: Annotated[Path | None, Option(help="A teacher's folder; else that of its row.")] = None,
    baseline: Annotated[Path | None, Option(help="Another student; else its row's baseline.")] = None,
    label: Annotated[str | None, Option(help="Of several labels, the one to explain; else the likeliest.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print everything as JSON.")] = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Show what changes in the prediction as each word is masked.

    A row per word, a column per model: the teacher if it is a model, the student, and the student that was trained
    without a teacher. Without a decisive word a classifier becomes unsure: the number is the rise of the
    prediction's entropy, in bits, followed by the class predicted without the word where that is another. For a
    regression, it is the change of the score. Of several labels, one is explained: whether it applies.
    """
    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.models.checks import require_model
    from pipeline_lib.models.word_importance import as_json as json_of
    from pipeline_lib.tables.input_texts import as_examples

    require_model(model)
    from pipeline_lib.models.students.student import load_student

    student = load_student(model)
    console, explained = SafeConsole(), []
    _check_label(model, student, label)
    models = dict(_models(model, student, teacher, baseline, params))
    for text in as_examples(texts, student.is_pair):
        asked, names = models, student.label_names
        if KINDS[student.kind].has_several:
            asked, names = _of_label(text, models, student, label)
        importances = _importances(text, asked, not KINDS[student.kind].has_probabilities)
        if as_json:
            explained.append(json_of(text, importances, names))
        else:
            console.print(_heat_map(importances, names))
            for line in _beyond(importances):
                say(line)
    if as_json:
        say_json(explained, indent=2)


def _check_label(model: Path, student: "Student", label: str | None) -> None:
    names = student.label_names
    if label is not None and not KINDS[student.kind].has_several:
        raise PotstillError(f"--label: {model} gives a text one answer. Leave it out.")
    if label is not None and label not in names:
        raise PotstillError(f"--label: no label {label!r}; there are {', '.join(names)}.")


def _of_label(
    text: "Sentences", models: "dict[str, Explained]", student: "Student", label: str | None
) -> "tuple[dict[str, Explained], list[str]]":
    """Return the models as they answer for one label, and what the two answers are called.

    :param label: its name; None: the one that the student finds likeliest for the text.
    """
    from pipeline_lib.models.word_importance import label_choice, of_label

    names = student.label_names
    number = int(student.logits([text])[0].argmax()) if label is None else names.index(label)
    asked = {name: replace(one, predict=of_label(one.predict, number)) for name, one in models.items()}
    return asked, label_choice(names[number])


PART = 32
"""Variants of a text that are answered between two reports of progress."""


@dataclass(frozen=True)
class Explained:
    """A model whose prediction is explained.

    :ivar mask: what it reads for a masked word.
    :ivar read: tells how many characters of each sentence it reads.
    """

    predict: "Predict"
    mask: str
    read: "Callable[[Sentences], tuple[int, ...]]"


def _importances(text: "Sentences", models: "dict[str, Explained]", is_score: bool) -> "dict[str, Importance]":
    """Mask each word that a model reads, for each model, showing progress."""
    from pipeline_lib.base.progress import show_progress
    from pipeline_lib.models.word_importance import word_counts, word_importance

    read = {name: word_counts(text, one.read(text)) for name, one in models.items()}
    total, done = sum(1 + sum(counts) for counts in read.values()), 0
    importances = {}
    shown: AbstractContextManager[Advance] = nullcontext(lambda *_: None)
    if total > PART:
        shown = show_progress("explaining", "variants", err=True)
    with shown as advance:
        for name, one in models.items():
            predict = _in_parts(one.predict, advance, done, total)
            importances[name] = word_importance(text, predict, one.mask, is_score, read[name])
            done += 1 + sum(read[name])
    return importances


def _in_parts(predict: "Predict", advance: "Advance", done: int, total: int) -> "Predict":
    """Return the function, answering some texts at a time and reporting them.

    :param done: of ``total`` texts, how many were answered before.
    """
    import numpy as np

    def in_parts(texts: "Sequence[Sentences]") -> "np.ndarray":
        outputs = []
        for start in range(0, len(texts), PART):
            # The first part may be all there is, and needs no report.
            if done + start:
                advance(done + start, total)
            outputs.append(predict(texts[start : start + PART]))
        return np.concatenate(outputs)

    return in_parts


def _beyond(importances: "dict[str, Importance]") -> Iterator[str]:
    """Yield what to say of words that a model does not read."""
    sentences = next(iter(importances.values())).words
    for side, words in enumerate(sentences):
        counts = {name: importance.read[side] for name, importance in importances.items()}
        which = ("first", "second")[side] + " " if len(sentences) > 1 else ""
        if min(counts.values()) < len(words):
            read = ", ".join(f"{name} {count:,}" for name, count in counts.items())
            yield f"The {which}text has {len(words):,} words. Of these are read by: {read}."
        if (most := max(counts.values())) < len(words):
            yield (
                f"Nobody reads the last {len(words) - most:,} words of the {which}text, which "
                f"begin with {words[most]!r:.80}."
            )


def _models(
    model: Path, student: "Student", teacher: Path | None, baseline: Path | None, params: Path
) -> Iterator[tuple[str, "Explained"]]:
    """Yield what is known of the teacher, the student and its baseline, by name."""
    from pipeline_lib.models import serving
    from pipeline_lib.models.students.student import load_student
    from pipeline_lib.params import load_params

    length = None
    if student_place(model) is not None and params.exists():
        loaded = load_params(params)
        if teacher is None:
            teacher, length = serving.teacher_of(model, loaded) or (None, None)
        baseline = baseline or serving.baseline_of(model, loaded)
    if teacher is not None:
        opened, predict = serving.open_teacher(teacher, student.label_names, length)
        pieces, longest = opened.pieces, serving.longest_of(opened, teacher, length)
        read = partial(pieces.characters_read, limit=longest)
        yield f"teacher {teacher.name}", Explained(predict, pieces.mask_sign, read)
    yield _name(model), _explained(model, student)
    if baseline is not None:
        yield _name(baseline), _explained(baseline, load_student(baseline))


def _explained(folder: Path, student: "Student") -> "Explained":
    from pipeline_lib.models.serving import student_in_use

    return Explained(*student_in_use(folder, student), student.reader.characters_read)


def _name(folder: Path) -> str:
    student = student_place(folder)
    return str(folder) if student is None else student.method


def _heat_map(importances: dict[str, "Importance"], names: list[str]) -> "Table":
    """Return a row per word and a column per model; the colour says what the number says."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("Masked", overflow="fold")
    for name in importances:
        table.add_column(Text(name), justify="right", overflow="fold")
    table.add_row("nothing", *(Text(_answer(importance, names)) for importance in importances.values()))
    entropies = ("" if importance.is_score else f"{importance.entropy:.3f} bits" for importance in importances.values())
    table.add_row("", *entropies, end_section=True)
    changes = [abs(change) for one in importances.values() for change in one.changes]
    most = max((change for change in changes if change == change), default=0.0) or 1.0
    i = 0
    for side, words in enumerate(next(iter(importances.values())).words):
        # Words that nobody reads are counted below the table.
        shown = max(importance.read[side] for importance in importances.values())
        for number, word in enumerate(words[:shown]):
            cells = (_cell(one, i + number, most, names) for one in importances.values())
            # A line parts the sentences of a pair.
            table.add_row(Text(printable(word)), *cells, end_section=number == shown - 1)
        i += len(words)
    return table


def _answer(importance: "Importance", names: list[str]) -> str:
    best = int(importance.answer.argmax())
    return f"{names[best]} {importance.answer[best]:.3f}"


def _cell(importance: "Importance", word: int, most: float, names: list[str]) -> "Cell":
    from rich.text import Text

    change, answer = float(importance.changes[word]), int(importance.masked[word].argmax())
    if change != change:
        return Text("not read", "dim")
    other = "" if answer == int(importance.answer.argmax()) else f" {names[answer]}"
    part = abs(change) / most
    colour = WARM if change > 0 else COLD
    red, green, blue = (round(255 + part * (end - 255)) for end in colour)
    # + 0.0 after rounding: nothing is to read -0.000.
    return Text(f"{round(change, 3) + 0.0:+.3f}{other}", f"black on rgb({red},{green},{blue})")
