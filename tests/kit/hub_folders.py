"""Tiny random classifiers of several architectures, and data sets, in folders as on the hub."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datasets

WORDS = ["a", "film", "good", "dull", "plot", "is", "not", "long", "short", "the", "lamp"]
WORDS += ["bright", "shines", "lot", "and"]
LABELS = ["no", "yes"]
SIZES = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
}  # fmt: skip
POSITIONS = 64
SIGNS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_classifier(folder: Path, family: str, names: list[str] = LABELS, **changes: object) -> Path:
    """Write a random classifier whose answers depend on all that it reads, and its tokenizer.

    :param changes: to its config.json.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    tokenizer = _tokenizer(family)
    config = AutoConfig.for_model(
        family,
        vocab_size=len(tokenizer),
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
        **_sizes(family, tokenizer) | changes,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = AutoModelForSequenceClassification.from_config(config)
        for parameter in model.parameters():
            parameter.data.normal_(0.0, 0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_data_set(folder: Path, config: str, splits: "Mapping[str, datasets.Dataset]") -> Path:
    """Write a data set as the hub's repository has it: a card with its files, and Parquet."""
    (folder / config).mkdir(parents=True)
    for split, rows in splits.items():
        rows.to_parquet(folder / config / f"{split}-00000-of-00001.parquet")
    write_card(folder, {config: {split: f"{config}/{split}-*" for split in splits}})
    return folder


def write_card(folder: Path, files: Mapping[str, Mapping[str, str]], **more: object) -> None:
    """Write a data set's card: the pattern of each split's files, by configuration."""
    configs = [
        {"config_name": config, "data_files": [{"split": split, "path": path} for split, path in paths.items()]}
        for config, paths in files.items()
    ]
    # JSON is YAML.
    (folder / "README.md").write_text(f"---\n{json.dumps(more | {'configs': configs})}\n---\n")


def change_json(path: Path, **changes: object) -> None:
    """Set keys of a JSON file; ``...`` takes one out."""
    values = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: v for key, v in values.items() if v is not ...}))


def _sizes(family: str, tokenizer: Any) -> dict[str, Any]:
    """Return an architecture's sizes, which its configuration calls by names of its own."""
    sizes = SIZES | {"max_position_embeddings": POSITIONS, "pad_token_id": tokenizer.pad_token_id}
    match family:
        case "albert":
            return sizes | {"embedding_size": 8}
        case "deberta-v2":
            relative = {"relative_attention": True, "position_biased_input": False}
            more = {"pos_att_type": ["p2c", "c2p"], "position_buckets": 8, "type_vocab_size": 0}
            return sizes | relative | more | {"norm_rel_ebd": "layer_norm", "share_att_key": True}
        case "distilbert":
            return sizes | {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
        case "gpt2":
            return {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": POSITIONS}
        case "modernbert":
            ids = {"cls_token_id": 2, "bos_token_id": 2, "sep_token_id": 3, "eos_token_id": 3}
            return sizes | ids
        case "roberta" | "xlm-roberta":
            offset = tokenizer.pad_token_id + 1
            return sizes | {"type_vocab_size": 1, "max_position_embeddings": POSITIONS + offset}
    return sizes


def _tokenizer(family: str) -> Any:
    """Return a tokenizer of the class that the architecture's models on the hub have."""
    import transformers

    pieces = [("▁" + word, -5.0) for word in WORDS]
    match family:
        case "albert":
            signs = [(sign, 0.0) for sign in ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")]
            return transformers.AlbertTokenizer(vocab=signs + pieces)
        case "deberta-v2":
            signs = [(sign, 0.0) for sign in ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")]
            return transformers.DebertaV2Tokenizer(vocab=signs + pieces)
        case "xlm-roberta":
            signs = [(sign, 0.0) for sign in ("<s>", "<pad>", "</s>", "<unk>")]
            return transformers.XLMRobertaTokenizer(vocab=signs + pieces + [("<mask>", 0.0)])
        case "gpt2" | "roberta":
            signs = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"]
            letters = sorted({letter for word in WORDS for letter in word} | {"Ġ"})
            vocab = {piece: number for number, piece in enumerate([*letters, *signs])}
            kind = transformers.GPT2Tokenizer if family == "gpt2" else transformers.RobertaTokenizer
            return kind(vocab=vocab, merges=[])
        case "modernbert":
            bert = _tokenizer("bert")
            inputs = ["input_ids", "attention_mask"]
            return transformers.PreTrainedTokenizerFast(
                tokenizer_object=bert.backend_tokenizer, model_input_names=inputs,
                pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                mask_token="[MASK]",
            )  # fmt: skip
    numbers = {piece: number for number, piece in enumerate([*SIGNS, *WORDS])}
    return transformers.BertTokenizer(vocab=numbers)
