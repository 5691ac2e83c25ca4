"""``distill init --add-labels``: adds rows that were labelled later to a task's training set."""

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.terminal import say
from pipeline_lib.commands.profile import profile_in_use, write_params
from pipeline_lib.params import Params, load_params

if TYPE_CHECKING:
    from pipeline_lib.onboarding.added_labels import AddedLabels
    from pipeline_lib.onboarding.questions import Ask
    from pipeline_lib.tables.reader import ReadOptions

FILE = "added_labels.jsonl"
"""The file in a task's folder of inputs that holds the rows labelled later."""


def refuse_other_flags(given: dict[str, Any]) -> None:
    """Refuse flags that describe a task.

    :param given: the values of flags by name; None or empty if not given.
    """
    for flag, value in given.items():
        if value:
            raise PotstillError(f"{flag}: --add-labels adds rows to a task as it is. Leave one of the two out.")


def add_labels(
    files: Sequence[Path],
    name: str | None,
    text: Sequence[str],
    label: str | None,
    options: "ReadOptions",
    replace: bool,
    params: Path,
    ask: "Ask",
) -> None:
    """Add the labelled rows of files to a task's training set, and say what became of each row.

    :param name: the task's; None: the only one.
    :param text: the text columns, if they have other names than the task's; :param label: the label column.
    :param replace: whether labels replace others that their texts have.
    """
    from pipeline_lib.commands.check import checked_summary
    from pipeline_lib.onboarding.added_labels import PresentRows, added_labels, read_labels
    from pipeline_lib.onboarding.copy_files import taken_back
    from pipeline_lib.onboarding.input_files import checked
    from pipeline_lib.tables.writer import open_writer

    loaded = load_params(params)
    name = _task_of(loaded, name, params)
    task = loaded.task(name)
    if not task.learns_from_labels:
        raise PotstillError(
            f"tasks.{name}: its training rows have no labels, so none can be added. Describe a "
            "task of labelled rows: distill init FILE."
        )
    if KINDS[task.kind].has_several:
        raise PotstillError(
            f"tasks.{name}: its rows have several labels, and --add-labels takes one class or score per row. Put a "
            f"file like the task's own below {loaded.inputs}/, and name it in `tasks.{name}.added_labels` of {params}."
        )
    content = read_labels([checked(path) for path in files], task, options, text, label, ask)
    added = added_labels(content, task, PresentRows.read(loaded, name), replace)
    _tell(name, content.table.num_rows, added)
    if not added.new:
        say("Nothing is new, and nothing was written.")
        return
    target = Path(loaded.inputs) / name / FILE
    if target.exists() and task.added_labels != f"{name}/{FILE}":
        raise PotstillError(
            f"{target}: a file is there already, and {params} does not name it. Write "
            f"`added_labels: {name}/{FILE}` under tasks.{name} to go on from it, or move it away."
        )
    edited, write = _edit(params, name)
    with taken_back([target, edited, params]):
        with open_writer(target) as write_rows:
            write_rows(added.rows, None)
        write()
        checked_summary(params)
    for path in dict.fromkeys([target, edited, params]):
        say(f"written   {path}")
    say("\nNext:  distill run")


def keep_labels(params: Path, name: str, tasks: dict[str, dict[str, Any]]) -> None:
    """Have a task that is described anew keep the labels that were added to it, and say so.

    :param params: the parameter file that is replaced; :param tasks: as in it, to be completed.
    """
    from pipeline_lib.params.profiles import read_values

    former = read_values(params)["tasks"].get(name, {}) if params.exists() else {}
    file = former.get("added_labels")
    if file is None:
        return
    if all(former[key] == tasks[name][key] for key in ("text", "label")):
        tasks[name]["added_labels"] = file
        say(f"kept       {file}: the labels added with --add-labels")
    else:
        say(f"left out   {file}: labels added to other columns; add them again with --add-labels")


def _task_of(params: Params, name: str | None, path: Path) -> str:
    if name is None and len(params.tasks) > 1:
        raise PotstillError(
            f"{path}: there are {len(params.tasks)} tasks, {', '.join(params.tasks)}. Name one "
            f"with --name {next(iter(params.tasks))}."
        )
    return next(iter(params.tasks)) if name is None else name


def _tell(name: str, rows: int, added: "AddedLabels") -> None:
    say(f"labels    {added.new:,} of {rows:,} rows are new to the training set of {name}")
    if added.replaced:
        say(f"replaced  {added.replaced:,} of them replace another label of their text")
    for reason, count in added.skipped.items():
        say(f"skipped   {count:,} {reason}")
    say(f"train     {added.train:,} texts; {added.unlabelled:,} unlabelled ones are left")


def _edit(params: Path, name: str) -> tuple[Path, Callable[[], None]]:
    """Return the file whose edit makes a task name its added labels, and what makes the edit.

    If params.yaml was written from a profile, that is the one that describes the task, or, instead
    of one that travels with the library, a new one.  If people edit params.yaml, it is that file.
    """
    from pipeline_lib.onboarding.profile_writer import overlay_text, with_added_labels, with_command
    from pipeline_lib.onboarding.proposal import PROFILES
    from pipeline_lib.params.profiles import file_of_section, read_values

    used, file = profile_in_use(params), f"{name}/{FILE}"
    if used is None:
        text = with_added_labels(params.read_text(encoding="utf-8"), name, file, params)
        return params, lambda: _write(params, text)
    profile = holder = file_of_section(used, "tasks")
    if profile.parent == PROFILES and profile.stem != "default":
        text = with_added_labels(profile.read_text(encoding="utf-8"), name, file, profile)
        text = with_command(text, _command())
    else:
        profile, tasks = PROFILES / f"{name}.yaml", read_values(params)["tasks"]
        if profile.exists():
            raise PotstillError(
                f"{profile}: a profile of the task's name is there, but params.yaml was not "
                f"written from it. Use it (distill profile use {name}), or move it away."
            )
        tasks[name]["added_labels"] = file
        header = f"{name}: written by `distill init`. {used.name} says what each key does."
        text = overlay_text({"tasks": tasks}, used.name, f"{header}\n    {_command()}")

    def write() -> None:
        _write(profile, text)
        write_params(used if profile == holder else profile, params)

    return profile, write


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _command() -> str:
    return shlex.join(["distill", *sys.argv[1:]]).replace("\n", " ")
