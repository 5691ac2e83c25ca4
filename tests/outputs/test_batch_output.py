"""Lines of OpenAI's batches and of vLLM: classes put together along the tokens of an answer."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.answer_files import read_answers
from pipeline_lib.outputs.files.batch_output import class_probabilities, read_batch_line, read_vllm_line
from pipeline_lib.outputs.files.vector_files import Vectors


def test_a_distribution_along_the_tokens_of_an_answer() -> None:
    log = math.log
    places = [
        {"very": log(0.7), "neutral": log(0.2), "Good": log(0.05), "<eos>": log(0.05)},
        {" good": log(0.6), " bad": log(0.3), "!": log(0.1)},
    ]
    labels = ["very good", "very bad", "neutral", "good"]
    found = class_probabilities("very good", places, labels)
    wanted = {"very good": 0.42, "very bad": 0.21, "neutral": 0.2, "good": 0.05}
    assert found == pytest.approx(wanted)


KEY = f"{255:016x}"


def batch_line(tokens: list[dict[str, float]], content: str = "yes") -> dict[str, Any]:
    top = [[{"token": t, "logprob": math.log(p)} for t, p in place.items()] for place in tokens]
    places = [{**own[0], "top_logprobs": own} for own in top]
    choice = {"message": {"content": content}, "logprobs": {"content": places}}
    body = {"choices": [choice]}
    return {"custom_id": KEY, "response": {"status_code": 200, "body": body}, "error": None}


def test_a_batchs_output_is_read() -> None:
    found = read_batch_line(batch_line([{"yes": 0.7, "No": 0.2}]), ["no", "yes"], "f")
    assert found.key == 255 and found.coverage == pytest.approx(0.9)
    assert found.value == pytest.approx({"yes": 0.7, "no": 0.2})
    refused = {"custom_id": KEY, "response": None, "error": {"message": "expired"}}
    assert read_batch_line(refused, ["no", "yes"], "f").error == "expired"
    other = read_batch_line(batch_line([{"perhaps": 0.9}], "perhaps"), ["no", "yes"], "f")
    assert other.error == "no class: 'perhaps'"
    with pytest.raises(PotstillError, match="f: the alternatives of token 0 have a total"):
        read_batch_line(batch_line([{"yes": 0.9, "no": 0.9}]), ["no", "yes"], "f")
    with pytest.raises(PotstillError, match="f: all 2 tokens have the same alternatives"):
        read_batch_line(batch_line([{"y": 0.5, "n": 0.3}] * 2, "yn"), ["no", "yes"], "f")
    with pytest.raises(PotstillError, match="custom_id 'row-1' is not a content key"):
        read_batch_line({"custom_id": "row-1", "response": None}, ["no", "yes"], "f")


def test_vllms_output_is_read() -> None:
    place = {"12": {"decoded_token": " yes", "logprob": math.log(0.6), "rank": 1}}
    place |= {"7": {"decoded_token": " no", "logprob": math.log(0.4), "rank": 2}}
    line = {"text": "a film", "outputs": [{"text": " yes", "logprobs": [place]}]}
    found = read_vllm_line(line, ["no", "yes"], "f")
    assert found.texts == ("a film",) and found.value == pytest.approx({"yes": 0.6, "no": 0.4})


LOST = {"custom_id": KEY, "response": {"status_code": 502, "body": "Bad gateway"}}
NO_OTHERS = batch_line([{"yes": 0.9}])
NO_OTHERS["response"]["body"]["choices"][0]["logprobs"]["content"][0]["top_logprobs"] = None


def test_a_failure_without_an_object_and_tokens_without_alternatives_are_read() -> None:
    assert read_batch_line(LOST, ["no", "yes"], "f").error == "status 502: Bad gateway"
    assert read_batch_line(NO_OTHERS, ["no", "yes"], "f").value == pytest.approx({"yes": 0.9})


PARTS = batch_line([{"yes": 0.9}])
PARTS["response"]["body"]["choices"][0]["message"]["content"] = ["yes"]


@pytest.mark.parametrize("key", ["f" * 32, "-1", "00ff"])
@pytest.mark.parametrize("vectors", [False, True])
def test_keys_of_other_programs_are_refused(tmp_path: Path, key: str, vectors: bool) -> None:
    with pytest.raises(PotstillError, match=r"a\.jsonl: row 1: custom_id .* is not a content key"):
        read_all(tmp_path, NO_OTHERS | {"custom_id": key}, vectors)


@pytest.mark.parametrize(
    ("line", "vectors"),
    [
        (PARTS, False),
        ({"custom_id": KEY, "response": {"body": {"choices": {"a": 1}}}}, False),
        ({"custom_id": KEY, "response": "late"}, False),
        ({"custom_id": KEY, "response": "late"}, True),
        ({"text": "a", "outputs": [{"text": "yes", "logprobs": [None]}]}, False),
    ],
)
def test_lines_of_another_shape_are_named(tmp_path: Path, line: dict[str, Any], vectors: bool) -> None:
    with pytest.raises(PotstillError, match=r"a\.jsonl: row 1: not a line of a batch's output"):
        read_all(tmp_path, line, vectors)


def read_all(folder: Path, line: dict[str, Any], vectors: bool) -> None:
    (folder / "a.jsonl").write_text(json.dumps(line) + "\n")
    kind = "vllm" if "outputs" in line else "openai-batch"
    if vectors:
        list(Vectors.by_default().read(folder / "a.jsonl")[1])
    else:
        list(read_answers(folder / "a.jsonl", kind, ["no", "yes"])[1])
