"""What a model elsewhere is to answer or to embed: the texts of sets that have no answer yet."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lib.storage.seen_keys import SeenKeys
from pipeline_lib.teachers.content_keys import content_keys

if TYPE_CHECKING:
    from pipeline_lib.teachers.answers import Answers
    from pipeline_lib.teachers.given_vectors import GivenVectors

TOP_LOGPROBS = 20
"""Alternatives that are asked for at each token: the most that the API gives."""
MAX_TOKENS = 16
"""Tokens of an answer: the names of classes seldom have more than six."""
PROMPT = "Answer with one of these labels and nothing else: {labels}."


def requests_of(
    parts: Iterable[Sequence[Sequence[str]]], known: "Answers | GivenVectors | None"
) -> Iterator[dict[str, str]]:
    """Yield key (hex), text and, of pairs, text_pair of each text without an answer, none twice.

    :param parts: texts of sets, some together: the first sentences and, of pairs, the second ones.
    :param known: the answers that there are.
    """
    seen = SeenKeys()
    for texts in parts:
        keys = content_keys(texts)
        wanted = seen.add(keys)
        if known is not None:
            wanted &= known.find(keys) < 0
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


def embedding_request(row: dict[str, str], model: str) -> dict[str, Any]:
    """Return a sentence as a line of an OpenAI batch of embeddings; its custom_id is the key."""
    body = {"model": model, "input": row["text"], "encoding_format": "float"}
    place = {"method": "POST", "url": "/v1/embeddings"}
    return {"custom_id": row["key"], **place, "body": body}
