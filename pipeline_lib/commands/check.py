"""``distill check``: whether params.yaml is valid, its files exist, and what it would train."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.base.terminal import say

if TYPE_CHECKING:
    from pipeline_lib.params import Params
    from pipeline_lib.params.base import Section
    from pipeline_lib.params.sources import RunSource

LENGTH = ("epochs", "max_steps", "evaluate_every")
"""The keys of an optimiser that set how long it trains."""
EXAMPLE = "Example: distill check --params params.yaml"


def check(
    params: Annotated[Path, typer.Option("--params", help="The parameter file.", show_default=True)] = Path(
        "params.yaml"
    ),
) -> None:
    """Check params.yaml and the files it names, and show what would be trained.

    If anything is wrong, prints one line per fault and exits with status 1.
    """
    from pipeline_lib.params import load_params

    for line in checked_summary(params):
        say(line)
    for line in unfair_comparisons(load_params(params)):
        say(line)


def checked_summary(params: Path) -> list[str]:
    """Check a parameter file and the files it names; return what would be trained."""
    from pipeline_lib.base.errors import PotstillError
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.models.fitting import loading_faults, student_faults
    from pipeline_lib.params import load_params
    from pipeline_lib.params.preflight import format_faults, model_faults

    loaded = load_params(params)
    faults = [
        f"{params}: {file.key}: {file.must_exist} not found. Put the file there or correct the key."
        for file in loaded.input_files()
        if not file.must_exist.exists()
    ]
    # The models can be inspected only once all their files exist, and loaded once these are whole.
    faults = faults or model_faults(loaded) + format_faults(loaded)
    faults = faults or loading_faults(loaded)
    answers = []
    if not faults:
        answers, faults = answer_findings(loaded)
    faults = faults or student_faults(loaded, Layout())
    if faults:
        raise PotstillError("\n".join(faults))
    return [*summary(loaded), *answers]


def answer_findings(params: "Params") -> tuple[list[str], list[str]]:
    """Return a line per task that a teacher's files answer, and why they cannot be used."""
    from pipeline_lib.base.errors import PotstillError
    from pipeline_lib.corpora.tasks.fetching import source_texts
    from pipeline_lib.outputs.files.answers import Answers
    from pipeline_lib.outputs.files.describe import answer_summary

    lines, faults = [], []
    external = {n: row.tuning for n, row in params.teachers.items() if row.tuning.kind == "answers"}
    pairs = [(n, task) for n in external for task in params.tasks if params.teachers[n].knows(task)]
    for teacher, name in pairs:
        kind = Answers(external[teacher], params.tasks[name])
        paths = [Path(params.inputs) / path for path in kind.settings.paths(name)]
        try:
            summary = answer_summary(paths, kind, source_texts(params, name))
            lines.append(f"answers   {teacher} to {name}: {summary}")
        except PotstillError as error:
            faults.append(str(error))
    return lines, faults


def summary(params: "Params") -> list[str]:
    """Return what would be trained, and what would be fetched for it."""
    rows, seeds = sum(len(params.methods_of(task)) for task in params.tasks), len(params.seeds)
    tasks = f"{len(params.tasks)} task{'s' * (len(params.tasks) != 1)}"
    recipes = sorted({method.data for method in params.methods.values()})
    lines = [
        "params.yaml is valid.",
        f"tasks     {', '.join(params.tasks)}",
        f"teachers  {'; '.join(f'{name}: {_tuned(params, name)}' for name in params.teachers)}",
        f"methods   {', '.join(params.methods)}",
        f"data      {', '.join(recipes)}",
        f"students  {rows} rows of {tasks} × {seeds} seeds = {rows * seeds}",
    ]
    lines += [
        f"joint     {name}: {', '.join(row.tasks)} × {seeds} seeds = {seeds}" for name, row in params.joint.items()
    ]
    lines += [f"retrieval {name}: {', '.join(row.systems)}" for name, row in params.retrieval.items()]
    # Other sources are local.
    inputs, sources = Path(params.inputs), params.sources().values()
    online = [source for source in sources if source.packages or (source.hub and not source.files(inputs))]
    fetched = dict.fromkeys(map(_where, online))
    return [*lines, f"fetched   {', '.join(fetched) or 'nothing'}"]


def unfair_comparisons(params: "Params") -> list[str]:
    """Return a warning for each row that differs from its baseline in more than the method.

    The method is the objective, the transfer set and the start; with a different student or
    different learning rates, a gain is not due to the method alone.  A different training length
    is fair: each row has the one that suits it best.
    """
    warnings = []
    for name, row in params.methods.items():
        if row.baseline is None:
            continue
        base = params.methods[row.baseline]
        differences = _different(params.students[row.student], params.students[base.student])
        optimisers = params.optimiser_of(row), params.optimiser_of(base)
        differences += _different(*optimisers, leave_out=LENGTH)
        if differences:
            warnings.append(
                f"warning: methods.{name} differs from its baseline {row.baseline} in more than "
                f"the method: {', '.join(differences)}."
            )
        if row.start in params.joint and row.optimiser and base.start not in params.joint:
            warnings.append(
                f"note: methods.{name} is trained twice, jointly with {row.start} and then with "
                f"optimiser {row.optimiser}; its baseline {row.baseline} once."
            )
    return warnings


def _different(one: "Section", other: "Section", leave_out: tuple[str, ...] = ()) -> list[str]:
    first, second = one.model_dump(exclude=set(leave_out)), other.model_dump(exclude=set(leave_out))
    return [
        f"{key} {first.get(key)} instead of {second.get(key)}"
        for key in first | second
        if first.get(key) != second.get(key)
    ]


def _tuned(params: "Params", name: str) -> str:
    teacher = params.teachers[name]
    if teacher.tuning.kind == "answers":
        return f"answers in {', '.join(teacher.tuning.files)}"
    if teacher.model is None:
        return f"{teacher.tuning.checkpoint}, used as it is"
    how = {"refined": "refined on its tasks jointly", "probe": "with a linear layer fitted here"}
    how |= {"scored": "a language model, as it is"}
    how = how.get(teacher.tuning.kind, "fine-tuned here")
    return f"{_where(params.sources()[f'model {teacher.model}'])}, {how}"


def _where(source: "RunSource") -> str:
    names = [package.requirement for package in source.packages]
    names = names or [source.hub or ", ".join(path for _, path in source.paths)]
    return f"{names[0]} and {len(names) - 1} more" if names[1:] else names[0]
