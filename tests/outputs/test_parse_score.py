"""Scores of a regression: asked for, and read out of what language models say."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.batch_output import read_batch_line
from pipeline_lib.outputs.files.gathering import frequent
from pipeline_lib.outputs.files.llm_batches import batch_request, instruction, requests_of
from pipeline_lib.outputs.files.parse_score import said_score
from pipeline_lib.params import Range, Regression
from tests.kit.made_up import made_up_task

from .answer_files import TASK, gather_answers, lines, read_answers, settings
from .test_batch_output import batch_line

GIVEN = TASK.model_dump() | {"kind": "regression", "metrics": ["pearson"]}
SIMILARITY = Regression.model_validate(GIVEN | {"labels": {"min": 0.0, "max": 5.0}})
STARS = SIMILARITY.labels


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("4.5", 4.5),
        (" 4,5\n", 4.5),
        ("Score: 4.5.", 4.5),
        ("**3**", 3.0),
        ("I would say .5, no more", 0.5),
        ("4,500", 4.5),
        ("スコアは2です", 2.0),
    ],
)
def test_a_number_in_a_sentence(answer: str, wanted: float) -> None:
    assert said_score(answer, STARS) == wanted


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("similar", "no number: 'similar'"),
        ("4.5/5", "more than one number: '4.5/5'"),
        ("4 or 5", "more than one number"),
        ("GPT-4 cannot say", "no number"),
        ("1.2.3", "no number"),
        ("2k", "no number"),
        ("7", "not from 0 to 5: '7'"),
        ("−3", "not from 0 to 5"),
        ("1e999", "not from 0 to 5"),
    ],
)
def test_why_an_answer_is_no_score(answer: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        said_score(answer, STARS)


def test_a_comma_is_one_of_decimals_or_of_thousands() -> None:
    assert said_score("1,500", Range(min=1000, max=2000)) == 1500
    assert said_score("-1,500", Range(min=-2, max=0)) == -1.5
    with pytest.raises(ValueError, match="a decimal comma or a thousands separator"):
        said_score("1,500", Range(min=0, max=2000))


def test_a_batch_of_scores_goes_out_and_comes_back(tmp_path: Path) -> None:
    told = instruction(SIMILARITY, None)
    assert told == "Answer with a number from 0 to 5 and nothing else."
    assert instruction(SIMILARITY, "{min} to {max}, please") == "0 to 5, please"
    with pytest.raises(PotstillError, match=r"--prompt: it has \{labels\}.* scores\. Write \{min"):
        instruction(SIMILARITY, "One of {labels}.")
    with pytest.raises(PotstillError, match=r"it has \{max\}, .* classes\. Write \{labels\}"):
        instruction(made_up_task(), "Up to {max}.")
    texts = [["a film", "dull", "good", "so so"], ["the film", "a bore", "bad", "fair"]]
    asked = [batch_request(row, "m", told) for row in requests_of([texts], None)]
    assert asked[0]["body"]["messages"][1]["content"] == "a film\n\nthe film"
    said = ["4.5", "Score: 1,25", "7", "no idea"]
    rows = [spoken(own["custom_id"], answer) for own, answer in zip(asked, said, strict=True)]
    found = read_answers([lines(tmp_path / "a.jsonl", rows)], settings(), SIMILARITY)
    assert found.counts["answered"] == 2 and sorted(found[:][:, 0].tolist()) == [1.25, 4.5]
    assert found.errors == {"not from 0 to 5: '7'": 1, "no number: 'no idea'": 1}
    again = [row["text"] for row in requests_of([texts], found)]
    assert again == ["good", "so so"]


def spoken(key: str, answer: str) -> dict[str, Any]:
    body = {"choices": [{"message": {"content": answer}, "logprobs": None}]}
    return {"custom_id": key, "response": {"status_code": 200, "body": body}, "error": None}


@pytest.mark.parametrize(
    ("answer", "tokens", "ends", "wanted"),
    [
        # Whole numbers in one token: their mean, without those beyond the range.
        ("4", [{"4": 0.6, " 3": 0.2, "9": 0.1, "four": 0.1}], (0, 5), (0.6 * 4 + 0.2 * 3) / 0.8),
        ("8", [{"8": 0.6, "10": 0.4}], (0, 10), 8.8),
        # The 1 may be that of 10, and the 2 stands beside numbers below 0.
        ("8", [{"8": 0.6, "1": 0.4}], (0, 10), 8.0),
        ("2", [{"2": 0.6, "3": 0.2, "-": 0.2}], (-4, 4), 2.0),
        # A number in several tokens, and one without alternatives, are taken as they are said.
        ("4.5", [{"4": 0.6, "3": 0.4}, {".": 0.9}, {"5": 0.9}], (0, 5), 4.5),
        ("4", [{"4": 0.6}], (0, 5), 4.0),
        ("Score: 4", [{"Score": 0.9, "4": 0.1}, {":": 0.9}, {" 4": 0.5, " 5": 0.4}], (0, 5), 4.0),
    ],
)
def test_whole_numbers_by_their_probabilities(
    answer: str, tokens: list[dict[str, float]], ends: tuple[float, float], wanted: float
) -> None:
    scores = Range(min=ends[0], max=ends[1])
    assert read_batch_line(batch_line(tokens, answer), scores, "f").value == pytest.approx(wanted)


def test_scores_that_cover_little_are_none(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [batch_line([{"4": 0.3, "3": 0.1, "I": 0.2}], "4")]
    found = read_answers([lines(tmp_path / "a.jsonl", rows)], settings(), SIMILARITY)
    assert (found.counts["answered"], found.counts["low_coverage"]) == (0, 1)
    rows = [{"text": "a", "label": 2.0, "coverage": own} for own in (0.9, 0.2)]
    rows[1]["text"] = "b"
    found = read_answers([lines(tmp_path / "b.jsonl", rows)], settings(), SIMILARITY)
    assert (found.counts["answered"], found.counts["low_coverage"]) == (1, 1)


def test_vllms_lines_hold_scores(tmp_path: Path) -> None:
    shares = {2: 0.75, 3: 0.25}
    place = {str(n): {"decoded_token": f" {n}", "logprob": math.log(p)} for n, p in shares.items()}
    end = {"9": {"decoded_token": "</s>", "logprob": -0.1}}
    row = {"text": "a film", "outputs": [{"text": " 2", "logprobs": [place, end]}]}
    other = {"text": "dull", "outputs": [{"text": "about 3.5, I think"}]}
    worse = {"text": "so so", "outputs": [{"text": "hard to say"}]}
    found = read_answers([lines(tmp_path / "a.jsonl", [row, other, worse])], settings(), SIMILARITY)
    assert sorted(np.round(found[:][:, 0], 4).tolist()) == [2.25, 3.5]
    assert found.errors == {"no number: 'hard to say'": 1}


def test_few_of_many_reasons_are_shown(tmp_path: Path) -> None:
    rows = [spoken(f"{n:016x}", f"answer {n}") for n in range(6, 30)]
    with pytest.raises(PotstillError) as raised:
        gather_answers([lines(tmp_path / "a.jsonl", rows)], settings(), SIMILARITY)
    assert "all 24 rows have none (not from 0 to 5: 'answer 6' and the like)" in str(raised.value)
    often = frequent({f"reason {n}": n for n in range(1, 13)})
    assert often[0] == ("reason 12", 12) and often[10:] == [("2 other reasons", 3)]
