"""Lines of a batch's output: where the reply is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.teacher_files import Given, at, first, identified, reason_of

_OUTPUTS = {"response", "result", "modelOutput", "outputs"}
_REQUESTS = {"body", "params", "request", "modelInput"}
_FINE = (200, "succeeded", "completed")
"""What a line may say of a request besides why it failed."""


@dataclass(frozen=True)
class Form:
    """Where a provider writes what: ``why`` there is no reply, and so on.

    Of several paths, the first that leads anywhere counts (:func:`at`).
    """

    reply: tuple[str, ...]
    error: tuple[str, ...] = ()
    why: tuple[str, ...] = ()


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
