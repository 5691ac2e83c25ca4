"""``distill results``: teacher and students side by side, and what the stages took."""

from pathlib import Path
from typing import Annotated

from typer import Option

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say, say_json
from pipeline_lib.base.workspace import PIPELINE
from pipeline_lib.commands.options import PARAMS, ParamsFile

EXAMPLE = "Example: distill results"


def results(
    as_json: Annotated[bool, Option("--json", help="Print all figures as JSON instead.")] = False,
    account: Annotated[bool, Option("--account", help="Show what each stage took when it last ran here.")] = False,
    params: ParamsFile = PARAMS,
    data: Annotated[Path, Option(help="The folder of all artifacts.")] = Path("data"),
) -> None:
    """Show teacher and students side by side: quality, gain, size and speed.

    First, in a few sentences, what each task's best student is worth beside its teacher.

    Then, for each task, one row for the teacher and one per method: dev and test scores over the seeds, the gain
    over the undistilled baseline with its interval and p-value, the distance to and agreement with the teacher, the
    number of parameters and, if measured, sentences per second on one core. Further labelled splits have tables of
    their own. Then retrieval and untuned similarity, if params.yaml has rows for them.

    At the end, what the stages took when they last ran here. --account shows each: time, rows and tokens computed,
    trainings, the share of the work that was stored, the most memory that one of its processes had, and the
    accelerator. A stage that DVC skips keeps its figures.
    """
    if account:
        _print_account(Layout(data), as_json)
        return
    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.base.flow import read_flow
    from pipeline_lib.params import load_params
    from pipeline_lib.results.account import stage_runs, totals
    from pipeline_lib.results.collect import read_finished
    from pipeline_lib.results.headline import headline
    from pipeline_lib.results.retrieval_tables import read_measured
    from pipeline_lib.results.terminal import print_headlines, print_result, print_table

    loaded, layout = load_params(params), Layout(data)
    finished = read_finished(layout, list(loaded.tasks))
    if as_json:
        figures = {
            result.task: {
                "headline": headline(result),
                "scores": result.scores.model_dump(),
                "speed": result.speed and result.speed.model_dump(),
            }
            for result in finished
        }
        say_json(figures, indent=2)
        return
    console = SafeConsole()
    print_headlines(console, finished)
    for result in finished:
        print_result(console, result, loaded)
    for table in read_measured(loaded, layout, finished=True):
        print_table(console, table)
    waiting = [task for task in loaded.tasks if task not in {result.task for result in finished}]
    if waiting:
        waits = f"Not evaluated yet: {', '.join(waiting)}. Run `distill run`."
        console.print(waits, markup=False)
    for result in finished:
        if result.speed and result.speed.exported:
            exported = f"Exported: {result.speed.exported} of {result.task}, {layout.exported(result.task)}"
            console.print(exported, markup=False)
    if runs := stage_runs(read_flow(PIPELINE, layout)):
        console.print(f"The stages' last runs: {totals(runs)}.", markup=False)
    if layout.page.exists():
        console.print(f"The same with charts and examples: {layout.page.resolve()}", markup=False)


def _print_account(layout: Layout, as_json: bool) -> None:
    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.base.flow import read_flow
    from pipeline_lib.results.account import account_table, stage_runs, totals
    from pipeline_lib.results.terminal import print_table

    flow = read_flow(PIPELINE, layout)
    runs = stage_runs(flow)
    if as_json:
        say_json({"runs": runs, "seconds": flow["seconds"]}, indent=2)
    elif not runs:
        say(f"{layout.data}: no stage ran here yet. Run `distill run`.")
    else:
        print_table(SafeConsole(), account_table(runs))
        say(totals(runs))
