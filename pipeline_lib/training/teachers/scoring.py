"""Makes a teacher of a causal language model: its prompt, with examples of train, written beside it.

Brown et al. 2020, section 2: the model is shown a few answered examples, or none, and nothing is trained.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import link_or_copy, write_json
from pipeline_lib.base.kinds import KINDS, label_array, score
from pipeline_lib.base.model_config import name_outputs
from pipeline_lib.base.processor import computed_on
from pipeline_lib.models.scored import FIRST, LABEL, SECOND, Prompt, ScoredTeacher
from pipeline_lib.models.teacher import PROMPT
from pipeline_lib.models.weights import parameter_counts
from pipeline_lib.params import Scored, Task
from pipeline_lib.shards.columns import texts
from pipeline_lib.shards.training_records import TeacherRecord
from pipeline_lib.text.pieces import load_fast_tokenizer
from pipeline_lib.training.teachers.finetuning import AGREEMENT_ROWS, EVALUATION_TOKENS

LABELS, _ROW = "{labels}", "\0"
"""Where the labels are listed; what stands for the row while the chat template is laid around the prompt."""


def take_scored(
    model: Path, file: Path, folder: Path, settings: Scored, task: Task, splits: tuple[pa.Table, pa.Table],
    max_length: int, device: str, precision: str,
) -> TeacherRecord:  # fmt: skip
    """Link a language model into ``folder``, write its prompt beside it, and score it where there are labels.

    :param file: the prompt, with placeholders, if the settings name one; :param splits: the tables of train and dev.
    """
    for path in sorted(model.iterdir()):
        link_or_copy(path, folder / path.name)
    name_outputs(folder, task.label_names)
    train, dev = (table.filter(table["label"].is_valid()) for table in splits)
    write_json(folder / PROMPT, asdict(prompt_of(file, settings, task, train, folder)))
    teacher, measured = ScoredTeacher.read(folder, device, precision), []
    for rows in (train[:AGREEMENT_ROWS], dev):
        outputs = teacher.predict(texts(rows), max_length, EVALUATION_TOKENS)
        measured.append((label_array(rows["label"]), outputs) if rows.num_rows else None)
    on_train, on_dev = measured
    record = TeacherRecord(
        metric=task.metrics[0],
        best_dev=on_dev and score(task.metrics[0], *on_dev, task.positive_class),
        selection=f"a language model as it is, with {settings.examples} examples",
        training_agreement=on_train and KINDS[task.kind].agreement(*on_train),
        parameters=parameter_counts(teacher),
        computed_on=computed_on(device),
        max_length=max_length,
    )
    record.write(folder / "training.json")
    return record


def prompt_of(file: Path, settings: Scored, task: Task, train: pa.Table, folder: Path) -> Prompt:
    """Return the prompt of a task, with examples drawn from the labelled rows of train."""
    text = read_template(file, task) if settings.prompt else default_template(task)
    answers = settings.labels or {name: name for name in task.label_names}
    text = text.replace(LABELS, ", ".join(answers.values()))
    start = text.rfind("\n\n", 0, text.index(FIRST)) + 2 if "\n\n" in text[: text.index(FIRST)] else 0
    several = KINDS[task.kind].has_several
    prompt = Prompt(text[:start], text[start:], {name: answers[name] for name in task.label_names}, several, False)
    shown = "".join(f"{example}\n\n" for example in examples(replace(prompt, begin=""), train, settings))
    prompt = replace(prompt, begin=prompt.begin + shown)
    if not settings.chat:
        return prompt
    tokenizer = load_fast_tokenizer(folder)
    if not tokenizer.chat_template:
        raise PotstillError(f"{folder}: its tokenizer has no chat template. Set `chat: false`, or take another model.")
    asked = [{"role": "user", "content": prompt.begin + _ROW}]
    before, _, after = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True).partition(_ROW)
    return replace(prompt, begin=before, row=prompt.row + after, chat=True)


def default_template(task: Task) -> str:
    """Return what is asked about the texts of a task whose teacher has no prompt of its own."""
    row = f"First: {FIRST}\nSecond: {SECOND}\n" if task.is_pair else f"Text: {FIRST}\n"
    if KINDS[task.kind].has_several:
        return f"{row}Does the label {LABEL} apply, yes or no? Answer:"
    return f"Which of these labels fits best: {LABELS}?\n\n{row}Label:"


def read_template(file: Path, task: Task) -> str:
    """Return the text of a prompt's file, after checking that it asks about the texts of a task."""
    try:
        text = file.read_text(encoding="utf-8").rstrip()
    except UnicodeDecodeError as error:
        raise PotstillError(f"{file}: not UTF-8 (byte {error.start:,}). Save the prompt as UTF-8.") from error
    several = KINDS[task.kind].has_several
    needed = [FIRST, *[SECOND] * task.is_pair, *[LABEL] * several]
    starts = [text.find(sign) for sign in needed]
    if -1 in starts or (several and starts[-1] < max(starts)):
        raise PotstillError(
            f"{file}: a prompt for this task has {' and then '.join(needed)}, where each text is put. Write "
            f"them, such as 'Text: {{text}}' and below it 'Answer:'."
        )
    return text


def examples(prompt: Prompt, train: pa.Table, settings: Scored) -> Iterator[str]:
    """Yield answered examples, each of the next label in turn; of several labels, with it and without it in turn."""
    order = np.random.default_rng(settings.seed).permutation(train.num_rows)
    labels = label_array(train["label"])[order] if settings.examples else np.zeros(0)
    drawn: set[int] = set()
    for number in range(settings.examples):
        turn, label = divmod(number, len(prompt.answers))
        fits = labels[:, label] == (turn + 1) % 2 if prompt.several else labels == label
        fitting = [row for row in order[fits].tolist() if row not in drawn]
        if not fitting:
            raise PotstillError(f"`examples`: train has too few rows of each label for {settings.examples}. Lower it.")
        drawn.add(fitting[0])
        [text] = texts(train.take(fitting[:1]))
        answers = prompt.continued(text)
        yield answers[2 * label + turn % 2 if prompt.several else label][1]
