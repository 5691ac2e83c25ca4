"""``distill init``: from a user's files to parameters that ``dvc repro`` runs."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pipeline_lib.onboarding.findings import Findings, Place
    from pipeline_lib.onboarding.proposal import Looked
    from pipeline_lib.onboarding.questions import Question
    from pipeline_lib.onboarding.understanding import Understood, Wishes

EXAMPLE = "Example: distill init reviews.csv"
BASE = Path("profiles/default.yaml")
SHOWN = 8
"""Row numbers, and classes, that are named before the rest is counted."""


class Kind(StrEnum):
    """What a label is."""

    classification = "classification"
    regression = "regression"


class Students(StrEnum):
    """Which students a task gets: a BiLSTM and a mean of word vectors, or every architecture."""

    small = "small"
    all = "all"


def init(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="CSV, TSV, JSON lines, Parquet; or a data folder."),
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="The task's; by default the file's.")
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", help="The text column; two (a,b) make a pair.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="The label column, or none: nothing is labelled.")
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="Whether labels are classes or scores.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="Classes, as 'bad=1,2;good=4,5'; of scores, 0..5."),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option("--metrics", help="As accuracy,f1; the first chooses on dev.")
    ] = None,
    dev: Annotated[str | None, typer.Option("--dev", help="The dev file, or its share.")] = None,
    test: Annotated[str | None, typer.Option("--test", help="The test file, or its share.")] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", help="Names, a,b,c, where there is no header line.")
    ] = None,
    unlabelled: Annotated[
        list[Path] | None,
        typer.Option("--unlabelled", help="More texts, a file or a folder; again for others."),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option("--teacher", help="A row of `models`, a model's folder, a file of answers."),
    ] = None,
    students: Annotated[
        Students, typer.Option("--students", help="Two architectures, or all of them.")
    ] = Students.small,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave odd rows out, in a copy of the files.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Give up what stands where something is written.")
    ] = False,
    params: Annotated[Path, typer.Option("--params", help="The file to write.")] = Path(
        "params.yaml"
    ),
) -> None:
    """Describe your files: say what they hold, and write the parameters of a run on them.

    Every guess can be overridden by a flag. What is ambiguous is asked on a terminal; elsewhere it
    is an error that names the flag. Files that do not lie below `inputs` are copied there; what
    differs from the embedded run is written to profiles/NAME.yaml, and params.yaml from it.
    """
    from rich.console import Console

    from pipeline_lib.commands.check import check
    from pipeline_lib.commands.profile import keep_own_changes, write_params
    from pipeline_lib.onboarding import proposal
    from pipeline_lib.onboarding.overlay import overlay_text
    from pipeline_lib.onboarding.students import ALL, SMALL
    from pipeline_lib.params.profiles import read_values

    dev_share, dev_file = _share_or_file(dev)
    test_share, test_file = _share_or_file(test)
    wishes = _wishes(text, label, kind, labels, metrics, dev_share, test_share)
    request = proposal.Request(
        *(files, proposal.name_of(name, files), wishes, ALL if students == "all" else SMALL),
        *(dev_file, test_file, _listed(columns) or None, unlabelled or (), teacher),
    )
    profile = proposal.profile_of(request.name, BASE)
    if not force:
        keep_own_changes(params)
    base, console = read_values(BASE), Console()
    looked = proposal.look(request, base, _ask)
    if leave_out:
        looked = proposal.leave_out(looked)
    show(console, looked)
    if looked.findings.stopping and not looked.leaves_out:
        _ask_to_leave_out(looked.findings)
        looked = proposal.leave_out(looked)
    found = proposal.propose(request, looked, base)
    header = f"{request.name}: written by `distill init`. What a key does stands in default.yaml."
    said = overlay_text(found.sections, BASE, BASE.parent, f"{header}\n    {_command()}")
    _refuse_other(profile, said, force)
    found.placement.write(force)
    for path in (*found.placement.copies, *found.placement.tables):
        typer.echo(f"written   {path}")
    profile.write_text(said, encoding="utf-8")
    write_params(profile, params)
    typer.echo(f"written   {profile}; {params} from it (back: distill profile use default)\n")
    check(params)
    _say_next(request.name, found.sections, pair=len(looked.understood.text) == 2)


def show(console: "Console", looked: "Looked") -> None:
    """Print what was understood, and what is odd."""
    from rich.text import Text

    for title, line in _lines(looked):
        said = Text().append(f"{title:<11}", "bold").append(line)
        console.print(said, highlight=False, soft_wrap=True)
    if looked.findings.classes and any(looked.findings.classes.values()):
        console.print(_class_table(looked.findings))
    for line in _oddities(looked):
        said = Text().append(f"{'odd':<11}", "bold yellow").append(line)
        console.print(said, highlight=False, soft_wrap=True)


def _lines(looked: "Looked") -> Iterator[tuple[str, str]]:
    """Yield what was understood: a title, and what is said of it."""
    understood, findings = looked.understood, looked.findings
    for split, content in understood.contents.items():
        paths = ", ".join(map(str, content.paths))
        note = " (no header line)" if content.is_nameless else ""
        names = f"{', '.join(content.names)}{note}"
        yield split, f"{paths}: {content.table.num_rows:,} rows, {names}"
    median, most, longest = findings.words
    words = f"words: {median} (median), {most} at most in 95 %, {longest} in the longest"
    pair = " (a pair)" if len(understood.text) == 2 else ""
    yield "text", f"{', '.join(understood.text)}{pair}; {words}"
    yield "label", _label(understood)
    yield "metrics", ", ".join(understood.metrics)
    rows = ", ".join(f"{name} {count:,}" for name, count in findings.rows.items())
    own = understood.split
    drawn = [f"{name} {own[name]:.0%}" for name in ("dev", "test") if own and own[name]]
    note = f" (drawn: {', '.join(drawn)}; equal texts stay together)" if drawn else " (given)"
    yield "splits", rows + note
    for split in findings.hidden:
        yield split, "no labels: predicted, not scored"
    if looked.unlabelled is not None:
        yield "more texts", _more_texts(looked)
    if looked.aside:
        yield "aside", f"{_some(list(map(str, looked.aside)))}: no format goes with these endings"
    teacher = looked.teacher
    how = {"single": "fine-tuned here", "finished": "as it is", "answers": "answers in a file"}
    yield "teacher", f"{teacher.path or teacher.model}, {how[teacher.kind]}"


def _more_texts(looked: "Looked") -> str:
    further, paths = looked.findings.further, [str(path) for path in looked.unlabelled.paths]
    counts = ((further.known, "among the rows above"), (further.repeated, "repeated"))
    left_out = [f"{n:,} {why}" for n, why in (*counts, (further.empty, "empty")) if n]
    note = f" (left out: {', '.join(left_out)})" if left_out else ""
    return f"{_some(paths)}: {further.texts:,}, answered by the teacher{note}"


def _label(understood: "Understood") -> str:
    label = understood.label
    column = "none" if label is None else label
    if isinstance(label, dict):
        column = ", ".join(f"{name} in {split}" for split, name in label.items())
    if understood.kind == "regression":
        low, high = understood.labels["min"], understood.labels["max"]
        return f"{column}: regression, {low:g} to {high:g}"
    named = [
        name if meaning in ([name], []) else f"{name} ({_meaning(meaning)})"
        for name, meaning in understood.labels.items()
    ]
    return f"{column}: classification, {len(named)} classes: {_some(named)}"


def _meaning(meaning: Any) -> str:
    if isinstance(meaning, dict):
        return f"{meaning['min']:g} to {meaning['max']:g}"
    return ", ".join(meaning)


def _class_table(findings: "Findings") -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("Class", overflow="fold")
    for split in findings.classes:
        table.add_column(split, justify="right")
    totals: dict[str, int] = {}
    for counts in findings.classes.values():
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
    order = sorted(totals, key=totals.__getitem__, reverse=True)
    for name in [*order[: 2 * SHOWN], *(order[-1:] if len(order) > 2 * SHOWN else ())]:
        cells = (f"{counts.get(name, 0):,}" for counts in findings.classes.values())
        table.add_row(Text(name), *cells)
    if len(order) > 2 * SHOWN + 1:
        table.caption = f"and {len(order) - 2 * SHOWN - 1} more between the last two"
    return table


def _oddities(looked: "Looked") -> Iterator[str]:
    from pipeline_lib.onboarding.findings import LONELY

    findings = looked.findings
    for odd in findings.odd:
        what = "left out" if looked.leaves_out or not odd.stops else "cannot stay"
        what = "kept" if odd.reason == LONELY else what
        yield f"{odd.split}: {_count(odd.places)} {odd.reason} ({what}): {_rows(odd.places)}"
    if findings.repeated:
        other = f", {findings.conflicts:,} under another label" if findings.conflicts else ""
        yield f"texts that stand twice in a split: {findings.repeated:,}{other}"
    for own in findings.shared:
        other = f", {own.other_label:,} under another label" if own.other_label else ""
        yield (
            f"{own.rows:,} of {own.split} stand in {own.earlier} too{other}: {_rows(own.places)}"
        )


def _count(places: Sequence["Place"]) -> str:
    return "1 row" if len(places) == 1 else f"{len(places):,} rows"


def _rows(places: Sequence["Place"]) -> str:
    """Name rows by file and number, the first of them."""
    by_file: dict[Path, list[str]] = {}
    for path, row in places[:SHOWN]:
        by_file.setdefault(path, []).append(str(row))
    named = "; ".join(f"{path} row {', '.join(rows)}" for path, rows in by_file.items())
    more = len(places) - SHOWN
    return f"{named} and {more:,} more" if more > 0 else named


def _some(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _ask(question: "Question") -> str:
    """Ask on a terminal.

    :raises DistilleryError: elsewhere, naming the flag that answers it.
    """
    from pipeline_lib.onboarding.questions import refuse

    if not sys.stdin.isatty():
        return refuse(question)
    typer.echo(question.text)
    for number, choice in enumerate(question.choices, 1):
        typer.echo(f"  {number}  {choice}")
    chosen = 0
    while not 1 <= chosen <= len(question.choices):
        chosen = typer.prompt(f"1 to {len(question.choices)}", type=int)
    return question.choices[chosen - 1]


def _ask_to_leave_out(findings: "Findings") -> None:
    """Ask whether rows that cannot stay are left out.

    :raises DistilleryError: if they are not to be.
    """
    from pipeline_lib.base.errors import DistilleryError
    from pipeline_lib.onboarding.findings import MISSING
    from pipeline_lib.onboarding.questions import Question

    named = "; ".join(f"{odd.reason}: {_rows(odd.places)}" for odd in findings.stopping)
    question = f"rows cannot stay as they are ({named}). Leave odd rows out, in a copy?"
    flag = "--leave-out, or correct them"
    if any(odd.reason == MISSING for odd in findings.stopping):
        flag += "; their texts can be more texts, with --unlabelled and the same file"
    if _ask(Question(question, ["yes", "no"], flag)) == "no":
        raise DistilleryError("nothing was written. Correct the rows, and run this again.")


def _wishes(
    text: list[str] | None,
    label: str | None,
    kind: Kind | None,
    labels: str | None,
    metrics: str | None,
    dev: float | None,
    test: float | None,
) -> "Wishes":
    from pipeline_lib.onboarding.understanding import Wishes

    texts = [name for given in text or () for name in _listed(given)]
    own = kind.value if kind else None
    return Wishes(texts, label, own, labels, _listed(metrics), dev, test)


def _share_or_file(given: str | None) -> tuple[float | None, Path | None]:
    """Return what --dev or --test says: a share of the rows, or a file."""
    from pipeline_lib.base.errors import DistilleryError

    if given is None:
        return None, None
    try:
        share = float(given)
    except ValueError:
        return None, Path(given)
    if not 0.0 <= share < 1.0:
        raise DistilleryError(f"{given}: a share lies between 0 and 1; or name a file.")
    return share, None


def _listed(given: str | None) -> list[str]:
    return [part.strip() for part in given.split(",") if part.strip()] if given else []


def _refuse_other(profile: Path, text: str, force: bool) -> None:
    """Refuse to write over another profile."""
    from pipeline_lib.base.errors import DistilleryError

    if not force and profile.exists() and profile.read_text(encoding="utf-8") != text:
        raise DistilleryError(
            f"{profile}: another profile is there. Choose another --name, or give it up with "
            "--force."
        )


def _command() -> str:
    """Return the command line, for the profile's comment."""
    return shlex.join(["distill", *sys.argv[1:]]).replace("\n", " ")


def _say_next(task: str, sections: dict[str, Any], pair: bool) -> None:
    [*_, last] = (name for name in sections["methods"] if name.startswith("bilstm"))
    student = f"data/students/{task}/{last}/1"
    typer.echo("")
    typer.echo("Next:  dvc repro")
    typer.echo("       distill results")
    example = "$'one sentence\\tand another'" if pair else '"a sentence"'
    typer.echo(f"       distill predict {student} {example}")
    typer.echo(f"       distill export {student} exported --to onnx-int8")
