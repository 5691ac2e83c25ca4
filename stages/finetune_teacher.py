"""Fine-tune the teacher on one task's original training set, or take a finished checkpoint.

    python stages/finetune_teacher.py --task movies

Reads data/tasks/<task> and data/raw/teacher; writes data/teachers/<task> (a transformers model
folder and training.json).  Killed, it goes on from its last checkpoint.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.files import clear_folder, disk_errors, sha256_json, write_json
from pipeline_lib.params import load_params
from pipeline_lib.processor import computed_on
from pipeline_lib.progress import show_progress
from pipeline_lib.shards import ShardSet
from pipeline_lib.stage import run_stage
from pipeline_lib.store import check_state_folder, state_folder
from pipeline_lib.training import Report


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Fine-tune the teacher on one task's original training set, or take a finished checkpoint."""
    from pipeline_lib.devices import resolve_device, resolve_precision
    from pipeline_lib.teachers.finetuning import Data, adopt, finetune, forget, training_agreement
    from pipeline_lib.teachers.model import digest_model, load_teacher, parameter_counts

    params = load_params()
    settings, teacher = params.task(task), params.teacher
    device = resolve_device(params.device)
    splits = {s: ShardSet.open(Path("data/tasks") / task / s) for s in ("train", "dev")}
    train, dev = (Data.of(splits[s].table()) for s in ("train", "dev"))
    folder = clear_folder(Path("data/teachers") / task)
    base, finished = Path("data/raw/teacher/base"), Path("data/raw/teacher/checkpoints") / task
    run = sha256_json(
        [
            digest_model(base),
            teacher.model_dump(),
            settings.metrics[0],
            settings.positive_class,
            settings.label_names,
            [splits[s].manifest.digest for s in splits],
            device.type,
        ]
    )
    check_state_folder()
    checkpoints = state_folder() / "checkpoints" / f"teacher-{run}"

    if teacher.checkpoint is not None:
        record = adopt(finished, folder, dev, settings, teacher, device)
    else:
        model, tokenizer, record = finetune(
            base, train, dev, settings, teacher, device, checkpoints, _progress_of(task)
        )
        with disk_errors(folder):
            model.to("cpu").save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    precision = resolve_precision(params.precompute.precision, device)
    finetuned = load_teacher(folder, device, precision)
    own = training_agreement(finetuned, train, teacher.max_length)
    write_json(
        folder / "training.json",
        {
            **record,
            "training_agreement": own,
            "parameters": parameter_counts(finetuned),
            "computed_on": computed_on(str(device)),
        },
    )
    forget(checkpoints)
    typer.echo(f"{task}: {record['metric']} {record['best_dev']:.4f} on dev")


def _progress_of(task: str) -> Callable[[float], AbstractContextManager[Report]]:
    @contextmanager
    def of_rate(rate: float) -> Iterator[Report]:
        with show_progress(f"fine-tuning {task}, rate {rate:g}", "steps") as advance:
            start: list[int] = []

            def report(step: int, total: int, loss: float, best: float) -> None:
                # What an interrupted run did before takes no time now.
                start[:] = start or [step - 1]
                note = f"loss {loss:.3f} best dev {max(best, 0):.4f}"
                advance(step, total, note, counted=step - start[0])

            yield report

    return of_rate


if __name__ == "__main__":
    run_stage(main)
