"""``distill submit``: writes a GLUE submission from predictions on hidden test sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.commands.options import PARAMS, ParamsFile

if TYPE_CHECKING:
    import numpy as np

    from pipeline_lib.params import Params
    from pipeline_lib.results.schema import TaskScores

EXAMPLE = "Example: distill submit bilstm_kd_ts --out submission.zip"


def submit(
    systems: Annotated[list[str], Argument(help="Methods or teachers of params.yaml.")],
    out: Annotated[Path, Option(help="The zip to write.")] = Path("submission.zip"),
    fill: Annotated[bool, Option("--fill", help="Write constant answers for files without a task.")] = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Write the predictions of one system as a GLUE submission.

    A task's `submission` says which test split goes into which official file. If several systems
    are named, each task uses the first one it has; for a method, the best seed on dev. Nothing is
    written unless every file satisfies the benchmark's rules.
    """
    from pipeline_lib.exports.submission import answers, params_faults, write_submission
    from pipeline_lib.params import load_params

    loaded = load_params(params)
    if faults := params_faults(loaded):
        raise PotstillError("\n".join(f"{params}: {fault}" for fault in faults))
    for system in systems:
        if system not in loaded.teachers:
            loaded.method(system)  # raises an error that lists the methods, if there is none
    submitted = {name: task for name, task in loaded.tasks.items() if task.submission}
    chosen = {task: _system(loaded, task, systems) for task in submitted}
    files: dict[str, list[str]] = {}
    for task, settings in submitted.items():
        for split, name in settings.submission.items():
            outputs, column = _outputs(loaded, task, split, chosen[task])
            files[name] = answers(settings, name, outputs)
            say(f"{name}: {len(outputs):,} answers of {column} on {task} {split}")
    for name in write_submission(out, files, fill):
        say(f"{name}: constant answer")
    say(f"wrote {out}")


def _system(params: "Params", task: str, systems: list[str]) -> str:
    """Return the first of the systems that a task has."""
    known = [*params.teachers_of(task), *params.scored_methods_of(task)]
    name = next((system for system in systems if system in known), None)
    if name is None:
        raise PotstillError(
            f"tasks.{task}: no row {' or '.join(systems)}; there are {', '.join(known)}. Name one of these too."
        )
    return name


def _outputs(params: "Params", task: str, split: str, system: str) -> tuple["np.ndarray", str]:
    """Return the system's outputs for one split, and the column of predictions they come from."""
    import numpy as np

    from pipeline_lib.results.diagrams import read_predictions
    from pipeline_lib.results.schema import TaskScores
    from pipeline_lib.shards.columns import matrix

    layout = Layout()
    folder, column = layout.results(task), system
    if system not in params.teachers:
        scores = TaskScores.read(layout.scores(task))
        column = f"{system}-{_best_seed(scores, system, folder)}"
    rows = read_predictions(layout, task, split)
    if not rows.num_rows:
        raise PotstillError(
            f"{folder}: no predictions for the split {split!r}. Name it in the task's source, and run `dvc repro`."
        )
    outputs = matrix(rows[column])
    if np.isnan(outputs).any():
        raise PotstillError(
            f"{folder}: {column} did not answer {int(np.isnan(outputs).any(1).sum()):,} rows of "
            f"{split}. Submit a method, or have these answered (`distill teacher requests`)."
        )
    return outputs, column


def _best_seed(scores: "TaskScores", method: str, folder: Path) -> str:
    if method not in scores.methods:
        raise PotstillError(f"{folder}: {method} was not evaluated. Run `dvc repro`.")
    by_seed = scores.methods[method].scores["dev"][scores.metric].by_seed
    return max(by_seed, key=by_seed.__getitem__)
