"""Every provider's shape of a batch, with every form of an answer: the same class comes out."""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.answer_files import read_answers
from pipeline_lib.outputs.files.batch_output import read_batch_line, read_vllm_line
from pipeline_lib.outputs.files.content_keys import content_keys
from pipeline_lib.outputs.files.final_answer import stated_class
from pipeline_lib.outputs.files.given_rows import Given, batch_line
from pipeline_lib.outputs.files.teacher_rows import format_of

from .answer_files import lines
from .provider_lines import SCORED, SHAPES, Line, anthropic, chat, gemini_body, openai, responses

CLASSES = ["billing", "delivery", "very good", "café", "😀", "😡"]
KEY = f"{content_keys([['a text']])[0]:016x}"
FORMS = {
    "bare": "{}",
    "case and dot": " {}.\n",
    "quotes": '"{}"',
    "bold": "**{}**",
    "listed": "2. {}",
    "line after words": "I read it twice.\n\n{}",
    "line before words": "{}\n\nBecause of what it says.",
    "json": '{{"label": "{}"}}',
    "json of another key": '{{"reason": "it says so", "category": "{}", "sure": 0.8}}',
    "json, one level down": '{{"output": {{"class": "{}"}}}}',
    "json list": '{{"labels": ["{}"]}}',
    "json scores": '{{"{}": 0.9, "nothing": 0.1}}',
    "json per cent": '{{"scores": {{"{}": 97, "nothing": 3}}}}',
    "json label and score": '[{{"label": "{}", "score": 0.9}}]',
    "python": "{{'label': '{}'}}",
    "json in words": 'Here it is: {{"label": "{}"}} as asked.',
    "fence": '```json\n{{"label": "{}"}}\n```',
    "fence of text": "```\n{}\n```",
    "thoughts": "<think>Is it billing or delivery?</think>\n\n{}",
    "thoughts without their start": "It may be delivery.\n</think>{}",
    "thoughts before json": '<think>billing?</think>```json\n{{"label": "{}"}}\n```',
    "reasoning": "Reasoning: not delivery at all, nor billing. Answer: {}",
    "reasoning on lines": "Step 1: billing is paid.\nStep 2: so.\n\n**Final answer:** {}",
    "sentence": "It was not billing. The answer is {}.",
    "harmony": "<|channel|>analysis<|message|>delivery?<|channel|>final<|message|>{}<|return|>",
    "tag": "<answer>{}</answer>",
    "tag of other words": "The <em>tone</em> is clear.\nAnswer: {}",
    "json in json": '"{{\\"label\\": \\"{}\\"}}"',
    "json with others": ('{{"seen": ["billing", "delivery"], "label_why": "billing", "label": "{}"}}'),
    "dash": "{} - so it seems",
    "class and explanation": "{}.\n\nExplanation: it speaks of billing and delivery, too.",
    "classified": "I would classify this text as **{}**.",
    "json with a number": '{{"class_id": 0, "class_name": "{}"}}',
    "json scores as text": '{{"{}": "0.9", "nothing": "0.1"}}',
    "box": r"So it is \boxed{{{}}}",
}


def read(path: Path, line: Line, classes: list[str] = CLASSES) -> Given:
    [(_, row)] = read_answers(lines(path, [line]), None, classes)[1]
    return row


def class_of(row: Given) -> str:
    assert row.key == int(KEY, 16) and row.error is None, row.error
    return row.value if row.kind == "label" else max(row.value, key=row.value.__getitem__)


def escaped(name: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in name.encode())


@pytest.mark.parametrize("form", FORMS)
def test_the_same_class_in_every_form(form: str) -> None:
    for name in CLASSES:
        for spelling in (name, name.upper(), escaped(name)):
            quoted = json.dumps(spelling)[1:-1] if "json" in form or form == "fence" else spelling
            stated = stated_class(FORMS[form].format(quoted), CLASSES)
            value = stated.value
            assert (max(value, key=value.get) if isinstance(value, dict) else value) == name, spelling


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_class_in_every_providers_shape(tmp_path: Path, shape: str) -> None:
    forms = [FORMS["bare"], FORMS["quotes"]] if "tool" in shape else FORMS.values()
    for form in forms:
        row = read(tmp_path / "a.jsonl", SHAPES[shape](KEY, form.format("billing")))
        assert class_of(row) == "billing"
    kind = format_of(tmp_path / "a.jsonl", None)
    assert kind == "vllm" if shape == "vllm" else kind.endswith("-batch")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("billing or delivery", "more than one class"),
        ("Answer: billing or delivery", "more than one class"),
        ("billing\ndelivery", "more than one class"),
        ('{"labels": ["billing", "delivery"]}', "more than one class"),
        ('{"label": "billing", "scores": {"delivery": 0.9}}', "its label is not that of its highest score"),
        ('{"billing": -1, "delivery": 2}', "scores that are no probabilities"),
        ('{"billing": NaN}', "scores that are no probabilities"),
        ("<think>It may be billing", "thoughts without an answer"),
        ("not billing", "no class"),
        ("no: billing or", "no class"),
        ("<think>billing</think>", "thoughts without an answer"),
        (f'{{"label": {"9" * 400}}}', "a number that is too large"),
        ('{"label": "not billing"}', "no class"),
        ('{"label": null}', "no class"),
        ('{"label": "bil', "no class"),
    ],
)
def test_what_is_not_clear_is_no_answer(tmp_path: Path, reply: str, reason: str) -> None:
    for shape in ("chat", "responses", "anthropic"):
        row = read(tmp_path / "a.jsonl", SHAPES[shape](KEY, reply))
        assert row.kind is None and row.error.startswith(reason)


def test_a_class_that_differs_by_its_case_or_signs_alone() -> None:
    assert stated_class("C++", ["C", "C++", "C#"]).value == "C++"
    assert stated_class("Yes", ["yes", "Yes"]).value == "Yes"
    with pytest.raises(ValueError, match="no class"):
        stated_class("YES", ["yes", "Yes"])
    assert stated_class("2", ["1 star", "2 stars"]).value == "2 stars"
    assert stated_class("2", ["billing", "delivery"]).value == 2.0
    assert stated_class("2", ["1", "2"]).value == "2"
    assert stated_class("❤", ["❤️", "👍"]).value == "❤️"
    assert stated_class("答案：正面", ["正面", "负面"]).value == "正面"


TOKENS = [
    ("billing", [{"billing": 0.7, "delivery": 0.2, "x": 0.05}], {"billing": 0.7, "delivery": 0.2}),
    (
        '{"label": "billing"}',
        [
            {'{"': 0.9},
            {"label": 0.9},
            {'":': 0.9},
            {' "': 0.9},
            {"bill": 0.6, "deliver": 0.3},
            {"ing": 0.9},
            {'"}': 0.9},
        ],
        {"billing": 0.6, "delivery": 0.3},
    ),
    (
        '{"label":"billing"}',
        [{'{"label': 0.9}, {'":"bill': 0.6, '":"del': 0.3}, {"ing": 0.9}, {'"}': 0.9}],
        {"billing": 0.6, "delivery": 0.3},
    ),
    (
        "<think>delivery?</think> billing",
        [{"<think>": 0.9}, {"delivery": 0.9}, {"?": 0.9}, {"</think>": 0.9}, {" billing": 0.6, " delivery": 0.3}],
        {"billing": 0.6, "delivery": 0.3},
    ),
    (
        "Answer: very good",
        [{"Answer": 0.9}, {":": 0.9}, {" very": 0.6, " billing": 0.3}, {" good": 0.8}],
        {"very good": 0.6, "billing": 0.3},
    ),
    # A character in two tokens, of which the first begins that of another class, too.
    (
        "😡",
        [{"\\xf0\\x9f\\x98": 0.8, "billing": 0.1}, {"\\xa1": 0.7, "\\x80": 0.2}],
        {"😡": 0.56, "😀": 0.16, "billing": 0.1},
    ),
    ("😡", [{"bytes:\\xf0\\x9f\\x98\\xa1": 0.8, "<0xF0>": 0.2}], {"😡": 0.9, "😀": 0.1}),
]


@pytest.mark.parametrize("shape", SCORED)
@pytest.mark.parametrize(("reply", "tokens", "wanted"), TOKENS)
def test_probabilities_begin_where_the_answer_does(
    tmp_path: Path, shape: str, reply: str, tokens: list[dict[str, float]], wanted: dict[str, float]
) -> None:
    row = read(tmp_path / "a.jsonl", SCORED[shape](KEY, reply, tokens))
    assert row.kind == "probs" and row.value == pytest.approx(wanted)


def test_the_bytes_of_tokens_are_read_and_those_of_reasoning_passed_over(tmp_path: Path) -> None:
    tokens = [{"hm": 0.9}, {"delivery": 0.9}, {"�": 0.8}, {"�": 0.7}, {"<|end|>": 0.9}]
    line = chat(KEY, "😡", tokens, reasoning_content="hm delivery")
    places = line["response"]["body"]["choices"][0]["logprobs"]["content"]
    for position, raw in ((places[2], [0xF0, 0x9F, 0x98]), (places[3], [0xA1])):
        for token in (position, position["top_logprobs"][0]):
            token["bytes"] = raw
    row = read(tmp_path / "a.jsonl", line)
    assert row.value == pytest.approx({"😡": 0.56})
    # Tokens that do not spell the reply are of no use.
    row = read(tmp_path / "a.jsonl", chat(KEY, "billing", [{"no": 0.9}]))
    assert (row.kind, row.value) == ("label", "billing")


def failed(result: str, error: Any = None) -> Line:
    return {"custom_id": KEY, "result": {"type": result, "error": error}}


BAD = {"type": "error", "error": {"type": "invalid_request_error", "message": "Bad\nmodel"}}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (failed("errored", BAD), "errored: Bad model"),
        (failed("errored", BAD["error"]), "errored: Bad model"),
        (failed("canceled"), "canceled"),
        (failed("expired"), "expired"),
        ({"custom_id": KEY, "response": None, "error": {"message": "expired"}}, "expired"),
        (
            openai(KEY, {"error": {"message": "No such model", "type": "e"}})
            | {"response": {"status_code": 404, "body": {"error": {"message": "No model"}}}},
            "status 404: No model",
        ),
        ({"custom_id": KEY, "response": {"status_code": 502, "body": "<html>"}}, "status 502"),
        ({"key": KEY, "error": {"code": 400, "message": "Long"}}, "status 400: Long"),
        ({"recordId": KEY, "modelInput": {}, "error": {"errorCode": 400, "errorMessage": "Bad"}}, "status 400: Bad"),
        ({"key": KEY, "response": {}, "status": "Bad Request: x"}, "Bad Request: x"),
        ({"key": KEY, "response": {"promptFeedback": {"blockReason": "SAFETY"}}}, "no answer (SAFETY)"),
        ({"key": KEY, "response": {"candidates": [{"finishReason": "MAX_TOKENS"}]}}, "no answer (MAX_TOKENS)"),
        (chat(KEY, None, refusal="I\ncan\x1b[2Jnot \ud83d"), r"refused: I can\x1b[2Jnot ?"),
        (
            openai(KEY, {"output": [], "incomplete_details": {"reason": "max_output_tokens"}}),
            "no answer (max_output_tokens)",
        ),
        (anthropic(KEY, ""), "no answer (end_turn)"),
    ],
)
def test_why_a_request_has_no_answer(tmp_path: Path, line: Line, reason: str) -> None:
    row = read(tmp_path / "a.jsonl", line)
    assert (row.key, row.kind, row.error) == (int(KEY, 16), None, reason)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (openai(KEY, {"object": "list", "data": [{"embedding": [0.1]}]}), "these are vectors"),
        (openai(KEY, {"results": [{"flagged": False}]}), "'results', which is of no endpoint"),
        (openai(KEY, {"id": "m", "moderation": []}), "'id', 'moderation', which is of no endpoint"),
        ({"custom_id": KEY, "method": "POST", "url": "u", "body": {}}, "a batch's request, which"),
        ({"custom_id": KEY, "params": {}}, "a batch's request, which has no response"),
        ({"key": KEY, "request": {}}, "a batch's request, which has no response"),
        ({"recordId": KEY, "modelInput": {}}, "a batch's request, which has no response"),
        (chat("request-1", "billing"), "custom_id 'request-1' is not a content key"),
        (chat("7", "billing"), "custom_id '7' is not a content key, so nothing says which text"),
        (anthropic("row_7", "billing"), "custom_id 'row_7' is not a content key"),
        (SHAPES["gemini"]("12", "billing"), "key '12' is not a content key"),
        (SHAPES["converse"]("CALL0000001", "billing"), "recordId 'CALL0000001' is not a content"),
    ],
)
def test_other_files_are_named(tmp_path: Path, line: Line, message: str) -> None:
    with pytest.raises(PotstillError, match=rf"a\.jsonl: row 1: .*{message}"):
        read(tmp_path / "a.jsonl", line)


def test_a_text_takes_the_place_of_a_content_key(tmp_path: Path) -> None:
    row = read(tmp_path / "a.jsonl", responses("row 7", "billing") | {"text": "a text"})
    assert (row.texts, row.value) == (("a text",), "billing")
    # Vertex AI returns the request.
    request = {"contents": [{"role": "user", "parts": [{"text": "a text"}]}]}
    line = {"status": "", "request": request, "response": gemini_body("billing")}
    row = read(tmp_path / "b.jsonl", line)
    assert (row.texts, row.value) == (("a text",), "billing")


def test_scores_of_a_regression_in_json_and_after_thoughts(tmp_path: Path) -> None:
    from .answer_files import score_task

    scores = score_task().score_range
    steps = "2 of 3 points fit.\n**Score:** 4"
    for reply in ('{"score": 4, "max": 5}', "<think>3 or 5?</think>4", "```json\n4\n```", steps):
        [(_, row)] = read_answers(lines(tmp_path / "a.jsonl", [chat(KEY, reply)]), None, scores)[1]
        assert (row.kind, row.value) == ("label", 4.0), reply
    tokens = [{'{"score": ': 0.9}, {"4": 0.6, "3": 0.4}, {"}": 0.9}]
    line = chat(KEY, '{"score": 4}', tokens)
    [(_, row)] = read_answers(lines(tmp_path / "a.jsonl", [line]), None, scores)[1]
    assert row.value == pytest.approx(3.6) and math.isclose(row.coverage, 1.0)


@pytest.mark.parametrize(
    "row",
    [
        {"text": "a", "label": "x", "custom_id": "1", "error": None},
        {"text": "a", "key": "00", "error": "timed out"},
        {"text": "a", "probs": {"x": 1.0}, "request": "r", "response": "x"},
        {"text": "a", "custom_id": "1", "error": "timed out"},
        {"text": "a", "key": "00", "response": "x"},
    ],
)
def test_rows_with_a_text_are_no_batch(tmp_path: Path, row: Line) -> None:
    assert format_of(lines(tmp_path / "a.jsonl", [row]), None) == "jsonl"


def test_long_replies_take_little_time() -> None:
    for text in (" " * 200_000, "\n" * 200_000, "{" * 100_000, "<a>" * 50_000, "answer " * 50_000):
        with pytest.raises(ValueError, match="no class"):
            stated_class(text + "?", CLASSES)
        assert stated_class(f"{text}\n{CLASSES[0]}", CLASSES).value == CLASSES[0]


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths to all values inside one."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in items:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from nodes(part, (*path, key))


def changed(line: Line, path: tuple[Any, ...], value: Any) -> Line:
    line = copy.deepcopy(line)
    *above, last = path
    inner: Any = line
    for key in above:
        inner = inner[key]
    inner[last] = value
    return line


@pytest.mark.parametrize("shape", SHAPES)
def test_a_line_with_anything_in_it_is_read_or_named(tmp_path: Path, shape: str) -> None:
    make = SCORED.get(shape, SHAPES[shape])
    tokens = [[{"billing": 0.7, "delivery": 0.2}]] if shape in SCORED else []
    line = make(KEY, "billing", *tokens)
    kind = format_of(lines(tmp_path / "a.jsonl", [line]), None)
    read_line = read_vllm_line if kind == "vllm" else read_batch_line
    for path in nodes(line):
        for value in (None, True, -1, 1e400, "x", "\ud83d", [], [None], {}, {"x": [1]}):
            try:
                with batch_line("a.jsonl: row 1"):
                    row = read_line(changed(line, path, value), CLASSES, "a.jsonl: row 1")
            except PotstillError as error:
                assert str(error).startswith("a.jsonl: row 1: "), path
            else:
                assert (row.kind is None) is (row.error is not None), (path, value)
