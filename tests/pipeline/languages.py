"""Made-up reviews in five languages, and a tiny multilingual model that reads all of them."""

import csv
import random
from pathlib import Path
from typing import Any

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
    """Write train.csv, test.csv and texts.csv; the training rows have no inflected word."""
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

    tokenizer, config = _parts()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_teacher(folder: Path, language: str) -> Path:
    """Write such a BERT that knows a language's reviews: it was tuned on 1,000 of them."""
    import torch
    from transformers import BertForSequenceClassification

    tokenizer, config = _parts()
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


def _parts() -> tuple[Any, Any]:
    """Return the tokenizer, and the configuration, of the small BERT."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, PreTrainedTokenizerFast

    words = [word for _, *kinds in LANGUAGES.values() for kind in kinds for word in kind]
    signs = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    characters = sorted({*"".join(words).lower(), *"".join(ENDINGS.values())})
    pieces = [*signs, *characters, *(f"##{sign}" for sign in characters)]
    pieces += sorted({word.lower() for word in words} - {*pieces})
    numbers = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(strip_accents=False)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )  # fmt: skip
    keys = "pad_token", "unk_token", "cls_token", "sep_token", "mask_token"
    names = dict(zip(keys, signs, strict=True))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **names)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=130, initializer_range=0.1,
    )  # fmt: skip
    return tokenizer, config
