"""A small labelled corpus and a tiny random encoder that can learn it."""

import itertools
import random
from pathlib import Path

GOOD = ["good", "great", "fine", "lovely", "superb", "moving", "clever", "warm", "funny", "fresh"]
BAD = ["bad", "awful", "poor", "dreadful", "tedious", "clumsy", "cold", "dull", "stale", "weak"]
THINGS = ["film", "plot", "cast", "story", "ending", "script", "music", "dialogue", "scene"]
ADVERBS = ["very", "quite", "really", "rather", "truly", "utterly", "somewhat", "simply"]
ENDS = ["", "from start to end", "and I say so", "in every scene", "to my surprise", "this time"]
SIZES = {"train": 240, "dev": 60, "test": 60}


def sentences() -> dict[str, list[tuple[int, str]]]:
    """Return (label, sentence) of each split: balanced, no sentence twice."""
    draw = random.Random(7)
    pools = {label: _all(words) for label, words in enumerate((BAD, GOOD))}
    for pool in pools.values():
        draw.shuffle(pool)
    splits = {}
    for split, size in SIZES.items():
        rows = [(label, pools[label].pop()) for label in (0, 1) for _ in range(size // 2)]
        draw.shuffle(rows)
        splits[split] = rows
    return splits


def _all(words: list[str]) -> list[str]:
    parts = itertools.product(THINGS, ADVERBS, words, ENDS)
    return [f"The {t} is {a} {w} {e}".strip() + "." for t, a, w, e in parts]


def write_corpus(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in sentences().items():
        write_rows(folder / f"{split}.tsv", rows)


def write_rows(path: Path, rows: list[tuple[int, str]]) -> None:
    lines = ["label\tsentence", *(f"{label}\t{text}" for label, text in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_encoder(folder: Path, labels: int | None = None, mask: str | None = "[MASK]") -> None:
    """Write a random BERT of two layers with its tokenizer; ``labels`` gives it a head.

    :param mask: the tokenizer's mask token.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    tokenizer = _tokenizer(mask)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        # BERT's own 0.02 would take hundreds of steps to come loose at this size.
        initializer_range=0.1,
        num_labels=labels or 2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        kind = BertModel if labels is None else BertForSequenceClassification
        model = kind(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _tokenizer(mask: str | None) -> "PreTrainedTokenizerFast":  # noqa: F821
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = {w for rows in sentences().values() for _, t in rows for w in t.lower().split()}
    letters = "abcdefghijklmnopqrstuvwxyz.[]"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", mask or "[MASK]"]
    pieces = [*special, *letters, *(f"##{c}" for c in letters)]
    pieces += sorted({word.strip(".") for word in words} - set(letters))
    backend = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token=mask,
        model_max_length=64,
    )
