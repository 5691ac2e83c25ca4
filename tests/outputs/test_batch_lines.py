"""Batches of language models: structured answers are asked for, and read out of every provider's lines."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.answer_rows import read_answers as read_rows
from pipeline_lib.outputs.files.answers import Answers
from pipeline_lib.outputs.files.requests import asked_of, instruction, request_of, requests_of
from pipeline_lib.outputs.files.teacher_files import Given
from pipeline_lib.params import Task
from tests.kit.made_up import made_up_task, task_of_labels

from .answer_files import gather_answers, lines, read_answers, score_task, settings
from .provider_lines import SHAPES, Line, anthropic, bedrock, chat, gemini, openai, responses

CLASSES = ["billing", "delivery", "very good", "very bad", "😡", "😀"]
TASK = made_up_task(labels={name: [name] for name in CLASSES})
KEY = f"{255:016x}"
LABEL = '{"label": "billing"}'


def read(path: Path, line: Line, reply: str | None = None) -> Given:
    [(_, row)] = read_rows(lines(path, [line]), CLASSES, reply)[1]
    return row


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_class_in_every_providers_shape(tmp_path: Path, shape: str) -> None:
    for reply in (LABEL, " Billing\n") if "tool" not in shape else (LABEL,):
        row = read(tmp_path / "a.jsonl", SHAPES[shape](KEY, reply))
        assert (row.key, row.kind, row.value, row.error) == (255, "label", "billing", None)


def test_other_places_are_named(tmp_path: Path) -> None:
    for line, path in (
        (
            {"custom_id": KEY, "response": {"choices": [{"message": {"content": LABEL}}]}},
            "response.choices.message.content",
        ),
        ({"key": KEY, "text": "a text", "answers": [LABEL, "x"]}, "answers.0"),
    ):
        assert read(tmp_path / "a.jsonl", line, path).value == "billing"
        found = read_answers([tmp_path / "a.jsonl"], settings(reply=path), TASK)
        assert found[:].argmax(axis=1).tolist() == [0]
    with pytest.raises(PotstillError, match=r"Name its path in the teacher's `reply`"):
        read(tmp_path / "a.jsonl", {"custom_id": KEY, "response": {"said": LABEL}})


def answered(path: Path, task: Task, reply: Any, **changes: Any) -> list[float] | str:
    """Return a reply's logits above their mean, or why there is no answer."""
    found = read_answers([lines(path, [chat(KEY, reply)])], settings(**changes), task)
    if not len(found):
        return next(iter(found.errors))
    return found[0:1][0].round(3).tolist()


NO_JSON = "neither JSON nor a class, as `distill teacher requests --format` asks for: "


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("very good", 2),
        ('"very good"', 2),
        ('{"label": "Very Good"}', 2),
        ('{"reason": "It is.", "label": "delivery", "sure": 0.9}', 1),
        ('{"label": "\\ud83d\\ude21"}', 4),
        ('{"probs": {"billing": 0.2, "delivery": 0.7}}', 1),
        ('{"label": null, "logits": {"billing": 2, "delivery": 3}}', "no logit for very good, very bad, 😡, 😀"),
        ('{"probs": {"billing": 0.9, "delivery": 0.7}}', "[0.9, 0.7] are not probabilities"),
        ('{"label": "refund"}', "class 'refund' is unknown"),
        ('{"label": ["billing", "delivery"]}', "class ['billing', 'delivery'] is unknown"),
        ('{"label": "billing", "probs": {"billing": 1}}', "expected one of logits, probs, label, found probs"),
        ("{}", "expected one of logits, probs, label, found none"),
        ("7", "class '7' is unknown"),
        ('{"label": NaN}', "class nan is unknown"),
        (f'{{"probs": {{"billing": {"9" * 400}}}}}', "billing is 9999"),
        ("The answer is billing.", f"{NO_JSON}'The answer is billing.'"),
        ("<think>delivery?</think>billing", f"{NO_JSON}'<think>"),
        (f"```json\n{LABEL}\n```", f"{NO_JSON}'```json"),
        ('{"label": "bil', f"{NO_JSON}'{{\"label"),
        ("[" * 100_000, f"{NO_JSON}'[[["),
    ],
)
def test_a_reply_is_a_class_or_json(tmp_path: Path, reply: str, answer: int | str) -> None:
    found = answered(tmp_path / "a.jsonl", TASK, reply)
    assert found.startswith(answer) if isinstance(answer, str) else np.argmax(found) == answer, found


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('{"labels": ["toxic", "Spam"]}', [2.944, -2.944, 2.944]),
        ('["threat"]', [-2.944, 2.944, -2.944]),
        ('{"labels": []}', [-2.944] * 3),
        ('{"probs": {"toxic": 0.5, "threat": 0.5, "spam": 0.5}}', [0.0] * 3),
        ('{"labels": ["toxic", "rude"]}', "class 'rude' is unknown"),
        ("toxic, spam", f"{NO_JSON}'toxic, spam'"),
    ],
)
def test_a_reply_lists_labels(tmp_path: Path, reply: str, answer: Any) -> None:
    found = answered(tmp_path / "a.jsonl", task_of_labels(), reply)
    assert found == pytest.approx(answer) if isinstance(answer, list) else found.startswith(answer)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('{"score": 4.5}', [4.5]),
        ("2", [2.0]),
        ('{"score": "3"}', [3.0]),
        ('{"score": 7}', "not from 0 to 5: 7"),
        ("4/5", f"{NO_JSON}'4/5'"),
        ('{"score": "high"}', "score is a score, and this row has label 'high'"),
    ],
)
def test_a_reply_is_a_score(tmp_path: Path, reply: str, answer: Any) -> None:
    found = answered(tmp_path / "a.jsonl", score_task(), reply)
    assert found == answer if isinstance(answer, list) else answer.split(" is")[-1] in found


def test_numbers_may_be_names(tmp_path: Path) -> None:
    task = made_up_task(labels={name: [name] for name in "12345"})
    for reply in ("4", '{"label": 4}', '{"label": "4"}'):
        assert np.argmax(answered(tmp_path / "a.jsonl", task, reply)) == 3


def test_numbers_of_classes_count_where_the_classes_are_listed(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [chat(f"{n:016x}", reply) for n, reply in enumerate(["1", "0", "7"])])
    task = made_up_task()
    found = read_answers([path], settings(classes=["yes", "no"]), task)
    assert found.errors == {"label 7 is not an index of the classes yes, no, which are numbered from 0": 1}
    assert found[:].argmax(axis=1).tolist() == [0, 1]
    with pytest.raises(PotstillError, match=r"of 3 rows, class '1' is unknown \(1\)"):
        gather_answers([path], settings(), task)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (anthropic(KEY, kind="errored") | {"error": None}, "no reply: errored"),
        ({"custom_id": KEY, "result": {"type": "errored", "error": {"error": {"message": "Bad\nmodel"}}}}, "Bad model"),
        (anthropic(KEY, kind="expired"), "no reply: expired"),
        (anthropic(KEY, {"type": "text", "text": ""}), "no reply: end_turn"),
        ({"custom_id": KEY, "response": None, "error": {"message": "expired"}}, ": expired"),
        (
            {"custom_id": KEY, "response": {"status_code": 400, "body": {"error": {"message": "No model"}}}},
            ": No model",
        ),
        ({"custom_id": KEY, "response": {"status_code": 502, "body": "<html>"}}, "no reply: status 502"),
        ({"key": KEY, "error": {"code": 400, "message": "Long"}}, "Long"),
        ({"recordId": KEY, "modelInput": {}, "error": {"errorCode": 400, "errorMessage": "Bad"}}, "Bad"),
        ({"key": KEY, "response": {}, "status": "Bad Request: x"}, "no reply: Bad Request: x"),
        ({"key": KEY, "response": {"promptFeedback": {"blockReason": "SAFETY"}}}, "no reply: SAFETY"),
        ({"key": KEY, "response": {"candidates": [{"finishReason": "MAX_TOKENS"}]}}, "no reply: MAX_TOKENS"),
        (chat(KEY, None, refusal="I\ncan\x1b[2Jnot \ud83d"), r"failed or refused: I can\x1b[2Jnot ?"),
        (openai(KEY, {"output": [], "incomplete_details": {"reason": "max_output_tokens"}}), "max_output_tokens"),
    ],
)
def test_why_a_request_has_no_answer(tmp_path: Path, line: Line, reason: str) -> None:
    row = read(tmp_path / "a.jsonl", line)
    assert (row.key, row.kind) == (255, None) and row.error.endswith(reason)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (openai(KEY, {"object": "list", "data": [{"embedding": [0.1]}]}), "response without a reply"),
        (openai(KEY, {"results": [{"flagged": False}]}) | {"response": {"body": {"a": 1}}}, "response without a reply"),
        ({"custom_id": KEY, "method": "POST", "url": "u", "body": {}}, "a batch's request, which"),
        ({"custom_id": KEY, "params": {}}, "a batch's request, which has no response"),
        ({"key": KEY, "request": {}}, "a batch's request, which has no response"),
        ({"recordId": KEY, "modelInput": {}}, "a batch's request, which has no response"),
        (chat("7", LABEL), "id '7' is not a content key, so nothing says which text"),
        (chat("f" * 32, LABEL), "is not a content key"),
        (anthropic("row_7", {"type": "text", "text": LABEL}), "id 'row_7' is not a content key"),
        ({"key": "12", "response": gemini(LABEL)}, "id '12' is not a content key"),
        (bedrock("CALL0000001", {"generation": LABEL}), "id 'CALL0000001' is not a content"),
    ],
)
def test_other_files_are_named(tmp_path: Path, line: Line, message: str) -> None:
    with pytest.raises(PotstillError, match=rf"a\.jsonl: row 1: .*{message}"):
        read(tmp_path / "a.jsonl", line)


def test_a_text_takes_the_place_of_a_content_key(tmp_path: Path) -> None:
    row = read(tmp_path / "a.jsonl", responses("row 7", LABEL) | {"text": "a text"})
    assert (row.texts, row.value) == (("a text",), "billing")
    # Vertex AI returns the request.
    request = {"contents": [{"role": "user", "parts": [{"text": "a text"}]}]}
    row = read(tmp_path / "b.jsonl", {"status": "", "request": request, "response": gemini(LABEL)})
    assert (row.texts, row.value) == (("a text",), "billing")


@pytest.mark.parametrize(
    "row",
    [
        {"text": "a", "label": "x", "custom_id": "1", "error": None},
        {"text": "a", "key": "00", "error": "timed out"},
        {"text": "a", "probs": {"x": 1.0}, "request": "r", "response": "x"},
        {"key": KEY, "label": "x", "response": {}},
    ],
)
def test_rows_with_an_answer_are_no_batch(tmp_path: Path, row: Line) -> None:
    assert not read(tmp_path / "a.jsonl", row).of_reply


SCHEMAS = [
    (TASK, {"label": {"type": "string", "enum": CLASSES}}, "one of these labels: billing, delivery"),
    (
        task_of_labels(),
        {"labels": {"type": "array", "items": {"type": "string", "enum": ["toxic", "threat", "spam"]}}},
        "or none: toxic",
    ),
    (score_task(), {"score": {"type": "number"}}, "a number from 0 to 5."),
]


@pytest.mark.parametrize(("task", "properties", "prompt"), SCHEMAS)
def test_structured_output_is_asked_for(task: Task, properties: Line, prompt: str) -> None:
    asked = asked_of("m", task, None)
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    assert asked.schema == schema and prompt in asked.prompt
    [row] = requests_of([[[" a film"], ["the film"]]], None)
    openai_line = request_of(row, "openai-batch", asked)
    body = openai_line["body"]
    assert openai_line["custom_id"] == row["key"] and body["messages"][1]["content"] == "a film\n\nthe film"
    assert body["response_format"]["json_schema"] == {"name": "answer", "strict": True, "schema": schema}
    params = request_of(row, "anthropic-batch", asked)["params"]
    assert params["tools"] == [{"name": "answer", "input_schema": schema}] and params["system"] == asked.prompt
    gemini_line = request_of(row, "gemini-batch", asked)
    config = gemini_line["request"]["generationConfig"]
    assert gemini_line["key"] == row["key"] and config["responseMimeType"] == "application/json"
    assert config["responseSchema"]["type"] == "OBJECT" and "additionalProperties" not in config["responseSchema"]
    [inner] = config["responseSchema"]["properties"].values()
    assert inner["type"] in ("STRING", "ARRAY", "NUMBER") and inner.get("enum") in (None, CLASSES)


def test_prompts_of_ones_own() -> None:
    assert instruction(score_task(), "{min} to {max}, please") == "0 to 5, please"
    with pytest.raises(PotstillError, match=r"--prompt: it has \{labels\}.* scores\. Write \{min"):
        instruction(score_task(), "One of {labels}.")
    with pytest.raises(PotstillError, match=r"it has \{max\}, .* classes\. Write \{labels\}"):
        instruction(TASK, "Up to {max}.")


def test_a_batch_goes_out_and_comes_back_by_its_keys(tmp_path: Path) -> None:
    texts = [["a film", "dull", "so so"]]
    asked = [request_of(row, "openai-batch", asked_of("m", TASK, None)) for row in requests_of([texts], None)]
    replies = [LABEL, '{"label": "delivery"}', "hard to say"]
    rows = [chat(line["custom_id"], reply) for line, reply in zip(asked, replies, strict=True)]
    answers = read_answers([lines(tmp_path / "a.jsonl", rows)], settings(), TASK)
    assert [row["text"] for row in requests_of([texts], answers)] == ["so so"]
    assert answers.errors == {f"{NO_JSON}'hard to say'": 1}


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
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
    line = SHAPES[shape](KEY, "billing")
    for path in nodes(line):
        for value in (None, True, -1, 1e400, "x", "\ud83d", [], [None], {}, {"x": [1]}):
            try:
                rows = Answers(settings(), TASK).read(lines(tmp_path / "a.jsonl", [changed(line, path, value)]))[1]
                [part] = list(rows)
            except PotstillError as error:
                assert str(error).startswith(f"{tmp_path / 'a.jsonl'}: row 1: "), path
            else:
                assert len(part.keys) + sum(part.errors.values()) == 1, (path, value)
