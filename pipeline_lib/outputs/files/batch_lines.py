"""Lines of a batch's output, as providers write them: whose reply, what it says, its tokens.

A line has the reply of one endpoint in the envelope of one provider; each is read on its own.
Envelopes: OpenAI's (which Mistral, ``vllm run-batch`` and SGLang write too), Anthropic's, Gemini's,
Vertex AI's and Bedrock's.  Replies: chat completions, completions, responses, messages, Gemini's
candidates, Bedrock's Converse, and what models on Bedrock return.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import printable
from pipeline_lib.outputs.files.given_rows import Given, check_text

Alternatives = dict[str, float]
"""The possible tokens at one position of a reply, with their log probabilities."""
IDS = ("custom_id", "key", "recordId", "request_id")
"""Where providers write the id that a request was given."""
LONGEST = 200
"""Characters of a provider's error message that are kept."""
_KEY = re.compile("[0-9a-f]{16}")
_ESCAPED = re.compile(r"(?:bytes:)?((?:\\x[0-9a-fA-F]{2})+)|((?:<0x[0-9A-F]{2}>)+)")


@dataclass(frozen=True)
class Reply:
    """What a model replied.

    :ivar text: None if there is none; then ``error`` says why.
    :ivar tokens: of the reply, perhaps with those of its reasoning before it; empty if unknown.
    :ivar places: for each token the alternatives, including the token itself.  Bytes that are no
        whole character are lone surrogates (``surrogateescape``).
    """

    text: str | None
    error: str | None = None
    tokens: list[str] = field(default_factory=list)
    places: list[Alternatives] = field(default_factory=list)


Reader = Callable[[Mapping[str, Any]], Reply | None]
"""Reads a body; None: it is another endpoint's."""


def batch_response(line: Mapping[str, Any], where: str) -> tuple[Given, Mapping[str, Any]]:
    """Return whose line it is, with the request's error if it failed, and the response's body."""
    body, response, result = batch_body(line), line.get("response"), line.get("result")
    if not {"response", "result", "modelOutput", "error"} & line.keys():
        raise PotstillError(f"{where}: a batch's request, which has no response. Give the file of the batch's results.")
    if not isinstance(response, Mapping | None):
        raise TypeError(f"a response of {type(response).__name__}")
    row = _identified(line, where)
    error = line.get("error") or body.get("error")
    status = (response or {}).get("status_code", 200)
    if isinstance(result, Mapping) and result.get("type") != "succeeded":
        error, status = result.get("error") or {}, result.get("type")
    elif isinstance(line.get("status"), str) and not body:
        error = error or line["status"]  # Vertex AI's, which is empty if all went well
    if error or status != 200:
        page = (response or {}).get("body")
        return Given(row.texts, row.key, error=_reason(error or page, status)), body
    return row, body


def batch_body(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a response's body; a gateway's failure has a page or a sentence instead."""
    response, result = line.get("response"), line.get("result")
    body: Any = line.get("modelOutput")
    if isinstance(result, Mapping):
        body = result.get("message")
    elif isinstance(response, Mapping):
        body = response.get("body") if {"body", "status_code"} & response.keys() else response
    return body if isinstance(body, Mapping) else {}


def _identified(line: Mapping[str, Any], where: str) -> Given:
    """Return a line's text or, by its id, its content key."""
    if "text" in line:
        texts = tuple(line[name] for name in ("text", "text_pair") if name in line)
        for text in texts:
            check_text(text, where)
        return Given(texts)
    metadata, request = line.get("metadata"), line.get("request")
    if isinstance(metadata, Mapping) and "key" in metadata:
        return Given(key=content_key(metadata["key"], where))
    name = next((name for name in IDS if name in line), None)
    if name is None and isinstance(request, Mapping):
        # Vertex AI returns the request instead of an id.
        return Given(_asked_texts(request))
    return Given(key=content_key(line.get(name or IDS[0]), where, name or IDS[0]))


def _asked_texts(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the text, or the two texts, that the last turn of a request for Gemini asks about."""
    parts = request["contents"][-1]["parts"]
    return tuple(part["text"] for part in parts if part.get("text"))


def content_key(custom_id: Any, where: str, name: str = IDS[0]) -> int:
    """Return the id of a request as a content key."""
    if isinstance(custom_id, str) and _KEY.fullmatch(custom_id):
        return int(custom_id, 16)
    raise PotstillError(
        f"{where}: {name} {custom_id!r:.40} is not a content key, so nothing says which text it "
        "answers. Make the batch with `distill teacher requests` (docs/teacher-files.md), or add "
        "the `text` that was asked about to each line."
    )


def _reason(error: Any, status: Any) -> str:
    """Return in one line why a request failed."""
    message = error
    while isinstance(message, Mapping):
        code = next((message[n] for n in ("code", "errorCode", "status") if message.get(n)), None)
        status = code if code and status in (200, None) else status
        inner = [message[n] for n in ("message", "errorMessage", "error") if message.get(n)]
        message = inner[0] if inner else json.dumps(message) if message else ""
    text = _one_line(message or "")
    if text.startswith("<"):
        text = ""  # a gateway's page
    if status in (200, None):
        return text or "failed"
    prefix = f"status {status}" if str(status).isdecimal() else str(status)
    return f"{prefix}: {text}" if text else prefix


def _one_line(message: Any) -> str:
    """Return a provider's message as one line that a terminal and a file can take."""
    text = " ".join(printable(str(message)).split())[:LONGEST]
    return text.encode("utf-8", "replace").decode()


def reply_of(body: Mapping[str, Any], where: str) -> Reply:
    """Return the reply in a response's body, without what the model thought before it."""
    for key, read in _READERS.items():
        if key in body and (reply := read(body)) is not None:
            if reply.text or reply.error:
                return reply
            return Reply(None, _no_answer(body))
    vectors = {"embedding", "embeddings", "data"} & body.keys()
    if vectors:
        raise PotstillError(
            f"{where}: these are vectors (an embeddings endpoint's), not answers. Name the file in "
            "`sentence_vectors`, or have the texts answered by a chat model."
        )
    if not body:
        return Reply(None, "no answer")
    raise PotstillError(
        f"{where}: a response with {', '.join(map(repr, body))}, which is of no endpoint that is "
        "read. Give rows of `text` and `label` instead (docs/teacher-files.md)."
    )


def _no_answer(body: Mapping[str, Any]) -> str:
    """Return that there is no answer and, if the response says it, why."""
    first = next((body[n][0] for n in ("choices", "candidates") if body.get(n)), {})
    details = body.get("incomplete_details") or body.get("promptFeedback") or {}
    reasons = (
        first.get("finish_reason"),
        first.get("finishReason"),
        details.get("reason"),
        details.get("blockReason"),
        body.get("stop_reason"),
        body.get("stopReason"),
    )
    reason = next(filter(None, reasons), None)
    return "no answer" if reason is None else f"no answer ({reason})"


def _of_choices(body: Mapping[str, Any]) -> Reply:
    """Read a chat completion, or a completion."""
    choice = (body["choices"] or [{}])[0]
    message = choice.get("message") or {}
    tokens, places = _chat_tokens(choice.get("logprobs"))
    calls = message.get("tool_calls") or []
    text = _joined(message.get("content")) or choice.get("text")
    if not text and calls:
        text = calls[0]["function"]["arguments"]
    refused = f"refused: {_one_line(message['refusal'])}" if message.get("refusal") and not text else None
    return Reply(text, refused, tokens, places)


def _of_output(body: Mapping[str, Any]) -> Reply:
    """Read an object of the Responses API, or one of Converse."""
    if isinstance(body["output"], Mapping):
        return Reply(_joined(body["output"]["message"]["content"]))
    items = [item for item in body["output"] if item.get("type") != "reasoning"]
    parts = [part for item in items for part in item.get("content") or () if part.get("type")]
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")
    calls = [item["arguments"] for item in items if item.get("type") == "function_call"]
    refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    logprobs = [token for part in parts for token in part.get("logprobs") or ()]
    tokens, places = _chat_tokens({"content": logprobs})
    refused = f"refused: {_one_line(refusals[0])}" if refusals and not text else None
    return Reply(text or next(iter(calls), None), refused, tokens, places)


def _of_candidates(body: Mapping[str, Any]) -> Reply:
    """Read a response of Gemini's."""
    candidate = (body["candidates"] or [{}])[0]
    text = _joined((candidate.get("content") or {}).get("parts"))
    logprobs = candidate.get("logprobsResult") or {}
    selected = [_token(c, "logProbability") for c in logprobs.get("chosenCandidates") or ()]
    tops = [top.get("candidates") or () for top in logprobs.get("topCandidates") or ()]
    tops += [()] * (len(selected) - len(tops))
    places = [
        dict([*(_token(c, "logProbability") for c in top), token]) for token, top in zip(selected, tops, strict=False)
    ]
    return Reply(text, None, [token for token, _ in selected], places)


def _of_list(key: str, *path: str) -> Reader:
    """Return a reader of the first of several replies, whose text is at a path."""

    def read(body: Mapping[str, Any]) -> Reply | None:
        value: Any = body[key][0] if body[key] else {}
        for name in path if value else ():
            if name not in value:
                return None
            value = value[name]
        return Reply(value or None)

    return read


def _of_content(body: Mapping[str, Any]) -> Reply:
    return Reply(_joined(body["content"]))


def _of_text(key: str) -> Reader:
    return lambda body: Reply(body[key]) if isinstance(body[key], str) else None


_READERS: dict[str, Reader] = {
    "choices": _of_choices,
    "output": _of_output,
    "candidates": _of_candidates,
    "promptFeedback": lambda _: Reply(None),
    "content": _of_content,
    "message": lambda body: _of_content(body["message"]),
    "results": _of_list("results", "outputText"),
    "outputs": _of_list("outputs", "text"),
    "generations": _of_list("generations", "text"),
    "completions": _of_list("completions", "data", "text"),
    "generation": _of_text("generation"),
    "completion": _of_text("completion"),
    "text": _of_text("text"),
}
"""Readers by the key that identifies a body: of Bedrock's models, each has its own."""


def _joined(content: Any) -> str | None:
    """Return the text of a message: of its parts, those that are no thoughts.

    The input of a tool takes the place of a text, as JSON.
    """
    if content is None or isinstance(content, str):
        return content
    texts, inputs = [], []
    for part in content:
        call = part.get("toolUse") or part.get("functionCall")
        if part.get("type") == "tool_use" or call:
            call = call or part
            inputs.append(json.dumps(call.get("input") or call.get("args"), ensure_ascii=False))
        elif not part.get("thought") and isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "".join(texts) or next(iter(inputs), None)


def _chat_tokens(logprobs: Mapping[str, Any] | None) -> tuple[list[str], list[Alternatives]]:
    """Return the tokens and alternatives of a chat answer, or of a completion."""
    if not logprobs:
        return [], []
    if "content" in logprobs:
        parts: Sequence[Mapping[str, Any]] = logprobs["content"] or []
        tokens = [_token(part) for part in parts]
        tops: Iterable[Any] = (map(_token, part.get("top_logprobs") or ()) for part in parts)
    else:
        pairs = zip(logprobs["tokens"], logprobs["token_logprobs"], strict=True)
        tokens = [(token_text(token), float(value)) for token, value in pairs]
        listed = logprobs.get("top_logprobs") or [{}] * len(tokens)
        tops = ([(token_text(t), v) for t, v in (top or {}).items()] for top in listed)
    places = [dict([*top, token]) for token, top in zip(tokens, tops, strict=True)]
    return [token for token, _ in tokens], places


def _token(part: Mapping[str, Any], name: str = "logprob") -> tuple[str, float]:
    return token_text(part["token"], part.get("bytes")), float(part[name])


def token_text(token: str, raw: Sequence[int] | None = None) -> str:
    r"""Return a token's text: by its bytes, if they are known, or written out as \xf0 or <0xF0>."""
    if raw:
        return bytes(raw).decode("utf-8", "surrogateescape")
    if match := _ESCAPED.fullmatch(token):
        digits = re.sub(r"\\x|<0x|>", "", match[1] or match[2])
        return bytes.fromhex(digits).decode("utf-8", "surrogateescape")
    # Some servers write a tokenizer's own sign for a space.
    return f" {token[1:]}" if token[:1] in ("▁", "Ġ") else token
