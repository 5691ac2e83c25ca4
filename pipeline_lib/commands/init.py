"""``distill init``: turns a user's files into parameters that ``dvc repro`` can run."""

import shlex
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.terminal import say
from pipeline_lib.base.workspace import check_pipeline, make_workspace
from pipeline_lib.commands.options import PARAMS, Encoding, NoScm, Quoted, WrittenParams, read_options
from pipeline_lib.onboarding.students import ARCHITECTURES, Size

if TYPE_CHECKING:
    from pipeline_lib.corpora.tasks.findings import Findings
    from pipeline_lib.onboarding.questions import Question
    from pipeline_lib.onboarding.teachers import Chosen
    from pipeline_lib.params import Task

EXAMPLE = "Example: distill init reviews.csv"
AS_TEXTS = "use the texts of those without a label, leave out the others"
TRIED_PIECES = 128
"""Word pieces of a text where a teacher is tried."""
Kind = StrEnum("Kind", [*KINDS])


def init(
    context: typer.Context,
    files: Annotated[
        list[Path] | None, Argument(metavar="FILE", help="CSV, TSV, JSON, Parquet, …; or a data folder.")
    ] = None,
    name: Annotated[str | None, Option(help="The task's name; by default the file's.")] = None,
    text: Annotated[list[str] | None, Option(help="The text column; two (a,b) make a pair.")] = None,
    label: Annotated[
        str | None, Option(help="The label column, or several of 0 and 1 (a,b,c); none: no labels.")
    ] = None,
    kind: Annotated[Kind | None, Option(help="What labels are; multilabel: a row may have several.")] = None,
    labels: Annotated[str | None, Option(help="The classes, e.g. 'bad=1,2;good=4,5'; for scores, 0..5.")] = None,
    metrics: Annotated[str | None, Option(help="E.g. accuracy,f1; the first selects models on dev.")] = None,
    positive: Annotated[str | None, Option(help="The class whose F1 is reported, of two.")] = None,
    dev: Annotated[str | None, Option(help="The dev file, or the share of rows to draw.")] = None,
    test: Annotated[str | None, Option(help="The test file, or the share of rows to draw.")] = None,
    columns: Annotated[str | None, Option(help="Column names, a,b,c, if there is no header.")] = None,
    encoding: Encoding = None,
    quoted: Quoted = None,
    unlabelled: Annotated[
        list[Path] | None,
        Option(help="Texts without a label, which the teacher answers: a file or a folder; repeatable."),
    ] = None,
    teacher: Annotated[str | None, Option(help="A row of `models`, a model folder or a file of answers.")] = None,
    force_teacher: Annotated[
        bool, Option("--force-teacher", help="Use a finished model even if its answers contradict the labels.")
    ] = False,
    students: Annotated[
        Size, Option(help="Two small architectures, or just the fastest or the most accurate one.")
    ] = "small",
    leave_out: Annotated[bool, Option("--leave-out", help="Leave out odd rows, in a copy of the files.")] = False,
    no_scm: NoScm = False,
    force: Annotated[bool, Option("--force", help="Overwrite files that are in the way.")] = False,
    params: WrittenParams = PARAMS,
) -> None:
    """Inspect your files, show what they contain, and write the parameters of a run on them.

    The folder becomes a workspace, if it is none: dvc.yaml, params.yaml, data/, git and DVC. A flag
    overrides any guess. On a terminal, you are asked about anything ambiguous; elsewhere it is an
    error that names the flag. Files elsewhere are copied to data/input. What differs from the
    default is written to profiles/NAME.yaml, and params.yaml is generated from it.

    Without a FILE, the workspace is one of the bundled data; what is there already is left as it is, but for a
    dvc.yaml of another version, which --force replaces.
    """
    if not files:
        _make_bundled(context, not no_scm, force)
        return
    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.commands.check import checked_summary
    from pipeline_lib.commands.init_findings import language_of, show, show_reading
    from pipeline_lib.commands.profile import find_profile, keep_own_changes, write_params
    from pipeline_lib.corpora.tasks.findings import find, rows_to_keep
    from pipeline_lib.onboarding import proposal
    from pipeline_lib.onboarding.copy_files import taken_back
    from pipeline_lib.onboarding.profile_writer import Amounts
    from pipeline_lib.onboarding.questions import Request
    from pipeline_lib.onboarding.teachers import choose_teacher
    from pipeline_lib.outputs.files.answer_rows import named_classes
    from pipeline_lib.params.profiles import read_values

    texts = [column for value in text or () for column in _listed(value)]
    options = replace(read_options(encoding=encoding, quoted=quoted), columns=_listed(columns) or None)
    request = Request(
        files,
        proposal.name_of(name, files),
        texts,
        label,
        kind and kind.value,
        labels,
        _listed(metrics),
        positive,
        _share_or_file(dev),
        _share_or_file(test),
        options,
        unlabelled or (),
        teacher,
        ARCHITECTURES[students],
    )
    default = find_profile("default")
    profile = proposal.profile_of(request.name, default)
    check_pipeline(Path("."), force)
    if not force:
        keep_own_changes(params)
    base, console = read_values(default), SafeConsole()
    [tuned] = [row["model"] for row in base["teachers"].values() if row["model"] is not None]
    chosen = replace(choose_teacher(teacher, [*base["models"]], tuned), force=force_teacher)
    answered = {"answers": named_classes, "scored": lambda _: []}.get(chosen.kind, lambda _: None)(chosen.path)
    inspection = proposal.inspect_files(request, chosen, answered, _ask)
    understood = inspection.understood
    findings = find(understood.checked(), understood.contents, understood.examples, inspection.unlabelled)
    _check_teacher(chosen)
    if chosen.kind == "finished" and understood.is_labelled:
        _try_teacher(chosen, understood.checked(), findings)
    show(console, inspection, findings, leave_out)
    if findings.stopping and not leave_out:
        if _ask_of_odd_rows(findings) == AS_TEXTS:
            request = replace(request, unlabelled=[*request.unlabelled, *files])
            inspection = proposal.with_texts_of(inspection, request, _ask)
            findings = find(understood.checked(), understood.contents, understood.examples, inspection.unlabelled)
            say(f"more texts {findings.further.texts:,}, answered by the teacher")
        leave_out = True
    rows = rows_to_keep(understood.contents, findings.odd if leave_out else [])
    language = language_of(inspection)
    amounts = Amounts(findings.rows["train"], findings.further.texts, findings.words[1])
    placement, sections = proposal.propose(request, inspection, rows, amounts, language, base)
    show_reading(console, inspection, findings, language, base | sections)
    written = _profile_text(profile, sections, default)
    _refuse_other(profile, written, force)
    files_written = [*placement.copies, *placement.tables]
    with taken_back([*files_written, profile, params]):
        placement.write(force)
        profile.parent.mkdir(exist_ok=True)
        profile.write_text(written, encoding="utf-8")
        write_params(profile, params)
        summary = checked_summary(params)
        made = make_workspace(Path("."), not no_scm, force)
    for path in [*made, *files_written]:
        say(f"written   {path}")
    say(f"written   {profile}; {params} from it (back: distill profile use default)\n")
    for line in summary:
        say(line)
    _say_next(request.name, pair=len(understood.text) == 2)


def _make_bundled(context: typer.Context, scm: bool, force: bool) -> None:
    from pipeline_lib.commands.profile import find_profile, write_params

    for name in {*context.params} - {"no_scm", "force"}:
        if context.get_parameter_source(name).name != "DEFAULT":
            raise PotstillError(f"--{name.replace('_', '-')}: it describes a file. Name one: distill init FILE.")
    for path in make_workspace(Path("."), scm, force):
        say(f"written   {path}")
    if not PARAMS.exists():
        write_params(find_profile("default"), PARAMS)
        say(f"written   {PARAMS}, from the profile default")
    say("\nNext:  distill run    # or first other settings: distill profile list")


def _check_teacher(teacher: "Chosen") -> None:
    """Check that a user's own model can be loaded, before anything is written."""
    if teacher.path is None or not teacher.path.is_dir():
        return
    from pipeline_lib.models.fitting import base_faults, finished_faults, language_model_faults
    from pipeline_lib.params.preflight import check_model

    check_model(teacher.path, f"--teacher {teacher.path}")
    of_kind = {"finished": finished_faults, "single": base_faults, "scored": language_model_faults}[teacher.kind]
    for fault in of_kind(teacher.path):
        raise PotstillError(f"--teacher {fault}")


def _try_teacher(teacher: "Chosen", task: "Task", findings: "Findings") -> None:
    """Hold a finished model's answers to some labelled rows against their labels."""
    from pipeline_lib.base.errors import faults_of
    from pipeline_lib.base.kinds import label_array
    from pipeline_lib.base.model_config import position_count, read_config
    from pipeline_lib.models.opening import load_teacher
    from pipeline_lib.shards.columns import texts

    rows, length = findings.labelled, min(TRIED_PIECES, position_count(read_config(teacher.path)) or TRIED_PIECES)
    outputs = load_teacher(teacher.path, "cpu", "float32").predict(texts(rows), length, 8 * length)
    answers = f"--teacher {teacher.path}", label_array(rows["label"]), outputs, task.label_names
    for fault in faults_of(KINDS[task.kind].check_answers, *answers):
        if not teacher.force:
            raise PotstillError(f"{fault} To use it all the same, give --force-teacher.")
        say(f"warning: {fault}")


def _profile_text(profile: Path, sections: dict[str, Any], default: Path) -> str:
    from pipeline_lib.onboarding.profile_writer import overlay_text

    header = f"{profile.stem}: written by `distill init`. default.yaml says what each key does."
    command = shlex.join(["distill", *sys.argv[1:]]).replace("\n", " ")
    return overlay_text(sections, default.name, f"{header}\n    {command}")


def _ask(question: "Question") -> str:
    from pipeline_lib.onboarding.questions import refuse

    if not sys.stdin.isatty():
        return refuse(question)
    say(question.text)
    for number, choice in enumerate(question.choices, 1):
        say(f"  {number}  {choice}")
    chosen = 0
    while not 1 <= chosen <= len(question.choices):
        chosen = typer.prompt(f"1 to {len(question.choices)}", type=int)
    return question.choices[chosen - 1]


def _ask_of_odd_rows(findings: "Findings") -> str:
    """Ask what to do with rows that cannot be used as they are; those without a label may be used as texts."""
    from pipeline_lib.commands.init_findings import named_rows
    from pipeline_lib.corpora.tasks.findings import MISSING
    from pipeline_lib.onboarding.questions import Question

    named = "; ".join(f"{odd.reason}: {named_rows(odd.places)}" for odd in findings.stopping)
    choices, flag = ["leave them out, in a copy", "write nothing"], "--leave-out, or correct them"
    if any(odd.reason.startswith(f"{MISSING} (") for odd in findings.stopping):
        flag += "; if that is a class, name all classes with --labels 'A;B'"
    if any(odd.reason.startswith(MISSING) for odd in findings.stopping):
        choices, flag = [AS_TEXTS, *choices], f"{flag}; to use just their texts, --leave-out --unlabelled FILE too"
    rows = sum(len(odd.places) for odd in findings.stopping)
    answer = _ask(Question(f"{rows:,} rows cannot be used as they are ({named}). What now?", choices, flag))
    if answer == choices[-1]:
        raise PotstillError("nothing was written. Correct the rows, and run this again.")
    return answer


def _share_or_file(value: str | None) -> float | Path | None:
    try:
        share = None if value is None else float(value)
    except ValueError:
        return Path(value)
    if share is not None and not 0.0 <= share < 1.0:
        raise PotstillError(f"{value}: a share must be at least 0 and below 1. Or name a file.")
    return share


def _listed(value: str | None) -> list[str]:
    return [entry.strip() for entry in value.split(",") if entry.strip()] if value else []


def _refuse_other(profile: Path, text: str, force: bool) -> None:
    if not force and profile.exists() and profile.read_text(encoding="utf-8") != text:
        raise PotstillError(
            f"{profile}: a different profile is there already. Choose another --name, or overwrite it with --force."
        )


def _say_next(task: str, pair: bool) -> None:
    example = "$'one sentence\\tand another'" if pair else '"a sentence"'
    say("\nNext:  distill plan    # what will run, and for how long")
    say("       distill run")
    say(f"       distill predict data/exports/{task} {example}    # the best student, in int8")
