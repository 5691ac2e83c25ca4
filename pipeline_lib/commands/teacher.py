"""``distill teacher``: checks files of answers or vectors, and writes the rows that need some."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline_lib.outputs.files.answers import Answers
    from pipeline_lib.params import AnswerFiles, Params, Task

app = typer.Typer(
    no_args_is_help=True,
    help="Answers of external teachers, such as an LLM, in files (docs/teacher-files.md).",
)
ParamsFile = Annotated[Path, typer.Option("--params", help="The parameter file.")]


class RequestFormat(StrEnum):
    """Formats of the rows that need an answer."""

    jsonl = "jsonl"
    openai_batch = "openai-batch"


AnswerFormat = Annotated[
    RequestFormat, typer.Option("--format", help="Just the rows, or an OpenAI batch.")
]
Model = Annotated[
    str | None,
    typer.Option("--model", help="The batch's model; by default the one in `provenance`."),
]


@app.command("check", epilog="Example: distill teacher check answers.jsonl --task reviews")
def check(
    file: Annotated[Path, typer.Argument(help="A file of answers, or of sentence vectors.")],
    task: Annotated[
        str | None,
        typer.Option("--task", help="A task of params.yaml; by default the only one."),
    ] = None,
    teacher: Annotated[
        str | None, typer.Option("--teacher", help="The row of `teachers` with the settings.")
    ] = None,
    params: ParamsFile = Path("params.yaml"),
) -> None:
    """Check a file of a teacher's answers: schema, classes, duplicate texts, coverage.

    Shows what the file contains, how well it agrees with the task's labels, and what share of the
    task's sets it answers, for the sets that exist. If the file is invalid, names the row and
    exits with status 1. Without a task, only the file itself is checked, by the classes that it
    names. For a file of sentence vectors, with `embedding`, shows what share of the
    encoders' sentences has one.
    """
    from pipeline_lib.base.file_formats import format_of as format_of_name
    from pipeline_lib.outputs.files.answers import gather
    from pipeline_lib.outputs.files.describe_vectors import vector_lines, vector_settings
    from pipeline_lib.outputs.files.infer_task import task_of
    from pipeline_lib.outputs.files.teacher_rows import format_of
    from pipeline_lib.outputs.files.vector_files import holds_vectors
    from pipeline_lib.params import load_params

    loaded = load_params(params)
    vectors = vector_settings(loaded)
    format = vectors.format if format_of_name(file) is None else None
    if task is None and teacher is None and holds_vectors(file, format):
        typer.echo(f"{file}: {format_of(file, format)}, sentence vectors")
        for line in vector_lines([file], vectors.model_copy(update={"format": format}), loaded):
            typer.echo(f"  {line}")
        return
    name = task or (next(iter(loaded.tasks)) if len(loaded.tasks) == 1 else None)
    settings = _settings(loaded, teacher)
    spec = task_of(file, settings) if name is None else loaded.task(name)
    answers = gather([file], settings, spec)
    of_task = "" if name is None else f" for task {name}"
    typer.echo(f"{file}: {format_of(file, settings.format)}, answers{of_task}")
    for line in described(answers, spec):
        typer.echo(f"  {line}")
    if name is None:
        typer.echo(f"  not compared with a task: name one with --task ({', '.join(loaded.tasks)})")
        return
    for line in covered(answers, settings, name, spec, file):
        typer.echo(f"  {line}")


def described(answers: "Answers", task: "Task") -> list[str]:
    """Describe what a file of answers contains."""
    import numpy as np

    from pipeline_lib.base.probabilities import softmax
    from pipeline_lib.outputs.files.answers import frequent

    lines = [", ".join(f"{n:,} {what.replace('_', ' ')}" for what, n in answers.counts.items())]
    lines += [f"error, {count:,} rows: {reason}" for reason, count in frequent(answers.errors)]
    if task.is_regression:
        scores = answers.logits[:, 0]
        lines.append(f"scores {scores.min():g} to {scores.max():g}, mean {scores.mean():.3f}")
    else:
        counts = np.bincount(answers.logits.argmax(1), minlength=len(task.label_names))
        each = zip(task.label_names, counts.tolist(), strict=True)
        sure = softmax(answers.logits).max(1)
        lines.append(f"classes: {', '.join(f'{name} {count:,}' for name, count in each)}")
        lines.append(f"probability of the class chosen: mean {sure.mean():.3f}")
    if answers.weights is not None:
        low, high = answers.weights.min(), answers.weights.max()
        lines.append(f"weights {low:g} to {high:g}")
    return lines + [f"{name}: {value}" for name, value in answers.provenance.items()]


def covered(
    answers: "Answers", settings: "AnswerFiles", name: str, task: "Task", file: Path
) -> list[str]:
    """Say what share of a task's sets is answered, and how well the answers agree with its labels.

    :raises DistilleryError: if answers and labels are unrelated.
    """
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.outputs.files.answer_checks import describe_answers, unrelated_warning
    from pipeline_lib.outputs.files.content_keys import row_keys
    from pipeline_lib.shards.shard_sets import ShardSet, shard_sets

    layout, lines = Layout(), []
    above = [path for path in (layout.task(name), layout.transfer_sets(name)) if path.exists()]
    for folder in (subfolder for path in above for subfolder in shard_sets(path)):
        rows = known = 0
        for table in ShardSet.open(folder).tables():
            rows += table.num_rows
            known += int((answers.find(row_keys(table, settings.mask)) >= 0).sum())
        lines.append(f"{folder}: {known:,} of {rows:,} rows answered ({known / max(rows, 1):.1%})")
    if not lines:
        return ["coverage unknown, since the task has no sets yet: run `dvc repro augment`"]
    if not layout.task(name).exists():
        return lines
    splits = {split: ShardSet.open(layout.split(name, split)) for split in ("train", "dev")}
    record = describe_answers(answers, settings.mask, task, splits, [file])
    training = "training", record.training_rows, record.training_agreement
    for split, rows, agreed in (training, ("dev", record.dev_rows, record.best_dev)):
        if agreed is not None:
            lines.append(f"agreement with {rows:,} {split} labels: {agreed:.4f}")
    if warning := unrelated_warning(file.name, record):
        lines.append(warning)
    return lines


@app.command("requests", epilog="Example: distill teacher requests reviews full llm requests.jsonl")
def requests(
    task: Annotated[str, typer.Argument(help="A task of params.yaml.")],
    recipe: Annotated[str, typer.Argument(help="One of its transfer sets or splits: dev, test.")],
    teacher: Annotated[str, typer.Argument(help="A teacher of kind `answers`.")],
    out: Annotated[Path, typer.Argument(help="The JSON lines file to write.")],
    format: AnswerFormat = RequestFormat.jsonl,
    model: Model = None,
    prompt: Annotated[
        Path | None,
        typer.Option(
            "--prompt", help="Instructions for a batch's model, with {labels}, or {min} and {max}."
        ),
    ] = None,
    params: ParamsFile = Path("params.yaml"),
) -> None:
    """Write the rows of a set that a teacher has not answered yet, each text once.

    Rows that the teacher's files already answer are left out, so raising `n_iter` writes only the
    new ones. In a batch, custom_id is the row's content key, which joins the output to the row.
    """
    from functools import partial

    from pipeline_lib.base.files import write_json_lines
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.outputs.files.answers import read_files
    from pipeline_lib.outputs.files.content_keys import read_texts
    from pipeline_lib.outputs.files.llm_batches import batch_request, instruction, requests_of
    from pipeline_lib.params import load_params
    from pipeline_lib.shards.shard_sets import ShardSet

    loaded, layout = load_params(params), Layout()
    spec, settings = loaded.task(task), _settings(loaded, teacher)
    known = recipe in loaded.recipes_of(task)
    inputs = ShardSet.open(layout.transfer(task, recipe) if known else layout.split(task, recipe))
    paths = [Path(loaded.inputs) / path for path in settings.paths(task)]
    there = [path for path in paths if path.exists()]
    answers = read_files(there, settings, spec) if there else None
    rows = requests_of((read_texts(part, settings.mask) for part in inputs.tables()), answers)
    if format is RequestFormat.openai_batch:
        asked = _asked(model, settings.provenance, f"teachers.{teacher}.tuning")
        template = None if prompt is None else prompt.read_text(encoding="utf-8")
        instructions = instruction(spec, template)
        rows = map(partial(batch_request, model=asked, system_prompt=instructions), rows)
    count = write_json_lines(out, rows)
    typer.echo(
        f"{out}: {count:,} rows of {inputs.manifest.rows:,} need an answer"
        + ("" if there else f" (none of {', '.join(map(str, paths))} exists yet)")
    )
    if format is RequestFormat.openai_batch and spec.is_regression and prompt is None:
        typer.echo(
            "The prompt gives the range of the scores but not their meaning: say it with --prompt."
        )


@app.command("vector-requests", epilog="Example: distill teacher vector-requests sentences.jsonl")
def vector_requests(
    out: Annotated[Path, typer.Argument(help="The JSON lines file to write.")],
    format: AnswerFormat = RequestFormat.jsonl,
    model: Model = None,
    params: ParamsFile = Path("params.yaml"),
) -> None:
    """Write the sentences that encoders train on and that have no vector yet, each once.

    These are Wikipedia's sentences and those of the transfer sets named in `encoders`, without the
    ones in the files of `sentence_vectors`. A batch requests embeddings; custom_id is the
    sentence's content key, which joins the output to the sentence.
    """
    from pipeline_lib.outputs.files import describe_vectors
    from pipeline_lib.params import load_params

    loaded, asked = load_params(params), None
    if format is RequestFormat.openai_batch:
        provenance = describe_vectors.vector_settings(loaded).provenance
        asked = _asked(model, provenance, "sentence_vectors")
    typer.echo(describe_vectors.vector_requests(loaded, out, asked))


def _asked(model: str | None, provenance: "Mapping[str, str]", section: str) -> str:
    """Return the model that a batch is for: the one named, or the one in the provenance."""
    from pipeline_lib.base.errors import DistilleryError

    asked = model or provenance.get("model")
    if asked is None:
        raise DistilleryError(
            f"--model: missing, and {section}.provenance names no `model`. Name the model to send "
            "the batch to."
        )
    return asked


def _settings(params: "Params", teacher: str | None) -> "AnswerFiles":
    """Return how a teacher's files are read; without a teacher, the documented defaults."""
    from pipeline_lib.base.errors import DistilleryError
    from pipeline_lib.params import AnswerFiles

    if teacher is None:
        source = {"files": ["-"], "format": None, "classes": None, "provenance": {}}
        usual = {"mask": "[MASK]", "smoothing": 0.1, "floor": 1e-4, "min_coverage": 0.5}
        return AnswerFiles.model_validate({"kind": "answers", **source, **usual})
    row = params.teachers.get(teacher)
    if row is None or row.tuning.kind != "answers":
        named = [n for n, other in params.teachers.items() if other.tuning.kind == "answers"]
        raise DistilleryError(
            f"teachers: {teacher!r} has no answers in files; there are {', '.join(named) or 'none'}"
            ". Name one, or give it a `tuning` of kind answers."
        )
    return row.tuning
