"""``distill teacher``: checks files of answers, and writes the rows that need some."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.commands.options import PARAMS, ParamsFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline_lib.params import AnswerFiles, Params

app = typer.Typer(
    no_args_is_help=True, help="A language model as the teacher, or answers of one in files (docs/teacher-files.md)."
)
SHOWN = 10
RequestFormat = Literal["jsonl", "openai-batch", "anthropic-batch", "gemini-batch"]
Model = Annotated[str | None, Option("--model", help="The batch's model; by default the one in `provenance`.")]


@app.command("check", epilog="Example: distill teacher check answers.jsonl --task reviews")
def check(
    file: Annotated[Path | None, Argument(help="A file of answers; without one, a language model is asked.")] = None,
    task: Annotated[str | None, Option(help="A task of params.yaml; by default the only one.")] = None,
    teacher: Annotated[str | None, Option(help="The row of `teachers` with the settings.")] = None,
    params: ParamsFile = PARAMS,
) -> None:
    """Check a file of a teacher's answers: schema, classes, duplicate texts, coverage.

    Shows what the file contains, how well it agrees with the task's labels, and what share of the task's sets it
    answers, or of its own files while there are no sets. If the file is invalid, names the row and exits with status 1.

    Without a file, shows the prompt of a language model as it reads it, and its answers to some texts of dev.
    """
    from pipeline_lib.corpora.tasks.fetching import source_texts
    from pipeline_lib.outputs.files.answers import Answers
    from pipeline_lib.outputs.files.describe import answer_lines
    from pipeline_lib.params import load_params

    loaded = load_params(params)
    name = task or (next(iter(loaded.tasks)) if len(loaded.tasks) == 1 else None)
    if name is None:
        raise PotstillError(f"--task: missing, and there are {', '.join(loaded.tasks)}. Name one.")
    if file is None:
        _show_prompt(loaded, name, teacher)
        return
    kind = Answers(_settings(loaded, teacher), loaded.task(name))
    lines = answer_lines([file], kind, name, source_texts(loaded, name))
    say(f"{file}: answers for task {name}")
    for line in lines:
        say(f"  {line}")


@app.command("requests", epilog="Example: distill teacher requests reviews full llm requests.jsonl")
def requests(
    task: Annotated[str, Argument(help="A task of params.yaml.")],
    recipe: Annotated[str, Argument(help="One of its transfer sets or splits: dev, test.")],
    teacher: Annotated[str, Argument(help="A teacher of kind `answers`.")],
    out: Annotated[Path, Argument(help="The JSON lines file to write.")],
    format: Annotated[RequestFormat, Option(help="Just the rows, or a batch of a provider's.")] = "jsonl",
    model: Model = None,
    prompt: Annotated[
        Path | None, Option(help="Instructions for a batch's model, with {labels}, or {min} and {max}.")
    ] = None,
    params: ParamsFile = PARAMS,
) -> None:
    """Write the rows of a set that a teacher has not answered yet, each text once.

    Rows that the teacher's files already answer are left out, so raising `n_iter` writes only the
    new ones. A batch asks for structured output: JSON with one of the classes, several, or a score. Its ids are the
    rows' content keys, which join the output to the rows.
    """
    from functools import partial

    from pipeline_lib.outputs.files.answers import Answers
    from pipeline_lib.outputs.files.keyed_table import read_texts
    from pipeline_lib.outputs.files.requests import asked_of, request_of, write_requests
    from pipeline_lib.params import load_params
    from pipeline_lib.shards.shard_sets import ShardSet

    loaded, layout = load_params(params), Layout()
    spec, settings = loaded.task(task), _settings(loaded, teacher)
    is_recipe = recipe in loaded.recipes_of(task)
    inputs = ShardSet.open(layout.transfer(task, recipe) if is_recipe else layout.split(task, recipe))
    request = None
    if format != "jsonl":
        asked = _asked(model, settings.provenance, f"teachers.{teacher}.tuning")
        template = None if prompt is None else prompt.read_text(encoding="utf-8")
        request = partial(request_of, format=format, asked=asked_of(asked, spec, template))
    paths = [Path(loaded.inputs) / path for path in settings.paths(task)]
    texts = (read_texts(table, settings.mask) for table in inputs.tables())
    count, note = write_requests(out, texts, paths, Answers(settings, spec), request)
    say(f"{out}: {count:,} rows of {inputs.manifest.rows:,} need an answer{note}")
    if request is not None and spec.score_range and prompt is None:
        say("The prompt gives the range of the scores but not their meaning: say it with --prompt.")


def _show_prompt(params: "Params", task: str, teacher: str | None) -> None:
    from pipeline_lib.base.kinds import KINDS
    from pipeline_lib.models.serving import open_teacher
    from pipeline_lib.shards.columns import texts
    from pipeline_lib.shards.shard_sets import ShardSet

    scored = [name for name, row in params.teachers_of(task).items() if row.tuning.kind == "scored"]
    name = teacher or next(iter(scored), None)
    if name not in scored:
        raise PotstillError(f"--teacher: {name} is no language model; there are {', '.join(scored) or 'none'}.")
    opened, predict = open_teacher(Layout().teacher(task, name), None, params.teachers[name].max_length)
    shown = texts(ShardSet.open(Layout().split(task, "dev")).to_table().slice(0, SHOWN))
    say(f"{opened.prompt.filled(shown[0])}\n")
    for text, shares in zip(shown, KINDS[opened.kind].probabilities(predict(shown)), strict=True):
        answers = ", ".join(f"{label} {share:.2f}" for label, share in zip(opened.label_names, shares, strict=True))
        say(f"{answers}\t{text if isinstance(text, str) else ' | '.join(text)}")


def _asked(model: str | None, provenance: "Mapping[str, str]", section: str) -> str:
    asked = model or provenance.get("model")
    if asked is None:
        raise PotstillError(
            f"--model: missing, and {section}.provenance names no `model`. Name the model to send the batch to."
        )
    return asked


def _settings(params: "Params", teacher: str | None) -> "AnswerFiles":
    """Return how a teacher's files are read; without a teacher, the documented defaults."""
    from pipeline_lib.params import AnswerFiles

    if teacher is None:
        usual = {"kind": "answers", "files": ["-"], "classes": None, "provenance": {}}
        return AnswerFiles.model_validate(usual | {"mask": "[MASK]"})
    row = params.teachers.get(teacher)
    if row is None or row.tuning.kind != "answers":
        named = [n for n, other in params.teachers.items() if other.tuning.kind == "answers"]
        raise PotstillError(
            f"teachers: {teacher!r} has no answers in files; there are {', '.join(named) or 'none'}"
            ". Name one, or give it a `tuning` of kind answers."
        )
    return row.tuning
