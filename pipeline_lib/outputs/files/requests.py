"""Requests for a model elsewhere to answer: the texts of sets that have no answer yet."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json_lines
from pipeline_lib.base.hashing import SeenKeys
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.outputs.files.answers import Answers
from pipeline_lib.outputs.files.gathering import gather
from pipeline_lib.outputs.files.keyed_table import KeyedTable, content_keys
from pipeline_lib.params import Task

MAX_TOKENS = 64
"""Maximum tokens of an answer, for each class that it may name: names seldom have more than six."""
LABELS, LEAST, GREATEST = "{labels}", "{min}", "{max}"
"""Placeholders in a prompt for the classes, and for the ends of a regression's range."""
Texts = Iterable[Sequence[Sequence[str]]]
"""Batches of texts: the first sentences and, for pairs, the second ones."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a model about each text.

    :ivar prompt: the instruction; :ivar schema: of the answer, in JSON Schema.
    """

    model: str
    prompt: str
    schema: dict[str, Any]
    max_tokens: int


def asked_of(model: str, task: Task, prompt: str | None) -> Asked:
    """Return what is asked about a task's texts; see :func:`instruction`."""
    kind, names = KINDS[task.kind], task.label_names
    answer: dict[str, Any] = {"type": "number"} if task.score_range else {"type": "string", "enum": names}
    if kind.has_several:
        answer = {"type": "array", "items": answer}
    schema = {"type": "object", "properties": {kind.asked: answer}}
    schema |= {"required": [kind.asked], "additionalProperties": False}
    tokens = MAX_TOKENS * (len(names) if kind.has_several else 1)
    return Asked(model, instruction(task, prompt), schema, tokens)


def instruction(task: Task, prompt: str | None) -> str:
    """Return the instruction given to a model before each text.

    :param prompt: with ``{labels}``, or ``{min}`` and ``{max}`` of a regression's scores; None: the default one.
    """
    values = {LABELS: ", ".join(task.label_names)}
    if scores := task.score_range:
        values = {LEAST: f"{scores.min:.10g}", GREATEST: f"{scores.max:.10g}"}
    text = prompt or KINDS[task.kind].prompt
    if strange := [sign for sign in (LABELS, LEAST, GREATEST) if sign in text and sign not in values]:
        raise PotstillError(
            f"--prompt: it has {strange[0]}, but the task's labels are "
            f"{'scores' if scores else 'classes'}. Write {' and '.join(values)}."
        )
    for sign, value in values.items():
        text = text.replace(sign, value)
    return text


def _openai(key: str, text: str, asked: Asked) -> dict[str, Any]:
    body = {
        "model": asked.model,
        "messages": [{"role": "system", "content": asked.prompt}, {"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": asked.max_tokens,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": asked.schema},
        },
    }
    return {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}


def _anthropic(key: str, text: str, asked: Asked) -> dict[str, Any]:
    params = {
        "model": asked.model,
        "max_tokens": asked.max_tokens,
        "temperature": 0,
        "system": asked.prompt,
        "messages": [{"role": "user", "content": text}],
        "tools": [{"name": "answer", "input_schema": asked.schema}],
        "tool_choice": {"type": "tool", "name": "answer"},
    }
    return {"custom_id": key, "params": params}


def _gemini(key: str, text: str, asked: Asked) -> dict[str, Any]:
    # The batch names the model.
    schema = _upper({name: value for name, value in asked.schema.items() if name != "additionalProperties"})
    request = {
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "systemInstruction": {"parts": [{"text": asked.prompt}]},
        "generationConfig": {"temperature": 0, "responseMimeType": "application/json", "responseSchema": schema},
    }
    return {"key": key, "request": request}


def _upper(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its types as Gemini names them."""
    inner = {name: _upper(value) if isinstance(value, Mapping) else value for name, value in schema.items()}
    return inner | ({"type": inner["type"].upper()} if "type" in inner else {})


PROVIDERS: dict[str, Callable[[str, str, Asked], dict[str, Any]]] = {
    "openai-batch": _openai,  # Azure, Mistral, vLLM's run-batch and SGLang read the same
    "anthropic-batch": _anthropic,
    "gemini-batch": _gemini,
}
"""How each provider is asked for a structured answer, by the format of the batch."""


def request_of(row: dict[str, str], format: str, asked: Asked) -> dict[str, Any]:
    """Return a row as a line of a provider's batch, with its key as the id."""
    return PROVIDERS[format](row["key"], "\n\n".join(row[n] for n in ("text", "text_pair") if n in row), asked)


def requests_of(batches: Texts, table: KeyedTable | None) -> Iterator[dict[str, str]]:
    """Yield key (hex), text and, for pairs, text_pair of each distinct text that has no value in a table."""
    seen = SeenKeys()
    for texts in batches:
        keys = content_keys(texts)
        is_open = seen.add(keys)
        if table is not None:
            is_open &= table.find(keys) < 0
        for row in np.flatnonzero(is_open).tolist():
            stripped = (side[row].strip() for side in texts)
            named = dict(zip(("text", "text_pair"), stripped, strict=False))
            yield {"key": f"{keys[row]:016x}", **named}


def write_requests(
    out: Path,
    batches: Texts,
    files: Sequence[Path],
    kind: Answers,
    request: Callable[[dict[str, str]], dict[str, Any]] | None,
) -> tuple[int, str]:
    """Write the texts to which files give nothing yet, each once.

    :param request: makes a line of a batch of a text; None writes just the texts.
    :return: how many there are, and which of the files are not there yet, for the user.
    """
    absent = [str(path) for path in files if not path.exists()]
    rows = requests_of(batches, gather([path for path in files if path.exists()], kind, partial=True))
    count = write_json_lines(out, map(request, rows) if request else rows)
    return count, f" ({', '.join(absent)} not there yet)" if absent else ""
