"""Turns what a user gave into a proposal: a task, its files, the sections of a profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.model_config import check_problem_type, read_config
from pipeline_lib.onboarding.copy_files import Placement, place
from pipeline_lib.onboarding.input_files import files_by_split, files_of_texts, read_further
from pipeline_lib.onboarding.language import Language
from pipeline_lib.onboarding.profile_writer import Amounts, NewTask, overlay
from pipeline_lib.onboarding.questions import Ask, Request
from pipeline_lib.onboarding.teachers import Chosen, class_order, in_model_order
from pipeline_lib.onboarding.understanding import TaskGuess, understand
from pipeline_lib.params import UNLABELLED
from pipeline_lib.tables.contents import Content, read_content

PROFILES = Path("profiles")
"""The folder of a workspace's own profiles."""
_SPLIT_NAMES = ("train", "training", "all", "data")


@dataclass(frozen=True)
class Inspection:
    """What a user gave is about.

    :ivar unlabelled: further texts; :ivar skipped: files of unknown formats in their folders.
    """

    understood: TaskGuess
    teacher: Chosen
    unlabelled: Content | None
    skipped: list[Path]


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


def inspect_files(request: Request, teacher: Chosen, answered: Sequence[str] | None, ask: Ask) -> Inspection:
    """Work out what files are about.

    :param answered: the classes that the teacher's file of answers names; None: it has none.
    """
    splits = files_by_split(request.files, request.dev, request.test)
    # Some rows of QQP's official training file end before their texts.
    contents = {
        split: read_content(paths, replace(request.options, short_rows=split == "train"))
        for split, paths in splits.items()
    }
    understood = understand(contents, request, answered, ask, teacher.task_kind)
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
    if teacher.runs and teacher.kind != "scored" and not understood.is_labelled:
        raise PotstillError(
            f"--teacher {request.teacher}: a model is tuned and scored on labels, but the training "
            "rows have none. Give a language model's folder, or a file of answers (docs/teacher-files.md)."
        )
    return with_texts_of(Inspection(understood, teacher, None, []), request, ask)


def with_texts_of(inspection: Inspection, request: Request, ask: Ask) -> Inspection:
    """Return an inspection with the texts of a request's unlabelled files."""
    files, skipped = files_of_texts(request.unlabelled)
    unlabelled = read_further(files, inspection.understood.text, request.options, ask) if files else None
    return replace(inspection, unlabelled=unlabelled, skipped=skipped)


def propose(
    request: Request,
    inspection: Inspection,
    rows: Mapping[str, Sequence[int]],
    amounts: Amounts,
    language: Language,
    base: Mapping[str, Any],
) -> tuple[Placement, dict[str, Any]]:
    """Return the files to write, and the sections of the profile.

    :param rows: those of each split to keep; :param language: the texts'.
    :param base: the values of the parameter file that the profile extends.
    """
    understood, inputs = inspection.understood, Path(base["inputs"])
    contents = {**understood.contents}
    if inspection.unlabelled is not None:
        contents[UNLABELLED] = inspection.unlabelled
        rows = {**rows, UNLABELLED: range(inspection.unlabelled.table.num_rows)}
    placement = place(contents, [*understood.text, *understood.label_columns], rows, request.name, inputs)
    if placement.source["format"] != "parquet":
        # What a user said about the files, the pipeline needs to know, too.
        stated = {"encoding": request.options.encoding, "quoted": request.options.quoted}
        placement.source |= {name: value for name, value in stated.items() if value is not None}
    teacher, where = inspection.teacher, None
    if not teacher.runs and KINDS[understood.kind].one_of:
        teacher = replace(teacher, classes=class_order(understood.labels, request.labels is not None))
    if teacher.path is not None:
        where = teacher.path.resolve().as_posix()
        if teacher.path.resolve().is_relative_to(inputs.resolve()):
            where = teacher.path.resolve().relative_to(inputs.resolve()).as_posix()
        elif teacher.path.is_file():
            # In a folder of their own, since they may be named like a split.
            where = f"{request.name}/answers/{teacher.path.name}"
            placement.copies[inputs / where] = teacher.path
    task = NewTask(request, understood, amounts, placement.source, teacher, where, language)
    return placement, overlay(task, base)
