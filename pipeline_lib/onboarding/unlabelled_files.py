"""Unlabelled texts besides a task's examples: many files, under the task's column names."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.onboarding.columns import look_at
from pipeline_lib.onboarding.guess_columns import choose_texts
from pipeline_lib.onboarding.questions import Ask, Question
from pipeline_lib.params import UNLABELLED
from pipeline_lib.tables.contents import Content, joined, read_content
from pipeline_lib.tables.reader import ReadOptions

_SHOWN = 8
"""How many faulty files are listed before the rest is only counted."""


def read_further(paths: Sequence[Path], text: Sequence[str], options: ReadOptions, ask: Ask) -> Content:
    """Read files of unlabelled texts, one after the other.

    :param text: the task's text columns; :param options: those of its files, whose column names may
        also apply to these.
    """
    contents: list[Content] = []
    faults: list[str] = []
    ask = _once(ask)
    for path in paths:
        try:
            renamed = _renamed(_read(path, options), text, ask)
        except PotstillError as error:
            faults.append(str(error))
            continue
        contents.append(renamed)
    if faults:
        raise PotstillError("\n".join(_counted(faults, len(paths))))
    tables = [content.table.select([*text]) for content in contents]
    return joined([replace(c, table=table) for c, table in zip(contents, tables, strict=True)])


def _read(path: Path, options: ReadOptions) -> Content:
    content, columns = read_content([path], replace(options, columns=None)), options.columns
    if columns is not None and content.is_nameless and len(content.names) == len(columns):
        return read_content([path], options)
    return content


def _renamed(content: Content, text: Sequence[str], ask: Ask) -> Content:
    """Return unlabelled texts under the names of the task's text columns."""
    if set(text) <= set(content.names):
        return content
    path, names = content.paths[0], ", ".join(text)
    part, flag = {UNLABELLED: content}, f"the task's names in this file: {names}"
    columns = choose_texts(look_at(part), part, (), None, ask, flag)
    if len(columns) != len(text):
        raise PotstillError(
            f"{path}: {len(columns)} text columns ({', '.join(columns)}), but the task reads "
            f"{len(text)}. Give them the task's names: {names}."
        )
    table = content.table.select(columns).rename_columns([*text])
    return replace(content, table=table, format=None, columns=None)


def _once(ask: Ask) -> Ask:
    """Ask each question once for all similar files."""
    answers: dict[tuple[str, ...], str] = {}

    def answer(question: Question) -> str:
        key = tuple(question.choices)
        if key not in answers:
            answers[key] = ask(question)
        return answers[key]

    return answer


def _counted(faults: Sequence[str], files: int) -> list[str]:
    """Return the first faults, preceded by how many files have one if there are several."""
    if files == 1:
        return [*faults]
    more = [f"and {len(faults) - _SHOWN:,} more"] if len(faults) > _SHOWN else []
    shown = [f"  {fault}" for fault in [*faults[:_SHOWN], *more]]
    return [f"--unlabelled: {len(faults):,} of {files:,} files cannot be used:", *shown]
