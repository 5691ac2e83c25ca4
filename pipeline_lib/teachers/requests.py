"""The rows of a set that a teacher elsewhere is to answer: those that it has not answered yet."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipeline_lib.storage.seen_keys import SeenKeys
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.teachers.answers import Answers, content_keys, read_texts

TOP_LOGPROBS = 20
"""Alternatives that are asked for at each token: the most that the API gives."""
MAX_TOKENS = 16
"""Tokens of an answer: the names of classes seldom have more than six."""
PROMPT = "Answer with one of these labels and nothing else: {labels}."


def requests_of(inputs: ShardSet, answers: Answers | None, mask: str) -> Iterator[dict[str, str]]:
    """Yield key (hex), text and, of pairs, text_pair of each row without an answer, none twice.

    :param answers: those that there are; :param mask: what stands for a masked word.
    """
    seen = SeenKeys()
    for rows in inputs.tables():
        texts = read_texts(rows, mask)
        keys = content_keys(texts)
        wanted = seen.add(keys)
        if answers is not None:
            wanted &= answers.find(keys) < 0
        for row in np.flatnonzero(wanted).tolist():
            own = (side[row].strip() for side in texts)
            named = dict(zip(("text", "text_pair"), own, strict=False))
            yield {"key": f"{keys[row]:016x}", **named}


def batch_request(
    row: dict[str, str], model: str, labels: list[str], prompt: str = PROMPT
) -> dict[str, Any]:
    """Return a row as a line of an OpenAI batch of chat completions; its custom_id is the key.

    :param prompt: what the model is told; ``{labels}`` in it stands for the classes.
    """
    asked = "\n\n".join(row[name] for name in ("text", "text_pair") if name in row)
    told = prompt.replace("{labels}", ", ".join(labels))
    body = {
        "model": model,
        "messages": [{"role": "system", "content": told}, {"role": "user", "content": asked}],
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "logprobs": True,
        "top_logprobs": TOP_LOGPROBS,
    }
    place = {"method": "POST", "url": "/v1/chat/completions"}
    return {"custom_id": row["key"], **place, "body": body}
