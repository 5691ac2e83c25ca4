"""Compute the states of teachers' layers for the transfer sets whose students learn from them.

    python stages/precompute_states.py --task movies

Reads data/transfer/<task>, data/teachers/<task>; writes data/states/<task>/<teacher>/<recipe>: one
shard per input shard, row for row, and alignment.json with the figures of the proof.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, load_params
from pipeline_lib.storage.shards import ShardSet


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Compute the states of teachers' layers for the transfer sets that students learn from."""
    params, layout = load_params(), Layout()
    clear_folder(layout.all_states(task))
    wanted = params.states_of(task)
    if not wanted:
        typer.echo(f"{task}: no row learns from a teacher's layers: no states")
    for teacher, recipes in wanted.items():
        answer(params, layout, task, teacher, recipes)


def answer(params: Params, layout: Layout, task: str, teacher: str, recipes: list[str]) -> None:
    """Compute one teacher's states for some transfer sets."""
    from pipeline_lib.engine import make_engine
    from pipeline_lib.teachers.outputs import StatePass
    from pipeline_lib.teachers.precompute import precompute_vectors

    own, folder = params.teachers[teacher], layout.teacher(task, teacher)
    state_pass = StatePass.of(params, folder, own.max_length, own.states)
    engine = make_engine(params, state_pass.device)
    for recipe in recipes:
        inputs = ShardSet.open(layout.transfer(task, recipe))
        states, title = layout.states(task, teacher, recipe), f"{teacher} {task} {recipe}"
        found = precompute_vectors(inputs, state_pass, states, engine, f"states {title}")
        typer.echo(f"{title}: {found}")


if __name__ == "__main__":
    run_stage(main)
