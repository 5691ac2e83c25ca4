"""The same reply as each provider's batch writes it."""

import json
import math
from collections.abc import Callable
from typing import Any

Line = dict[str, Any]
Tokens = list[dict[str, float]]
"""For each token its alternatives with their probabilities, the token itself first."""


def top(alternatives: dict[str, float], name: str = "logprob") -> list[Line]:
    return [{"token": token, name: math.log(p)} for token, p in alternatives.items()]


def openai(key: str, body: Line) -> Line:
    response = {"status_code": 200, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": key, "response": response, "error": None}


def chat(key: str, reply: str, tokens: Tokens = (), **message: Any) -> Line:
    positions = [{**top(alternatives)[0], "top_logprobs": top(alternatives)} for alternatives in tokens]
    logprobs = {"content": positions} if tokens else None
    choice = {"index": 0, "message": {"role": "assistant", "content": reply, **message}}
    return openai(key, {"object": "chat.completion", "choices": [choice | {"logprobs": logprobs}]})


def completion(key: str, reply: str, tokens: Tokens = ()) -> Line:
    logprobs = None
    if tokens:
        firsts = [next(iter(alternatives.items())) for alternatives in tokens]
        logprobs = {
            "tokens": [token for token, _ in firsts],
            "token_logprobs": [math.log(p) for _, p in firsts],
            "top_logprobs": [{t: math.log(p) for t, p in alternatives.items()} for alternatives in tokens],
        }
    return openai(key, {"choices": [{"text": reply, "logprobs": logprobs}]})


def responses(key: str, reply: str, tokens: Tokens = ()) -> Line:
    positions = [{**top(alternatives)[0], "top_logprobs": top(alternatives)} for alternatives in tokens]
    part = {"type": "output_text", "text": reply, "annotations": [], "logprobs": positions}
    items = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "delivery?"}]},
        {"type": "message", "role": "assistant", "status": "completed", "content": [part]},
    ]
    return openai(key, {"object": "response", "status": "completed", "output": items})


def mistral(key: str, reply: str) -> Line:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "delivery?"}]}
    return chat(key, "", content=[thought, {"type": "text", "text": reply}])


def vllm_chat(key: str, reply: str) -> Line:
    return chat(key, reply, reasoning_content="delivery?", tool_calls=[])


def tool_call(key: str, reply: str) -> Line:
    call = {"type": "function", "function": {"name": "f", "arguments": json.dumps({"class": reply})}}
    return chat(key, None, tool_calls=[call])


def anthropic(key: str, reply: str) -> Line:
    blocks = [{"type": "thinking", "thinking": "delivery?"}, {"type": "text", "text": reply}]
    message = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn"}
    return {"custom_id": key, "result": {"type": "succeeded", "message": message}}


def anthropic_tool(key: str, reply: str) -> Line:
    blocks = [{"type": "tool_use", "id": "t", "name": "f", "input": {"class": reply}}]
    return {"custom_id": key, "result": {"type": "succeeded", "message": {"content": blocks}}}


def gemini_body(reply: str, tokens: Tokens = ()) -> Line:
    parts = [{"text": "delivery?", "thought": True}, {"text": reply}]
    candidate: Line = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    candidate["avgLogprobs"] = -0.1
    if tokens:
        tops = [{"candidates": top(alternatives, "logProbability")} for alternatives in tokens]
        firsts = [one["candidates"][0] for one in tops]
        candidate["logprobsResult"] = {"chosenCandidates": firsts, "topCandidates": tops}
    return {"candidates": [candidate], "usageMetadata": {}, "modelVersion": "m"}


def gemini(key: str, reply: str, tokens: Tokens = ()) -> Line:
    return {"key": key, "response": gemini_body(reply, tokens)}


def gemini_metadata(key: str, reply: str) -> Line:
    return {"response": gemini_body(reply), "metadata": {"key": key}}


def bedrock(key: str, output: Line) -> Line:
    return {"recordId": key, "modelInput": {"prompt": "delivery?"}, "modelOutput": output}


def converse(key: str, reply: str) -> Line:
    blocks = [{"reasoningContent": {"reasoningText": {"text": "delivery?"}}}, {"text": reply}]
    return bedrock(key, {"output": {"message": {"role": "assistant", "content": blocks}}})


def vllm(key: str, reply: str, tokens: Tokens = ()) -> Line:
    positions = [
        {str(n): {"decoded_token": t, "logprob": math.log(p)} for n, (t, p) in enumerate(p.items())} for p in tokens
    ]
    return {"custom_id": key, "outputs": [{"text": reply, "logprobs": positions or None}]}


Shape = Callable[[str, str], Line]
SHAPES: dict[str, Shape] = {
    **{"chat": chat, "completion": completion, "responses": responses, "mistral": mistral},
    **{"vllm run-batch": vllm_chat, "anthropic": anthropic, "gemini": gemini, "vllm": vllm},
    **{"gemini metadata": gemini_metadata, "converse": converse, "tool": tool_call},
    "anthropic tool": anthropic_tool,
    "fireworks": lambda key, reply: {"custom_id": key, "response": {"choices": [{"message": {"content": reply}}]}},
    "bedrock claude": lambda key, reply: bedrock(key, {"content": [{"type": "text", "text": reply}]}),
    "bedrock titan": lambda key, reply: bedrock(key, {"results": [{"outputText": reply}]}),
    "bedrock llama": lambda key, reply: bedrock(key, {"generation": reply, "stop_reason": "stop"}),
    "bedrock mistral": lambda key, reply: bedrock(key, {"outputs": [{"text": reply}]}),
    "bedrock cohere": lambda key, reply: bedrock(key, {"generations": [{"text": reply}]}),
}
SCORED = {"chat": chat, "completion": completion, "responses": responses, "gemini": gemini}
SCORED |= {"vllm": vllm}
"""Those that give log probabilities."""
