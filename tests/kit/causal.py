"""Tiny random causal language models of three families, with tokenizers as theirs, for tests."""

from pathlib import Path
from typing import Any

FAMILIES = ("gpt2", "llama", "qwen2")
SIZES = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "intermediate_size": 32, "initializer_range": 0.4, "max_position_embeddings": 256,
}  # fmt: skip
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 256, "initializer_range": 0.4}
TEXTS = [
    "Which of these is it: positive, negative or unsure?\n\nText: a good film, not dull.\nAnswer: positive",
    "Text: the plot is thin\nAbout billing? yes\nAbout delivery? no",
]
CHAT = "{% for m in messages %}<|user|>{{ m.content }}<|end|>{% endfor %}<|model|>\n"


def write_causal(folder: Path, family: str) -> Path:
    """Write a random language model of two layers and its tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = _tokenizer(family)
    sizes = GPT2 if family == "gpt2" else SIZES
    signs = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = AutoConfig.for_model(family, vocab_size=len(tokenizer), pad_token_id=None, **signs, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(family: str) -> Any:
    """Return a tokenizer of bytes, or as Llama's: one that marks words and begins each text with a sign."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE(byte_fallback=family == "llama"))
    if family == "llama":
        backend.pre_tokenizer = pre_tokenizers.Metaspace()
        alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    else:
        backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    signs = ["<s>", "</s>", "<|endoftext|>", *(alphabet if family == "llama" else [])]
    letters = [] if family == "llama" else alphabet
    trainer = trainers.BpeTrainer(
        vocab_size=len(signs) + len(letters) + 60, special_tokens=signs, initial_alphabet=letters, show_progress=False
    )
    backend.train_from_iterator(TEXTS, trainer)
    if family == "llama":
        backend.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = CHAT
    return tokenizer
