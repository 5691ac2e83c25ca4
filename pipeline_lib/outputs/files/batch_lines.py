"""Lines of a batch's output: where the reply is, and what tokens say of other classes."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.teacher_files import Given, at, first, identified, reason_of

IMPOSSIBLE = 1e-3
"""Alternatives whose probabilities at one position sum to more than 1 by this are rejected."""
_OUTPUTS = {"response", "result", "modelOutput", "outputs"}
_REQUESTS = {"body", "params", "request", "modelInput"}
_FINE = (200, "succeeded", "completed")
"""What a line may say of a request besides why it failed."""
_LABEL = re.compile(r'"label"\s*:\s*"')
_Alternatives = tuple[bytes, dict[bytes, float]]
"""A token, and the probabilities of all that were possible there, itself included."""


@dataclass(frozen=True)
class Form:
    """Where a provider writes what: ``why`` there is no reply, log probabilities of ``tokens``, and so on.

    Of several paths, the first that leads anywhere counts (:func:`at`).
    """

    reply: tuple[str, ...]
    error: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()


_CHAT, _OUTPUT, _MESSAGE = "response.body.choices", "response.body.output", "result.message"
FORMS = {
    # Azure, Mistral, vLLM's run-batch and SGLang write the same.
    "OpenAI": Form(
        reply=(
            *(f"{_CHAT}.message.content.text", f"{_CHAT}.message.content", f"{_CHAT}.text"),
            *(f"{_CHAT}.message.tool_calls.function.arguments", f"{_OUTPUT}.arguments", f"{_OUTPUT}.content.text"),
        ),
        error=("error", "response.body.error", f"{_CHAT}.message.refusal", f"{_OUTPUT}.content.refusal"),
        why=(f"{_CHAT}.finish_reason", "response.body.incomplete_details.reason", "response.status_code"),
        tokens=(f"{_CHAT}.logprobs.content", f"{_OUTPUT}.content.logprobs"),
    ),
    "Anthropic": Form(
        reply=(f"{_MESSAGE}.content.input", f"{_MESSAGE}.content.text"),
        error=("result.error",),
        why=(f"{_MESSAGE}.stop_reason", "result.type"),
    ),
    "Gemini, Vertex AI": Form(
        reply=("response.candidates.content.parts.text",),
        why=("response.candidates.finishReason", "response.promptFeedback.blockReason", "status"),
    ),
    "Bedrock": Form(  # Converse; Claude, Llama, Titan, Mistral, Cohere
        reply=(
            *("modelOutput.output.message.content.text", "modelOutput.content.input", "modelOutput.content.text"),
            *("modelOutput.generation", "modelOutput.results.outputText", "modelOutput.outputs.text"),
            "modelOutput.generations.text",
        ),
        why=("modelOutput.stopReason", "modelOutput.stop_reason"),
    ),
    "vLLM's RequestOutput": Form(reply=("outputs.text",), why=("outputs.finish_reason",)),
}


def is_line(row: Mapping[str, Any], reply: str | None = None) -> bool:
    """Whether an object is a line of a batch, and not a row; ``reply`` is a path that is not among :data:`FORMS`."""
    if reply is not None and at(row, reply) is not None:
        return True
    has_output = any(isinstance(row.get(name), Mapping | list) for name in _OUTPUTS)
    return has_output or ("text" not in row and bool(row.keys() & (_OUTPUTS | _REQUESTS)))


def read_line(line: Mapping[str, Any], where: str, reply: str | None = None) -> tuple[Given, Any]:
    """Return whose line it is, with the reason if the request failed, and the reply."""
    if not line.keys() & (_OUTPUTS | {"error"}) and reply is None:
        raise PotstillError(f"{where}: a batch's request, which has no response. Give the file of the batch's results.")
    row = identified(line, where)
    if error := value_in(line, "error"):
        return replace(row, error=f"failed or refused: {reason_of(error)}"), None
    value = value_in(line, "reply", reply)
    if value is not None:
        return row, value
    body = first(at(line, name) for name in ("response.body", *sorted(_OUTPUTS)))
    why = value_in(line, "why")
    if why is None and body is not None:
        raise PotstillError(
            f"{where}: a response without a reply in any of the places where providers write it. Name its path in the "
            "teacher's `reply`, or give rows of `text` and `label` (docs/teacher-files.md)."
        )
    status = "status " * isinstance(why, int)
    return replace(row, error="no reply" + f": {status}{reason_of(why)}" * (why is not None)), None


def value_in(line: Mapping[str, Any], name: str, path: str | None = None) -> Any:
    """Return what a line has under a field of :class:`Form`, or at a path."""
    paths = [path] * (path is not None) + [path for form in FORMS.values() for path in getattr(form, name)]
    return first(value for value in (at(line, path) for path in paths) if name != "why" or value not in _FINE)


def class_shares(line: Mapping[str, Any], reply: str, name: str, names: Sequence[str], where: str) -> dict[str, float]:
    """Return the probability of each class along the tokens of a reply's class; none if there are no such tokens.

    A class may be several tokens long.  At each of them, the probability of an alternative goes to the classes that
    continue so, evenly; what continues no class is not covered.

    :param name: the class that the reply states.
    """
    tokens = _places(value_in(line, "tokens"), where)
    match = _LABEL.search(reply)
    start = match.end() if match else len(reply) - len(reply.lstrip())
    forms = {label: _bytes(json.dumps(label, ensure_ascii=False)[1:] if match else label).lower() for label in names}
    spelled = b"".join(token for token, _ in tokens)
    begin = spelled.rfind(_bytes(reply))
    shares: Counter[str] = Counter()
    if begin < 0 or not tokens:
        return shares
    path, reached = b"", 1.0
    for token, alternatives in _from(tokens, begin + len(_bytes(reply[:start]))):
        for other, probability in alternatives.items():
            begun = _begun(path + other, forms) if other != token else []
            shares.update({label: reached * probability / len(begun) for label in begun})
        path, reached = path + token, reached * alternatives[token]
        begun = _begun(path, forms)
        if not begun:
            return Counter()  # written in another way
        if len(begun) == 1:
            break
    shares[name] += reached
    return shares


def _places(log_probabilities: Any, where: str) -> list[_Alternatives]:
    """Return a reply's tokens with their alternatives, from log probabilities as OpenAI writes them."""
    try:
        tokens = [
            (
                _raw(token),
                {_raw(other): math.exp(other["logprob"]) for other in (*(token.get("top_logprobs") or ()), token)},
            )
            for token in log_probabilities or ()
        ]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise PotstillError(
            f"{where}: log probabilities of another form than OpenAI's ({type(error).__name__}: {error}). Ask without."
        ) from error
    totals = [sum(alternatives.values()) for _, alternatives in tokens]
    impossible = [total for total in totals if not total <= 1.0 + IMPOSSIBLE]
    are_alike = len(tokens) > 1 and len(tokens[0][1]) > 1 and all(others == tokens[0][1] for _, others in tokens)
    if are_alike or impossible:
        alike = "all tokens have the same alternatives"
        fault = f"a token's alternatives sum to {impossible[0]:.3f}" if impossible else alike
        raise PotstillError(
            f"{where}: {fault}, so the provider's log probabilities cannot be right. Ask for labels alone, or use "
            "another provider."
        )
    return tokens


def _from(tokens: Sequence[_Alternatives], offset: int) -> Iterator[_Alternatives]:
    """Yield the tokens from a byte of a reply on, without what the first one and its alternatives have before it."""
    end = 0
    for token, alternatives in tokens:
        end += len(token)
        if end - len(token) >= offset > 0:
            yield token, alternatives
        elif end > offset:
            before = token[: len(token) - (end - offset)]
            cut: Counter[bytes] = Counter()
            for other, probability in alternatives.items():
                cut[_after(other, before)] += probability
            yield _after(token, before), cut
            offset = end


def _after(token: bytes, before: bytes) -> bytes:
    return token.removeprefix(before).lstrip(b" \n\t\"'")


def _begun(path: bytes, forms: Mapping[str, bytes]) -> list[str]:
    """Return the classes that begin with a path, or else those that the path begins with."""
    path = path.lower()
    begun = [name for name, form in forms.items() if path and form.startswith(path)]
    return begun or [name for name, form in forms.items() if path.startswith(form)]


def _raw(token: Mapping[str, Any]) -> bytes:
    """Return a token's bytes, which need not be whole characters."""
    return bytes(token["bytes"]) if token.get("bytes") else _bytes(token["token"])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
