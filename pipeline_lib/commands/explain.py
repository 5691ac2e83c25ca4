"""``distill explain``: which words matter to a prediction, for teacher, student and baseline."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import student_place
from pipeline_lib.base.terminal import say_json
from pipeline_lib.base.text import printable
from pipeline_lib.commands.options import PARAMS, ParamsFile

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text as Cell

    from pipeline_lib.base.text import Text as Sentences
    from pipeline_lib.models.folders import Predict
    from pipeline_lib.models.students.student import Student
    from pipeline_lib.models.word_importance import Importance

    Explained = tuple[Predict, str]
    """A model's prediction function, and what it reads for a masked word."""

EXAMPLE = 'Example: distill explain data/students/movies/bilstm_kd_ts/1 "A joy from start to end."'
WARM, COLD = (255, 90, 60), (70, 130, 255)
"""The colours of the greatest rise and the greatest fall."""


def explain(
    model: Annotated[Path, Argument(help="A student's folder.")],
    texts: Annotated[list[str], Argument(metavar="TEXT", help="Sentences; a pair has a tab between.")],
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
    regression, it is the change of the score. Of several labels, one is explained: whether it applies. A word beyond
    what a model reads changes nothing.
    """
    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.models.folders import require_model
    from pipeline_lib.models.students.student import load_student
    from pipeline_lib.models.word_importance import as_json as json_of
    from pipeline_lib.models.word_importance import word_importance
    from pipeline_lib.tables.input_texts import as_examples

    require_model(model)
    student = load_student(model)
    console, explained = SafeConsole(), []
    _check_label(model, student, label)
    models = dict(_models(model, student, teacher, baseline, params))
    for text in as_examples(texts, student.is_pair):
        asked, names = models, student.label_names
        if KINDS[student.kind].has_several:
            asked, names = _of_label(text, models, student, label)
        importances = {
            name: word_importance(text, predict, mask, not KINDS[student.kind].has_probabilities)
            for name, (predict, mask) in asked.items()
        }
        if as_json:
            explained.append(json_of(text, importances, names))
        else:
            console.print(_heat_map(importances, names))
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
) -> tuple["dict[str, Explained]", list[str]]:
    """Return the models as they answer for one label, and what the two answers are called.

    :param label: its name; None: the one that the student finds likeliest for the text.
    """
    from pipeline_lib.models.word_importance import label_choice, of_label

    names = student.label_names
    number = int(student.logits([text])[0].argmax()) if label is None else names.index(label)
    asked = {name: (of_label(predict, number), mask) for name, (predict, mask) in models.items()}
    return asked, label_choice(names[number])


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
        yield f"teacher {teacher.name}", (predict, opened.pieces.mask_sign)
    yield _name(model), serving.student_in_use(model, student)
    if baseline is not None:
        yield _name(baseline), serving.student_in_use(baseline, load_student(baseline))


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
    most = max(abs(change) for importance in importances.values() for change in importance.changes) or 1.0
    i = 0
    for words in next(iter(importances.values())).words:
        for number, word in enumerate(words):
            cells = (_cell(importance, i + number, most, names) for importance in importances.values())
            # A line parts the sentences of a pair.
            table.add_row(Text(printable(word)), *cells, end_section=number == len(words) - 1)
        i += len(words)
    return table


def _answer(importance: "Importance", names: list[str]) -> str:
    best = int(importance.answer.argmax())
    return f"{names[best]} {importance.answer[best]:.3f}"


def _cell(importance: "Importance", word: int, most: float, names: list[str]) -> "Cell":
    from rich.text import Text

    change, answer = float(importance.changes[word]), int(importance.masked[word].argmax())
    other = "" if answer == int(importance.answer.argmax()) else f" {names[answer]}"
    strength = abs(change) / most
    colour = WARM if change > 0 else COLD
    red, green, blue = (round(255 + strength * (end - 255)) for end in colour)
    # + 0.0 after rounding: nothing is to read -0.000.
    return Text(f"{round(change, 3) + 0.0:+.3f}{other}", f"black on rgb({red},{green},{blue})")
