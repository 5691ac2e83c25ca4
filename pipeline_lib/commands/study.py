"""``distill study``: runs a predefined sweep and plots it."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.commands.options import PARAMS, ParamsFile

EXAMPLE = "Example: distill study hidden --task movies"


def study(
    name: Annotated[str, Argument(help="ablation, size, hidden, fractions, wikipedia or curves.")],
    task: Annotated[str | None, Option(help="A task of params.yaml; by default its first.")] = None,
    row: Annotated[str, Option(help="The distilled method to start from.")] = "bilstm_kd_ts",
    params: ParamsFile = PARAMS,
) -> None:
    """Vary one thing, and write a table and a plot of its effect on the students.

    ablation: labels, logits, then each augmentation rule. size: 1 to 20 times the corpus. hidden: 2 to 300 LSTM
    units. fractions: 20 to 100 percent of the training data. wikipedia: an eighth to all of its sentences (--row:
    one that starts from an encoder). curves: dev scores after each epoch, on 30 and 100 percent of the training
    data. A study runs in its own workspace and shares all caches; params.yaml and its results are left alone.
    """
    from pipeline_lib.commands.studies.study_tables import read_figures, write_study
    from pipeline_lib.commands.studies.sweeps import SWEEPS, Rows
    from pipeline_lib.commands.studies.workspace import run_study
    from pipeline_lib.params import check_params, load_params
    from pipeline_lib.params.profiles import read_values

    if name not in SWEEPS:
        raise PotstillError(f"no study {name!r}; there are {', '.join(SWEEPS)}.")
    loaded = load_params(params)
    task = task or next(iter(loaded.tasks))
    raw = read_values(params)
    sweep = SWEEPS[name](Rows.of(raw, task, row))
    check_params(sweep.params, f"study {name}")
    workspace = run_study(f"{name}-{task}", sweep.params)
    metrics = read_record(workspace / "metrics.json")
    figures = read_figures(sweep, metrics, Layout(workspace / "data"))
    folder = Path("data/studies") / f"{name}-{task}"
    written = write_study(sweep, figures, metrics, folder)
    say((folder / "table.md").read_text(encoding="utf-8"))
    say(f"wrote {folder}/{', '.join(written)}")
    if "plot.svg" not in written:
        say("no plot: install matplotlib for one, then run the study again", err=True)
