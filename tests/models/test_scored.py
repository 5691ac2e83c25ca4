"""A causal language model as a teacher: its logits are those of a plain loop over whole prompts."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json
from pipeline_lib.base.model_config import name_outputs
from pipeline_lib.base.text import Text
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.scored import Prompt
from pipeline_lib.models.teacher import PROMPT, digest_model
from pipeline_lib.params import Scored
from pipeline_lib.training.teachers.scoring import prompt_of, read_template
from tests.kit.causal import FAMILIES, write_causal
from tests.kit.made_up import made_up_task, task_of_labels

ONE = "Which of these is it: {labels}?\n\nText: {text}\nAnswer:"
PAIR = "Do they mean the same?\n\nFirst: {text}\nSecond: {text_pair}\nAnswer:\n"
SEVERAL = "Read the ticket.\n\nTicket: {text}\nAbout {label}? Answer:"
SENTENCES = ["a good film", "the plot is thin, and {text} is no sign", "not", "☃ dull " * 4]
PAIRS = [*zip(SENTENCES, SENTENCES[1:] + SENTENCES[:1], strict=True)]
TEXTS: dict[str, list[Text]] = {ONE: [*SENTENCES], PAIR: [*PAIRS], SEVERAL: [*SENTENCES]}
TASKS = {ONE: made_up_task(), SEVERAL: task_of_labels(), PAIR: made_up_task(text=["a", "b"])}
TRAIN = pa.table({"text": ["good", "dull", "thin plot", "the best"], "label": pa.array([1, 0, 0, 1], pa.int32())})


def written(folder: Path, family: str, template: str, train: pa.Table = TRAIN, **settings: object) -> Prompt:
    write_causal(folder, family)
    (folder / "asked.txt").write_text(template)
    scored = Scored(kind="scored", prompt="asked.txt", **settings)
    prompt = prompt_of(folder / "asked.txt", scored, TASKS[template], train, folder)
    name_outputs(folder, TASKS[template].label_names)
    write_json(folder / PROMPT, asdict(prompt))
    return prompt


def plain(folder: Path, prompt: Prompt, text: Text) -> np.ndarray:
    """Return what a loop over answers gives: the mean log-probability of each one's tokens."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    scores = []
    for before, whole in prompt.continued(text):
        how = {"add_special_tokens": not prompt.chat, "return_tensors": "pt"}
        begun, ids = (tokenizer(prompt_text, **how).input_ids for prompt_text in (before, whole))
        assert torch.equal(ids[:, : begun.shape[1]], begun)
        with torch.inference_mode():
            logs = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        of_tokens = logs.gather(1, ids[0, 1:, None])[begun.shape[1] - 1 :, 0]
        scores.append(float(of_tokens.mean()))
    return np.subtract(scores[0::2], scores[1::2]) if prompt.several else np.array(scores)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("template", [ONE, PAIR, SEVERAL])
def test_logits_are_those_of_a_plain_loop(tmp_path: Path, family: str, template: str) -> None:
    prompt = written(tmp_path, family, template, chat=template == ONE and family == "qwen2")
    teacher = load_teacher(tmp_path, "cpu", "float32")
    nothing = ("", "") if template == PAIR else ""
    logits = teacher.predict(TEXTS[template], 128, 4096)
    expected = np.stack([plain(tmp_path, prompt, text) for text in TEXTS[template]]) - plain(tmp_path, prompt, nothing)
    assert np.allclose(logits, expected, atol=1e-5) and np.ptp(expected, axis=0).min() > 0.01

    alone = np.concatenate([teacher.predict([text], 128, 4096) for text in TEXTS[template]])
    assert np.allclose(alone, logits, atol=1e-5)
    assert np.abs(teacher.predict([nothing], 128, 64)).max() < 1e-5
    assert teacher.label_names == [*prompt.answers]


def test_texts_are_truncated_and_the_prompt_is_not(tmp_path: Path) -> None:
    prompt = written(tmp_path, "gpt2", ONE)
    teacher = load_teacher(tmp_path, "cpu", "float32")
    long, cut = "a good film " * 9, "a good film a"
    limit = len(teacher._ids([cut])[0])
    expected = plain(tmp_path, prompt, cut) - plain(tmp_path, prompt, "")
    assert np.allclose(teacher.predict([long], limit, 64), expected, atol=1e-5)
    with pytest.raises(PotstillError, match=r"a prompt has .* tokens, and the model 256 positions. Lower"):
        teacher.predict(["a good film " * 90], 300, 64)


def test_examples_are_of_train_by_turns_and_belong_to_the_key(tmp_path: Path) -> None:
    prompt = written(tmp_path, "gpt2", ONE, examples=3, labels={"no": "negative", "yes": "positive"})
    shown = prompt.begin.split("\n\n")
    assert shown[0] == "Which of these is it: negative, positive?" and shown[-1] == ""
    drawn = [example.removeprefix("Text: ").split("\nAnswer: ") for example in shown[1:-1]]
    rows = dict(zip(TRAIN["text"].to_pylist(), TRAIN["label"].to_pylist(), strict=True))
    assert [rows[text] for text, _ in drawn] == [0, 1, 0] and len({text for text, _ in drawn}) == 3
    assert [answer for _, answer in drawn] == ["negative", "positive", "negative"]
    digest = digest_model(tmp_path)
    assert written(tmp_path, "gpt2", ONE, examples=3, seed=2).begin != prompt.begin and digest_model(tmp_path) != digest
    several = pa.table({"text": ["a", "b"], "label": pa.array([[1, 0, 0], [0, 1, 1]], pa.list_(pa.int8(), 3))})
    prompt = written(tmp_path, "gpt2", SEVERAL, several, examples=2)
    assert prompt.begin.endswith("Ticket: a\nAbout toxic? Answer: yes\n\nTicket: b\nAbout threat? Answer: yes\n\n")
    with pytest.raises(PotstillError, match="too few rows of each label for 9"):
        written(tmp_path, "gpt2", ONE, examples=9)


@pytest.mark.parametrize(("template", "changed"), [(ONE, "Text:"), (PAIR, "{text}"), (SEVERAL, "{label} of {text}")])
def test_a_prompt_without_its_places_is_refused(tmp_path: Path, template: str, changed: str) -> None:
    (tmp_path / "asked.txt").write_text(changed)
    with pytest.raises(PotstillError, match=r"asked.txt: a prompt for this task has \{text\}"):
        read_template(tmp_path / "asked.txt", TASKS[template])
    (tmp_path / "asked.txt").write_bytes(b"\xff{text}")
    with pytest.raises(PotstillError, match=r"asked.txt: not UTF-8"):
        read_template(tmp_path / "asked.txt", TASKS[template])
