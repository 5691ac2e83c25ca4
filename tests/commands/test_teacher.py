"""``distill teacher``: a file is tried, and what needs an answer is written."""

import json
from pathlib import Path

import pytest

from .conftest import TRANSFER
from .running import PARAMS, Fails, distill, write_params

LLM = {
    "kind": "answers",
    **{"files": ["{task}.jsonl"], "classes": None, "mask": "[MASK]"},
    **{"provenance": {"model": "m-1"}},
}


@pytest.fixture
def answers(world: Path) -> Path:
    """Give params a teacher with answers, and write the file; two of four rows have one."""
    from ruamel.yaml import YAML

    given = YAML(typ="safe").load(PARAMS.read_text())
    row = {"model": None, "max_length": None, "tasks": ["movies"], "data": None, "tuning": LLM}
    methods = {name: own | {"teacher": "minilm"} for name, own in given["methods"].items()}
    joint = {name: own | {"teacher": "minilm"} for name, own in given["joint"].items()}
    write_params(teachers=given["teachers"] | {"llm": row}, methods=methods, joint=joint)
    path = world / "data/input/movies.jsonl"
    path.parent.mkdir(parents=True)
    rows = [
        {"text": "good film", "probs": {"positive": 0.9}},
        {"text": "[MASK] film", "label": "negative", "weight": 2},
        {"text": "bad plot", "error": "refused"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_requests_are_the_rows_without_an_answer(answers: Path) -> None:
    said = distill("teacher", "requests", "movies", "full", "llm", "out.jsonl")
    assert "out.jsonl: 2 rows of 4 need an answer" in said
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == ["bad plot", "a joy"]
    answers.unlink()
    said = distill("teacher", "requests", "movies", "full", "llm", "all.jsonl")
    assert "4 rows of 4 need an answer (data/input/movies.jsonl not there yet)" in said


def test_a_batch_is_one(answers: Path, fails: Fails) -> None:
    Path("prompt.txt").write_text("Say {labels}.")
    options = "--format", "openai-batch", "--prompt", "prompt.txt"
    distill("teacher", "requests", "movies", "full", "llm", "out.jsonl", *options)
    line = json.loads(Path("out.jsonl").read_text().splitlines()[0])
    assert set(line) == {"custom_id", "method", "url", "body"} and len(line["custom_id"]) == 16
    assert line["body"]["model"] == "m-1" and line["body"]["response_format"]["type"] == "json_schema"
    assert line["body"]["messages"][0]["content"] == "Say negative, positive."
    Path("prompt.txt").write_text("From {min} on.")
    arguments = "teacher", "requests", "movies", "full", "llm", "out.jsonl"
    error = fails(*arguments, *options)
    assert "--prompt: it has {min}, but the task's labels are classes. Write {labels}." in error


def test_a_file_is_tried(answers: Path, fails: Fails) -> None:
    said = distill("teacher", "check", str(answers), "--task", "movies")
    assert "3 rows, 2 answered, 0 repeated, 1 errors" in said and "error, 1 rows: refused" in said
    assert "classes: negative 1, positive 1" in said and "weights 1 to 2" in said
    assert f"{TRANSFER}: 2 of 4 rows answered (50.0%)" in said
    assert "--task: missing, and there are movies, " in fails("teacher", "check", str(answers))
    arguments = "teacher", "check", str(answers), "--task", "movies", "--teacher", "minilm"
    assert "'minilm' has no answers in files; there are llm" in fails(*arguments)
    answers.write_text('{"text": "a", "label": "so so"}\n')
    error = fails("teacher", "check", str(answers), "--task", "movies")
    assert "movies.jsonl: row 1: class 'so so' is unknown; the task's are negative, po" in error
