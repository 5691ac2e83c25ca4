"""Fine-tune the teacher on one task's original training set, or take a finished checkpoint.

    python stages/finetune_teacher.py --task movies

Reads data/tasks/<task> and data/raw/teacher; writes data/teachers/<task> (a transformers model
folder and training.json).  What was fine-tuned before is found; killed, it goes on from its last
checkpoint.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder, read_record, sha256_json, write_json
from pipeline_lib.base.processor import computed_on
from pipeline_lib.base.progress import show_progress
from pipeline_lib.params import Params, load_params
from pipeline_lib.storage.fingerprint import training_code
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.storage.store import check_state_folder, state_folder
from pipeline_lib.training.loop import Report
from pipeline_lib.training.runs import Trained

if TYPE_CHECKING:
    import torch

    from pipeline_lib.teachers.finetuning import Data


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Fine-tune the teacher on one task's original training set, or take a finished checkpoint."""
    from pipeline_lib.base.devices import resolve_device, resolve_training_precision
    from pipeline_lib.teachers.finetuning import Data, adopt, finetune, forget
    from pipeline_lib.teachers.model import digest_model

    params = load_params()
    settings, teacher = params.task(task), params.teacher
    device = resolve_device(params.device)
    splits = {s: ShardSet.open(Path("data/tasks") / task / s) for s in ("train", "dev")}
    train, dev = (Data.of(splits[s].table()) for s in ("train", "dev"))
    folder = clear_folder(Path("data/teachers") / task)
    base, finished = Path("data/raw/teacher/base"), Path("data/raw/teacher/checkpoints") / task
    if teacher.checkpoint is not None:
        record = adopt(finished, folder, dev, settings, teacher, device)
        _finish(folder, record, train, params, device)
    else:
        digests = [digest_model(base), *(splits[s].manifest.digest for s in splits)]
        made_from = [teacher.model_dump(), settings.metrics[0], settings.positive_class]
        made_from += [settings.label_names, digests, device.type]
        made_from += [resolve_training_precision(teacher.finetune.precision, device)]
        trained = Trained("teachers", sha256_json([*made_from, training_code(finetune.__module__)]))
        check_state_folder()
        if not trained.is_whole():
            checkpoints = state_folder() / "checkpoints" / f"teacher-{trained.key}"
            with trained.writing() as private:
                model, tokenizer, record = finetune(
                    base, train, dev, settings, teacher, device, checkpoints, _progress_of(task)
                )
                model.to("cpu").save_pretrained(private)
                tokenizer.save_pretrained(private)
                _finish(private, record, train, params, device)
            forget(checkpoints)
        trained.place(folder)
    record = read_record(folder / "training.json", "metric", "best_dev")
    typer.echo(f"{task}: {record['metric']} {record['best_dev']:.4f} on dev")


def _finish(
    folder: Path, record: dict[str, Any], train: "Data", params: Params, device: "torch.device"
) -> None:
    """Write how the teacher in ``folder`` was made, how far it agrees with its training labels."""
    from pipeline_lib.base.devices import resolve_precision
    from pipeline_lib.networks.parameter_counts import parameter_counts
    from pipeline_lib.teachers.finetuning import training_agreement
    from pipeline_lib.teachers.model import load_teacher

    finetuned = load_teacher(folder, device, resolve_precision(params.precompute.precision, device))
    own = {
        "training_agreement": training_agreement(finetuned, train, params.teacher.max_length),
        "parameters": parameter_counts(finetuned),
        "computed_on": computed_on(str(device)),
    }
    write_json(folder / "training.json", record | own)


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
