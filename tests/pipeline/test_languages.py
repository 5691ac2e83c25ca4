"""From a file in another language to students that know its words, with a model of it."""

import csv
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.text import MASK
from pipeline_lib.models.students.tokenise import numbering
from pipeline_lib.models.students.vocabulary import load_vocabulary
from pipeline_lib.params import load_params
from pipeline_lib.results.collect import metrics, read_results
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.stages import (
    augment,
    evaluate,
    fetch_data,
    fetch_models,
    finetune_teacher,
    precompute,
    prepare,
    train,
)
from pipeline_lib.stages.train import make_vocabulary
from tests.commands.running import distill
from tests.kit.pretrained import piece_tokenizer

LANGUAGES: dict[str, tuple[str, list[str], list[str], list[str], list[str]]] = {
    "chinese": ("", ["电影", "音乐", "故事", "演员"], ["精彩", "好看", "动人"],
                ["无聊", "糟糕", "难看"], ["这部", "真的", "非常", "我觉得"]),
    "thai": ("", ["หนัง", "เพลง", "เรื่อง", "ดารา"], ["สนุก", "ดีมาก", "ประทับใจ"],
             ["น่าเบื่อ", "แย่มาก", "ไม่ดี"], ["เรื่องนี้", "จริงๆ", "ฉันว่า"]),
    "arabic": (" ", ["الفيلم", "الموسيقى", "القصة", "الممثل"], ["رائع", "جميل", "ممتع"],
               ["ممل", "سيء", "ضعيف"], ["هذا", "جدا", "كان", "في"]),
    "hindi": (" ", ["फिल्म", "संगीत", "कहानी", "अभिनेता"], ["शानदार", "अच्छी", "मज़ेदार"],
              ["उबाऊ", "खराब", "बेकार"], ["यह", "बहुत", "थी", "है"]),
    "german": (" ", ["Film", "Musik", "Geschichte", "Schauspieler"],
               ["großartig", "schön", "rührend"], ["langweilig", "schlecht", "öde"],
               ["der", "wirklich", "war", "sehr"]),
}  # fmt: skip
"""What stands between words, and the words: things, praise, blame, and others."""
ENDINGS = {"arabic": "ه", "hindi": "ों", "german": "en"}
"""What words of the test set end in, where words are divided by spaces: none of them was seen."""
SPLITS = {"train": (1, 120), "test": (2, 120), "texts": (3, 600)}
"""The seed and rows of each file."""


def write_reviews(folder: Path, language: str) -> None:
    for split, (seed, rows) in SPLITS.items():
        with open(folder / f"{split}.csv", "w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(["text", "label"])
            writer.writerows(reviews(language, seed, rows, inflected=split != "train"))


def reviews(language: str, seed: int, rows: int, inflected: bool) -> list[tuple[str, str]]:
    """Return texts and labels; if they are inflected, half of the texts are."""
    draw = random.Random(seed)
    return [_row(draw, language, inflected) for _ in range(rows)]


def _row(draw: random.Random, language: str, inflected: bool) -> tuple[str, str]:
    between, things, praise, blame, others = LANGUAGES[language]
    is_good = draw.random() < 0.5
    ending = ENDINGS.get(language, "") if inflected and draw.random() < 0.5 else ""
    words = [draw.choice(others), draw.choice(things) + ending, draw.choice(others)]
    words += [draw.choice(praise if is_good else blame) + ending, *draw.choices(others, k=2)]
    return between.join(words), "good" if is_good else "bad"


def write_model(folder: Path) -> Path:
    """Write a small random BERT whose word pieces are all characters, and some words of each."""
    import torch
    from transformers import BertModel

    tokenizer, config = _tokenizer_and_sizes()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_teacher(folder: Path, language: str) -> Path:
    """Write such a BERT that knows a language's reviews: it was tuned on 1,000 of them."""
    import torch
    from transformers import BertForSequenceClassification

    tokenizer, config = _tokenizer_and_sizes()
    config.id2label, config.label2id = {0: "bad", 1: "good"}, {"bad": 0, "good": 1}
    rows = reviews(language, 4, 1000, inflected=True)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = BertForSequenceClassification(config)
        optimiser = torch.optim.Adam(model.parameters(), 1e-3)
        for start in [*range(0, len(rows), 50)] * 4:
            texts, labels = zip(*rows[start : start + 50], strict=True)
            batch = tokenizer(list(texts), padding=True, return_tensors="pt")
            wanted = torch.tensor([config.label2id[label] for label in labels])
            optimiser.zero_grad()
            model(**batch, labels=wanted).loss.backward()
            optimiser.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer_and_sizes() -> tuple[Any, Any]:
    from tokenizers import normalizers
    from transformers import BertConfig

    words = [word for _, *kinds in LANGUAGES.values() for kind in kinds for word in kind]
    characters = sorted({*"".join(words).lower(), *"".join(ENDINGS.values())})
    pieces = [*characters, *(f"##{sign}" for sign in characters)]
    pieces += sorted({word.lower() for word in words} - {*pieces})
    tokenizer = piece_tokenizer(pieces, normalizer=normalizers.BertNormalizer(strip_accents=False))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    return tokenizer, BertConfig(vocab_size=len(tokenizer), **sizes, max_position_embeddings=130, initializer_range=0.1)


@pytest.fixture
def begun(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a workspace of a language's reviews, and return the language."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()
    write_reviews(tmp_path, request.param)
    write_model(tmp_path / "tiny")
    files = "train.csv", "--test", "test.csv", "--name", "task", "--teacher", "tiny"
    printed = distill("init", *files, "--no-scm")
    assert "the texts are not English" in printed and "hardly knows" not in printed
    return request.param


@pytest.mark.parametrize("begun", ["chinese", "hindi", "german"], indirect=True)
def test_words_of_the_test_set_are_known(begun: str, store_home: Path) -> None:
    params, layout = load_params(), Layout()
    is_unspaced = LANGUAGES[begun][0] == ""
    assert params.tagger.engine == "none" and [*params.models] == ["tiny"]
    assert params.recipe("full").ngram_max == (10 if is_unspaced else 5)
    for stage in (fetch_data, prepare, augment):
        stage.main(task="task")
    fetch_models.main()
    make_vocabulary(params, "task", layout)
    tokenizer, vectors = load_vocabulary(layout.vocabulary("task"))
    unknown = tokenizer.token_to_id(MASK)
    texts = ShardSet.open(layout.split("task", "test")).to_table()["text"].to_pylist()
    ids = numbering(tokenizer).number(texts, 64).ids
    assert np.mean(ids != unknown) > 0.95 and vectors.shape[1] == 32
    # The transfer set has masked words, and no replaced ones.
    rows = ShardSet.open(layout.transfer("task", "full")).to_table()
    assert any(MASK in text for text in rows["text"].to_pylist())
    assert {*rows["rules"].combine_chunks().flatten().to_pylist()} == {0, 1}
    if is_unspaced:
        assert all(len(word) <= 3 or word == MASK for word in _words(rows))


@pytest.mark.slow
@pytest.mark.parametrize("language", ["thai", "arabic", "german"])
def test_students_learn_more_from_the_teacher_than_from_labels(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_home: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()
    write_reviews(tmp_path, language)
    write_teacher(tmp_path / "teacher", language)
    files = "train.csv", "--test", "test.csv", "--unlabelled", "texts.csv", "--name", "task"
    distill("init", *files, "--teacher", "teacher", "--no-scm")
    fetch_models.main()
    for stage in (fetch_data, prepare, augment, finetune_teacher, precompute, train, evaluate):
        stage.main(task="task")
    [results] = metrics(read_results(Layout(), ["task"])).values()
    scores = {name: row["test"]["accuracy"]["mean"] for name, row in results["methods"].items()}
    assert results["teachers"]["teacher"]["test"]["accuracy"] > 0.95
    assert scores["bilstm_kd_ts"] > max(scores["bilstm"], 0.9)


def _words(rows: object) -> set[str]:
    return {*rows["words"].combine_chunks().flatten().to_pylist()}
