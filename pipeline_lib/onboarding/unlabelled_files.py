"""Unlabelled texts besides a task's examples: many files, under the task's column names."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.onboarding.columns import look_at
from pipeline_lib.onboarding.guess_columns import choose_texts
from pipeline_lib.onboarding.questions import Ask, Question
from pipeline_lib.params import UNLABELLED
from pipeline_lib.tables.contents import Content, read_content

_SHOWN = 8
"""How many faulty files are listed before the rest is only counted."""


def read_further(
    paths: Sequence[Path], text: Sequence[str], columns: list[str] | None, ask: Ask
) -> Content:
    """Read files of unlabelled texts, one after the other.

    :param text: the task's text columns; :param columns: the column names of its files without a
        header line, which may also apply to these files.
    :raises DistilleryError: naming each file that cannot be read, or has other columns.
    """
    contents: list[Content] = []
    faults: list[str] = []
    ask = _once(ask)
    for path in paths:
        try:
            renamed = _renamed(_read(path, columns), text, ask)
        except DistilleryError as error:
            faults.append(str(error))
            continue
        contents.append(renamed)
    if faults:
        raise DistilleryError("\n".join(_counted(faults, len(paths))))
    if len(contents) == 1:
        return contents[0]
    starts, rows = [], 0
    for content in contents:
        starts.append((rows, content.starts[0][1]))
        rows += content.table.num_rows
    tables = [content.table.select([*text]).replace_schema_metadata(None) for content in contents]
    return Content([*paths], pa.concat_tables(tables), starts, None)


def _read(path: Path, columns: list[str] | None) -> Content:
    content = read_content([path])
    if columns is not None and content.is_nameless and len(content.names) == len(columns):
        return read_content([path], columns)
    return content


def _renamed(content: Content, text: Sequence[str], ask: Ask) -> Content:
    """Return unlabelled texts under the names of the task's text columns."""
    if set(text) <= set(content.names):
        return content
    path, names = content.paths[0], ", ".join(text)
    part, flag = {UNLABELLED: content}, f"the task's names in this file: {names}"
    columns = choose_texts(look_at(part), part, (), None, ask, flag)
    if len(columns) != len(text):
        raise DistilleryError(
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
