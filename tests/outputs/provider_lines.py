"""The same reply as each provider's batch writes it."""

from collections.abc import Callable
from typing import Any

Line = dict[str, Any]


def openai(key: str, body: Line) -> Line:
    response = {"status_code": 200, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": key, "response": response, "error": None}


def chat(key: str, reply: Any, **message: Any) -> Line:
    choice = {"index": 0, "message": {"role": "assistant", "content": reply, **message}, "finish_reason": "stop"}
    return openai(key, {"object": "chat.completion", "choices": [choice | {"logprobs": None}]})


def responses(key: str, reply: str) -> Line:
    part = {"type": "output_text", "text": reply, "annotations": [], "logprobs": []}
    items = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "delivery?"}]},
        {"type": "message", "role": "assistant", "status": "completed", "content": [part]},
    ]
    return openai(key, {"object": "response", "status": "completed", "output": items})


def mistral(key: str, reply: str) -> Line:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "delivery?"}]}
    return chat(key, [thought, {"type": "text", "text": reply}])


def tool_call(key: str, reply: str) -> Line:
    return chat(key, None, tool_calls=[{"type": "function", "function": {"name": "f", "arguments": reply}}])


def anthropic(key: str, *blocks: Line, kind: str = "succeeded") -> Line:
    message = {"type": "message", "role": "assistant", "content": [*blocks], "stop_reason": "end_turn"}
    return {"custom_id": key, "result": {"type": kind, "message": message if blocks else None}}


def gemini(reply: str) -> Line:
    parts = [{"text": "delivery?", "thought": True}, {"text": reply}]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}], "modelVersion": "m"}


def bedrock(key: str, output: Line) -> Line:
    return {"recordId": key, "modelInput": {"prompt": "delivery?"}, "modelOutput": output}


def converse(key: str, reply: str) -> Line:
    blocks = [{"reasoningContent": {"reasoningText": {"text": "delivery?"}}}, {"text": reply}]
    return bedrock(key, {"output": {"message": {"role": "assistant", "content": blocks}}})


THOUGHT = {"type": "thinking", "thinking": "delivery?"}
SHAPES: dict[str, Callable[[str, str], Line]] = {
    "chat": chat,
    "completion": lambda key, reply: openai(key, {"choices": [{"text": reply, "logprobs": None}]}),
    "responses": responses,
    "mistral": mistral,
    "vllm run-batch": lambda key, reply: chat(key, reply, reasoning_content="delivery?", tool_calls=[]),
    "tool call": tool_call,
    "anthropic": lambda key, reply: anthropic(key, THOUGHT, {"type": "text", "text": reply}),
    "anthropic tool": lambda key, reply: anthropic(key, {"type": "tool_use", "input": {"label": "billing"}}),
    "gemini": lambda key, reply: {"key": key, "response": gemini(reply)},
    "gemini metadata": lambda key, reply: {"metadata": {"key": key}, "response": gemini(reply)},
    "converse": converse,
    "bedrock claude": lambda key, reply: bedrock(key, {"content": [{"type": "text", "text": reply}]}),
    "bedrock titan": lambda key, reply: bedrock(key, {"results": [{"outputText": reply}]}),
    "bedrock llama": lambda key, reply: bedrock(key, {"generation": reply, "stop_reason": "stop"}),
    "bedrock mistral": lambda key, reply: bedrock(key, {"outputs": [{"text": reply}]}),
    "bedrock cohere": lambda key, reply: bedrock(key, {"generations": [{"text": reply}]}),
    "vllm": lambda key, reply: {"custom_id": key, "outputs": [{"text": reply, "logprobs": None}]},
}
