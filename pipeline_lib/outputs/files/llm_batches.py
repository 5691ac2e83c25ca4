"""Requests for a model elsewhere to answer or embed: the texts of sets that have no answer yet."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.content_keys import content_keys
from pipeline_lib.outputs.files.keyed_table import KeyedTable
from pipeline_lib.params import Task
from pipeline_lib.shards.seen_keys import SeenKeys

TOP_LOGPROBS = 20
"""Alternatives requested at each token: the API's maximum."""
MAX_TOKENS = 16
"""Maximum tokens of an answer: class names seldom have more than six."""
LABELS, LEAST, GREATEST = "{labels}", "{min}", "{max}"
"""Placeholders in a prompt for the classes, and for the ends of a regression's range."""
LIST_PROMPT = (
    f"Answer with a JSON list of all of these labels that apply, and nothing else; with [] if none does: {LABELS}."
)
PROMPT = f"Answer with one of these labels and nothing else: {LABELS}."
SCORE_PROMPT = f"Answer with a number from {LEAST} to {GREATEST} and nothing else."


def requests_of(parts: Iterable[Sequence[Sequence[str]]], known: KeyedTable | None) -> Iterator[dict[str, str]]:
    """Yield key (hex), text and, for pairs, text_pair of each distinct text without an answer.

    :param parts: batches of texts: the first sentences and, for pairs, the second ones.
    :param known: the existing answers or vectors.
    """
    seen = SeenKeys()
    for texts in parts:
        keys = content_keys(texts)
        wanted = seen.add(keys)
        if known is not None:
            wanted &= known.find(keys) < 0
        for row in np.flatnonzero(wanted).tolist():
            stripped = (side[row].strip() for side in texts)
            named = dict(zip(("text", "text_pair"), stripped, strict=False))
            yield {"key": f"{keys[row]:016x}", **named}


def instruction(task: Task, prompt: str | None) -> str:
    """Return the instruction given to a model before each text.

    :param prompt: with ``{labels}`` for the classes, or ``{min}`` and ``{max}`` of a regression's
        scores; None: the default one.
    """
    scores = task.score_range
    if scores is None:
        values = {LABELS: ", ".join(task.label_names)}
    else:
        values = {LEAST: f"{scores.min:.10g}", GREATEST: f"{scores.max:.10g}"}
    of_kind = {"regression": SCORE_PROMPT, "multilabel": LIST_PROMPT}
    text = prompt or of_kind.get(task.kind, PROMPT)
    strange = [sign for sign in (LABELS, LEAST, GREATEST) if sign in text and sign not in values]
    if strange:
        raise PotstillError(
            f"--prompt: it has {strange[0]}, but the task's labels are "
            f"{'classes' if scores is None else 'scores'}. Write {' and '.join(values)}."
        )
    for sign, value in values.items():
        text = text.replace(sign, value)
    return text


def answer_tokens(task: Task) -> int:
    """Return how many tokens an answer may have: a list may name every label."""
    return MAX_TOKENS * (len(task.label_names) if task.kind == "multilabel" else 1)


def batch_request(row: dict[str, str], model: str, system_prompt: str, max_tokens: int = MAX_TOKENS) -> dict[str, Any]:
    """Return a row as a line of an OpenAI chat-completions batch, with its key as custom_id.

    :param system_prompt: see :func:`instruction`; :param max_tokens: see :func:`answer_tokens`.
    """
    asked = "\n\n".join(row[name] for name in ("text", "text_pair") if name in row)
    body = {
        "model": model,
        "messages": [{"role": "system", "content": system_prompt}, {"role": "user", "content": asked}],
        "temperature": 0,
        "max_tokens": max_tokens,
        "logprobs": True,
        "top_logprobs": TOP_LOGPROBS,
    }
    endpoint = {"method": "POST", "url": "/v1/chat/completions"}
    return {"custom_id": row["key"], **endpoint, "body": body}


def embedding_request(row: dict[str, str], model: str) -> dict[str, Any]:
    """Return a sentence as a line of an OpenAI embeddings batch, with its key as custom_id."""
    body = {"model": model, "input": row["text"], "encoding_format": "float"}
    endpoint = {"method": "POST", "url": "/v1/embeddings"}
    return {"custom_id": row["key"], **endpoint, "body": body}
