"""Compute the teachers' logits and layers' states for one task's sentences, through the store.

    python -m pipeline_lib.stages.precompute --task movies

Reads data/transfer/<task>, data/tasks/<task>/{dev,test,...}, data/teachers/<task>; writes
data/outputs/<task>/<teacher>/<recipe>, data/outputs/<task>/heldout/<teacher>/<split> and, for the
transfer sets whose students learn from layers, data/outputs/<task>/states/<teacher>/<recipe>: one
shard per input shard, row for row, and alignment.json with the figures of the proof.  Writes
data/digests/joint/<task>.json, on which joint trainings depend: the sets that they read.
"""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.params import Params, load_params
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.store import kept_json
from pipeline_lib.shards.training_records import TeacherRecord
from pipeline_lib.shards.training_texts import training_texts

if TYPE_CHECKING:
    from pipeline_lib.outputs.teacher_pass import LogitPass
    from pipeline_lib.shards.engine.protocol import Engine


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Compute the teachers' logits for one task's sentences."""
    params, layout = load_params(), Layout()
    teachers = params.teachers_of(task)
    fresh_folder(layout.all_outputs(task))
    for teacher in teachers:
        answer(params, layout, task, teacher)
    for teacher, recipes in params.states_of(task).items():
        compute_states(params, layout, task, teacher, recipes)
    write_json(layout.read_by_joint(task), read_by_joint(params, task, layout))


def read_by_joint(params: Params, task: str, layout: Layout) -> dict[str, str]:
    """Return the digests of the sets that joint trainings read of a task, by their folders."""
    read = params.read_by_joint(task)
    folders = [layout.split(task, split) for split in ("train", "dev")] if read else []
    for teacher, recipe in sorted(read):
        folders += [layout.transfer(task, recipe), layout.outputs(task, teacher, recipe)]
    existing = (folder for folder in folders if folder.exists())
    return {folder.as_posix(): training_texts(folder).manifest.digest for folder in existing}


def answer(params: Params, layout: Layout, task: str, teacher: str) -> None:
    """Compute one teacher's logits for its transfer sets and the held-out splits."""
    if not params.teachers[teacher].runs:
        take(params, layout, task, teacher)
        return
    from pipeline_lib.outputs.teacher_pass import LogitPass
    from pipeline_lib.shards.engine import make_engine
    from pipeline_lib.shards.engine.passes import run_pass

    settings = params.teachers[teacher]
    folder = layout.teacher(task, teacher)
    agreement = TeacherRecord.read(folder / "training.json").training_agreement
    logit_pass = LogitPass.of(params, folder, settings.max_length, agreement=agreement)
    engine = make_engine(params, logit_pass.device)
    recipes = filter(settings.answers, params.recipes_of(task))
    transfer = {recipe: ShardSet.open(layout.transfer(task, recipe)) for recipe in recipes}
    for recipe, inputs in transfer.items():
        outputs = layout.outputs(task, teacher, recipe)
        precompute(inputs, logit_pass, outputs, engine, f"{teacher} {task} {recipe}")
        prove(inputs, logit_pass, outputs, agreement)
    # The agreement was measured on other rows than the held-out ones.
    logit_pass = replace(logit_pass, agreement=None)
    for split in layout.heldout_splits(task):
        inputs = ShardSet.open(layout.split(task, split))
        outputs = layout.heldout_outputs(task, teacher, split)
        manifest, _ = run_pass(logit_pass, inputs, outputs, engine)
        say(f"{teacher} {task} {split}: {manifest.rows:,} rows")
        prove(inputs, logit_pass, outputs, None)


def take(params: Params, layout: Layout, task: str, teacher: str) -> None:
    """Look up a teacher's answers in files for transfer sets and held-out splits; list rows without one."""
    from pipeline_lib.outputs.files.lookup_pass import AnswerPass
    from pipeline_lib.outputs.precompute import take_outputs
    from pipeline_lib.shards.engine import make_engine

    settings, engine = params.teachers[teacher], make_engine(params, "cpu")
    recipes = filter(settings.answers, params.recipes_of(task))
    sets = [(layout.transfer(task, recipe), layout.outputs, recipe) for recipe in recipes]
    splits = layout.heldout_splits(task)
    sets += [(layout.split(task, split), layout.heldout_outputs, split) for split in splits]
    for folder, output_path, name in sets:
        rows, target = ShardSet.open(folder), output_path(task, teacher, name)
        answers = AnswerPass.of(layout.teacher(task, teacher))
        say(f"{teacher} {task} {name}: {take_outputs(answers, rows, target, engine)}")


def compute_states(params: Params, layout: Layout, task: str, teacher: str, recipes: list[str]) -> None:
    """Compute the states of one teacher's layers for some transfer sets."""
    from pipeline_lib.outputs.precompute import precompute_vectors
    from pipeline_lib.outputs.teacher_pass import StatePass
    from pipeline_lib.shards.engine import make_engine

    row, folder = params.teachers[teacher], layout.teacher(task, teacher)
    state_pass = StatePass.of(params, folder, row.max_length, row.states)
    engine = make_engine(params, state_pass.device)
    for recipe in recipes:
        inputs, title = ShardSet.open(layout.transfer(task, recipe)), f"{teacher} {task} {recipe}"
        folder = layout.states(task, teacher, recipe)
        stats = precompute_vectors(inputs, state_pass, folder, engine, f"states {title}")
        say(f"{title}: states, {stats}")


def precompute(inputs: ShardSet, logit_pass: "LogitPass", folder: Path, engine: "Engine", title: str) -> None:
    """Compute the logits of one transfer set into ``folder``; print how much was reused."""
    from pipeline_lib.shards.engine.passes import run_pass

    manifest, report = run_pass(logit_pass, inputs, folder, engine, title)
    say(f"{title}: {manifest.rows:,} rows; {report}")


def prove(inputs: ShardSet, logit_pass: "LogitPass", folder: Path, agreement: float | None) -> None:
    """Prove that the logits in ``folder`` belong to their rows; write the figures beside them.

    :param agreement: the teacher's agreement on the training rows, if these are among the rows.
    """
    from pipeline_lib.base.devices import single_thread
    from pipeline_lib.outputs.alignment import proof_key, prove_alignment

    outputs = ShardSet.open(folder)

    def compute() -> dict[str, Any]:
        # One thread here too: workers are forked from this process again, for the next set.
        with single_thread() if logit_pass.device == "cpu" else nullcontext():
            return prove_alignment(inputs, outputs, logit_pass, agreement)

    figures = kept_json("proofs", [proof_key(inputs, outputs, logit_pass), agreement], compute)
    write_json(folder / "alignment.json", figures)
    say(f"  {figures['recomputed_rows']} rows recomputed, largest difference {figures['max_abs_logit_difference']}")
    if agreement is not None:
        say(f"  agreement with the labels {figures['agreement_with_labels']:.4f}")


if __name__ == "__main__":
    run_stage(main)
