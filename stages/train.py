"""Train one student: one method of one task with one seed.

    python stages/train.py --task movies --method bilstm_kd_ts --seed 1

Reads data/plans/<task>/<method>.json and what it names, data/tasks/<task>/dev, and
data/vocabularies/<task>; writes data/students/<task>/<method>/<seed>.  Killed, it goes on from its last
checkpoint.
"""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.files import clear_folder, sha256_file, sha256_folder, sha256_json, write_json
from pipeline_lib.params import load_params
from pipeline_lib.plans import read_plan
from pipeline_lib.progress import show_progress
from pipeline_lib.shards import ShardSet
from pipeline_lib.stage import run_stage
from pipeline_lib.store import state_folder


def main(
    task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")],
    method: Annotated[str, typer.Option(help="A key of `methods` in params.yaml.")],
    seed: Annotated[int, typer.Option(help="One of `seeds` in params.yaml.")],
) -> None:
    """Train one student: one method of one task with one seed."""
    from pipeline_lib.devices import resolve_device
    from pipeline_lib.distillation import train_student
    from pipeline_lib.students.loading import save_student
    from pipeline_lib.students.vocabulary import load_vocabulary
    from pipeline_lib.transfer import dev_sentences, training_sentences

    device = resolve_device(load_params().device)
    plan_path = Path("data/plans") / task / f"{method}.json"
    plan = read_plan(plan_path)
    vocabulary = Path("data/vocabularies") / task
    tokenizer, vectors = load_vocabulary(vocabulary)
    outputs = plan.outputs.open() if plan.outputs else None
    train = training_sentences(plan.inputs.open(), outputs, tokenizer, plan.student.max_words)
    dev_set = ShardSet.open(Path("data/tasks") / task / "dev")
    dev = dev_sentences(dev_set, tokenizer, plan.student.max_words)
    run = sha256_json(
        [
            sha256_file(plan_path),
            sha256_folder(vocabulary),
            dev_set.manifest.digest,
            seed,
            device.type,
        ]
    )
    checkpoint = state_folder() / "checkpoints" / f"student-{run}.safetensors"

    with show_progress(f"training {task} {method} seed {seed}", "steps") as advance:

        def report(step: int, total: int, loss: float, best: float) -> None:
            advance(step, total, f"loss {loss:.3f} best dev {max(best, 0):.4f}")

        model, record = train_student(plan, train, dev, vectors, seed, device, checkpoint, report)
    folder = clear_folder(Path("data/students") / task / method / str(seed))
    save_student(folder, model, tokenizer)
    write_json(folder / "training.json", record)
    checkpoint.unlink(missing_ok=True)
    typer.echo(f"{task} {method} seed {seed}: {plan.metric} {record['best_dev']:.4f} on dev")


if __name__ == "__main__":
    run_stage(main)
