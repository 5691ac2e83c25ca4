"""Tune one task's teachers on its original training set, or take finished ones.

    python -m pipeline_lib.stages.finetune_teacher --task movies

Reads data/tasks/<task>, data/raw/models, data/raw/checkpoints and data/refined; writes
data/teachers/<task>/<teacher>: a transformers model folder, training.json and, for one that was
tuned here, search.json; for one whose answers are in files, these by content key.  What was
fine-tuned before is reused; if killed, it resumes from its last checkpoint.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, link_or_copy
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import write_seal
from pipeline_lib.base.terminal import say
from pipeline_lib.params import TRAINED_ALONE, Params, load_params
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.training_records import AnswersRecord, TeacherRecord

if TYPE_CHECKING:
    from pipeline_lib.training.teachers.finetuning import TeacherTraining


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Tune one task's teachers on its original training set, or take finished ones."""
    from pipeline_lib.training.progress import on_dev

    params, layout = load_params(), Layout()
    kinds = {name: teacher.tuning.kind for name, teacher in params.teachers_of(task).items()}
    target = fresh_folder(layout.teachers(task))
    records = finetune(params, task, [name for name in kinds if kinds[name] in TRAINED_ALONE], target)
    for name in (name for name in kinds if kinds[name] == "finished"):
        records[name] = take_finished(params, task, name, fresh_folder(target / name))
    for name in (name for name in kinds if kinds[name] == "refined"):
        for path in sorted(layout.refined_teacher(name, task).iterdir()):
            link_or_copy(path, target / name / path.name)
        records[name] = TeacherRecord.read(target / name / "training.json")
    for name in (name for name in kinds if kinds[name] == "answers"):
        records[name] = take_answers(params, task, name, fresh_folder(target / name))
    for name in (name for name in kinds if kinds[name] == "scored"):
        records[name] = take_language_model(params, task, name, fresh_folder(target / name))
    for name in (name for name in kinds if kinds[name] in ("finished", "answers", "scored")):
        write_seal(target / name)
    for name, record in records.items():
        score = "no score" if record.best_dev is None else f"{record.metric} {on_dev(record)}"
        say(f"{task} {name}: {score} on dev")


def finetune(params: Params, task: str, names: list[str], target: Path) -> dict[str, TeacherRecord | AnswersRecord]:
    """Fine-tune teachers at every learning rate, and fit probes; link the best of each below ``target``."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.training.progress import losses, show_training
    from pipeline_lib.training.search import train_rows
    from pipeline_lib.training.teachers.finetuning import TeacherTask, TeacherTraining, teacher_row

    device, layout = str(resolve_device(params.device)), Layout()
    data = {task: TeacherTask.of(params, task, layout)}
    rows = [teacher_row(params, name, data, layout, device) for name in names]
    engine = make_engine(params, device, single_threaded=False)
    for row in rows:
        say_first_answer(row.spec(row.seeds[0], row.rates[0]))

    def note(training: TeacherTraining, loss: float, best: float) -> str:
        how = f"rate {training.rate:g}" if training.rate else "probe"
        return f"{how}: {losses(training, loss, best)}"

    with show_training(f"fine-tuning {task}", rows, note) as shown:
        searched = train_rows(rows, engine, shown.on_progress, shown.on_done)
    records = {}
    for name, result in searched.items():
        [(training, records[name])] = result.trainings.values()
        training.result.link_into(target / name)
        result.write(target / name)
    return records


def say_first_answer(training: "TeacherTraining") -> None:
    """Before a teacher is tuned that starts from a probe: say how well regressions, fitted in seconds, would do."""
    if training.optimiser.head == "probe" and not training.result.is_whole():
        [(task, data)] = training.tasks.items()
        scores = training.taught().first_answers(training.seed)
        fits = ", ".join(f"{value:.4f} from its {vectors}" for vectors, value in scores.items())
        say(f"{task}: first answer, {data.task.metrics[0]} of a regression, cross-validated on train: {fits}")


def take_finished(params: Params, task: str, name: str, folder: Path) -> TeacherRecord:
    """Import a teacher that was fine-tuned elsewhere into ``folder``."""
    from pipeline_lib.base.devices import resolve_device, resolve_precision
    from pipeline_lib.training.teachers.finetuning import Data, import_teacher

    layout, device = Layout(), resolve_device(params.device)
    splits = Data.read(layout.split(task, "train")), Data.read(layout.split(task, "dev"))
    settings = params.task(task), params.teachers[name].max_length
    precision = resolve_precision(params.precompute.precision, device)
    finished = layout.checkpoint(name, task)
    return import_teacher(finished, folder, splits, *settings, device, precision, params.teachers[name].tuning.force)


def take_language_model(params: Params, task: str, name: str, folder: Path) -> TeacherRecord:
    """Take a causal language model as it is, with its prompt and examples of train, into ``folder``."""
    from pipeline_lib.base.devices import resolve_device, resolve_precision
    from pipeline_lib.training.teachers.scoring import take_scored

    layout, row, device = Layout(), params.teachers[name], resolve_device(params.device)
    prompt = layout.checkpoint(name, task) / "prompt.txt"
    splits = tuple(ShardSet.open(layout.split(task, split)).to_table() for split in ("train", "dev"))
    precision = resolve_precision(params.precompute.precision, device)
    model, settings = layout.model(row.model), (row.tuning, params.task(task))
    return take_scored(model, prompt, folder, *settings, splits, row.max_length, str(device), precision)


def take_answers(params: Params, task: str, name: str, folder: Path) -> AnswersRecord:
    """Import a teacher's answers from its files into ``folder``."""
    from pipeline_lib.outputs.files.answers import Answers
    from pipeline_lib.outputs.files.checks import describe_answers, task_sets
    from pipeline_lib.outputs.files.gathering import gather

    layout, settings = Layout(), params.teachers[name].tuning
    files = sorted(layout.checkpoint(name, task).iterdir())
    answers = gather(files, Answers(settings, params.task(task)))
    answers.write(folder)
    record = describe_answers(answers, params.task(task), task_sets(layout.task(task)))
    record.write(folder / "training.json")
    counts = ", ".join(f"{count:,} {what}" for what, count in answers.counts.items() if count)
    say(f"{task} {name}: {counts}")
    return record


if __name__ == "__main__":
    run_stage(main)
