"""Tiny random encoders of several families, with tokenizers of their own, for tests."""

from pathlib import Path
from typing import Any

WORDS = ["a", "film", "good", "dull", "plot", "is", "not", ".", "##s", "##t", "the"]
FAMILIES = ("bert", "mpnet", "roberta", "distilbert", "modernbert")
SIZES = {
    "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32,
}  # fmt: skip
MODERNBERT = {
    "initializer_range": 0.2, "global_attn_every_n_layers": 2, "local_attention": 4,
    "cls_token_id": 2, "bos_token_id": 2, "sep_token_id": 3, "eos_token_id": 3,
}  # fmt: skip
DISTILBERT = {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32}


LAYERS = {
    **{"architecture": "transformer", "model": "minilm", "layers": [0, 2], "pool": "mean"},
    **{"classifier": 6, "dropout": 0.0, "max_words": 14},
}
"""Settings of a student of two of such an encoder's layers."""
PIECES = {
    **{"architecture": "biattentive", "tokens": "pieces", "model": "minilm", "embedding_size": 5},
    **{"feedforward": 6, "hidden": 4, "pools": ["max", "self"], "shared": 7, "classifier": 6},
    **{"dropout": 0.0, "max_words": 8},
}
"""Settings of a student that reads such an encoder's word pieces."""
DSE = {
    **{"architecture": "dse", "model": "minilm", "layers": None, "last": 2, "classifier": 6},
    **{"dropout": None, "frozen": False, "max_words": 14},
}
"""Settings of a student that reads each sentence apart, with such an encoder's last layers."""


def write_model(folder: Path, family: str, auto_class: str = "AutoModel") -> Path:
    """Write a random model of three layers and 32 positions with its tokenizer.

    :param auto_class: of transformers: an encoder, or with a head.
    """
    import torch
    import transformers
    from transformers import AutoConfig

    tokenizer = piece_tokenizer(WORDS, family)
    pad = tokenizer.pad_token_id
    sizes = {"distilbert": DISTILBERT, "modernbert": SIZES | MODERNBERT}.get(family, SIZES | {"initializer_range": 0.2})
    # RoBERTa and MPNet count positions from behind the padding's number.
    config = AutoConfig.for_model(
        family, vocab_size=len(tokenizer), pad_token_id=pad, max_position_embeddings=32 + 2 * pad,
        **sizes,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(1)
        getattr(transformers, auto_class).from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def piece_tokenizer(pieces: list[str], family: str = "bert", normalizer: Any = None) -> Any:
    """Return a tokenizer of these word pieces, behind the signs of the family."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    signs = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
    if family in ("bert", "distilbert", "modernbert"):
        signs = {name: f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    numbers = {piece: number for number, piece in enumerate([*signs.values(), *pieces])}
    backend = Tokenizer(models.WordPiece(numbers, unk_token=signs["unk"]))
    backend.normalizer = normalizer or normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cls, sep = signs["cls"], signs["sep"]
    double = f"{sep}:0 " if family in ("mpnet", "roberta") else ""
    second = 1 if family == "bert" else 0
    backend.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls}:0 $A:0 {sep}:0 {double}$B:{second} {sep}:{second}",
        special_tokens=[(cls, numbers[cls]), (sep, numbers[sep])],
    )
    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if family == "bert" else [])]
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=inputs, **{f"{name}_token": sign for name, sign in signs.items()}
    )
