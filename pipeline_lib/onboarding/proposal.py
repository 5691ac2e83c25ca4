"""Turns what a user gave into a proposal: a task, its files, the sections of a profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.model_config import check_problem_type, read_config
from pipeline_lib.onboarding.copy_files import Placement, place
from pipeline_lib.onboarding.findings import Findings, find, kept_rows
from pipeline_lib.onboarding.input_files import files_by_split, files_of_texts, read_further
from pipeline_lib.onboarding.language import Language
from pipeline_lib.onboarding.profile_writer import Wanted, overlay
from pipeline_lib.onboarding.questions import Ask
from pipeline_lib.onboarding.teachers import Chosen, choose_teacher, class_order, in_model_order, named_classes
from pipeline_lib.onboarding.understanding import Overrides, TaskGuess, understand
from pipeline_lib.params import UNLABELLED
from pipeline_lib.tables.contents import Content, read_content
from pipeline_lib.tables.reader import ReadOptions

PROFILES = Path("profiles")
"""The folder of a workspace's own profiles."""
_SPLIT_NAMES = ("train", "training", "all", "data")


@dataclass(frozen=True)
class Request:
    """What a user gave.

    :ivar dev: the dev file; :ivar test: the test file; :ivar options: how to read them;
        :ivar unlabelled: files and folders of more texts.
    :ivar teacher: see :func:`~pipeline_lib.onboarding.teachers.choose_teacher`.
    :ivar students: architectures.
    """

    files: list[Path]
    name: str
    overrides: Overrides
    students: tuple[str, ...]
    dev: Path | None = None
    test: Path | None = None
    options: ReadOptions = field(default_factory=ReadOptions)
    unlabelled: Sequence[Path] = ()
    teacher: str | None = None


@dataclass(frozen=True)
class Inspection:
    """What was found in what a user gave.

    :ivar skipped: files of unknown formats in folders of unlabelled texts.
    :ivar leaves_out: whether odd rows are left out.
    """

    understood: TaskGuess
    findings: Findings
    teacher: Chosen
    unlabelled: Content | None
    skipped: list[Path]
    leaves_out: bool = False


@dataclass(frozen=True)
class Proposal:
    """The files to write, and the sections of the profile."""

    placement: Placement
    sections: dict[str, Any]


def name_of(requested: str | None, files: list[Path]) -> str:
    """Return the task's name: the one given, or that of the first file or its folder."""
    if requested is not None:
        if not requested.replace("_", "").isalnum() or not requested.isascii():
            raise PotstillError(f"--name {requested!r}: use only letters, digits and _ in a name.")
        return requested
    path = files[0].resolve()
    stem = path.parent.name if path.stem.lower() in _SPLIT_NAMES else path.stem
    name = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in stem.lower())
    return name.strip("_")[:100] or "task"


def profile_of(name: str, base: Path) -> Path:
    """Return the path of a task's profile, in this workspace."""
    path = PROFILES / f"{name}.yaml"
    if path.name == base.name:
        raise PotstillError(f"{path}: the profile that others extend. Choose another --name.")
    return path


def inspect_files(request: Request, base: Mapping[str, Any], ask: Ask) -> Inspection:
    """Work out what files are about, and what is odd about their rows.

    :param base: the values of the parameter file that the profile extends.
    """
    splits = files_by_split(request.files, request.dev, request.test)
    # Some rows of QQP's official training file end before their texts.
    contents = {
        split: read_content(paths, replace(request.options, short_rows=split == "train"))
        for split, paths in splits.items()
    }
    [default] = [t["model"] for t in base["teachers"].values() if t["model"] is not None]
    teacher = choose_teacher(request.teacher, [*base["models"]], default)
    answered = None if teacher.runs else named_classes(teacher.path)
    overrides = replace(request.overrides, teacher_kind=teacher.task_kind)
    understood = understand(contents, overrides, answered, ask)
    if teacher.task_kind not in (None, understood.kind):
        check_problem_type(read_config(teacher.path), teacher.path, understood.kind)
        raise PotstillError(
            f"--teacher {request.teacher}: its config.json is of a {teacher.task_kind} "
            f"({teacher.outputs} in num_labels or id2label), and the labels here are a "
            f"{understood.kind}. Give another teacher, or correct --kind and --label."
        )
    if teacher.kind == "finished" and KINDS[understood.kind].has_probabilities:
        labels = in_model_order(teacher.path, understood.labels)
        understood = understood.in_order([*labels])
    if teacher.runs and not understood.is_labelled:
        raise PotstillError(
            f"--teacher {request.teacher}: a model is tuned and scored on labels, but the training "
            "rows have none. Give a file of answers (docs/teacher-files.md)."
        )
    unlabelled = None
    files, skipped = files_of_texts(request.unlabelled)
    if files:
        unlabelled = read_further(files, understood.text, request.options, ask)
    return Inspection(understood, find(understood, unlabelled), teacher, unlabelled, skipped)


def propose(request: Request, inspection: Inspection, base: Mapping[str, Any], language: Language) -> Proposal:
    """Return what to write.

    :param language: the texts'.
    """
    understood, inputs = inspection.understood, Path(base["inputs"])
    contents = {**understood.contents}
    kept = kept_rows(understood, inspection.findings if inspection.leaves_out else None)
    if inspection.unlabelled is not None:
        contents[UNLABELLED] = inspection.unlabelled
        kept[UNLABELLED] = range(inspection.unlabelled.table.num_rows)
    columns = [*understood.text, *understood.label_columns]
    placement = place(contents, columns, kept, request.name, inputs)
    if placement.source["format"] != "parquet":
        # What a user said about the files, the pipeline needs to know, too.
        stated = {"encoding": request.options.encoding, "quoted": request.options.quoted}
        placement.source |= {name: value for name, value in stated.items() if value is not None}
    teacher = inspection.teacher
    if not teacher.runs and KINDS[understood.kind].one_of:
        teacher = replace(teacher, classes=class_order(understood.labels, request.overrides.labels is not None))
    path, where = teacher.path, None
    if path is not None:
        inside = path.resolve().is_relative_to(inputs.resolve())
        where = path.resolve().as_posix()
        if inside:
            where = path.resolve().relative_to(inputs.resolve()).as_posix()
        elif path.is_file():
            # In a folder of their own, since they may be named like a split.
            where = f"{request.name}/answers/{path.name}"
            placement.copies[inputs / where] = path
    wanted = Wanted(
        request.name, understood, inspection.findings, placement.source, teacher, where, request.students, language
    )
    return Proposal(placement, overlay(wanted, base))
