"""Tiny random causal language models of three families, with tokenizers as theirs, for tests."""

from pathlib import Path
from typing import Any

FAMILIES = ("gpt2", "llama", "qwen2")
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
SIZES |= {"intermediate_size": 32, "max_position_embeddings": 256}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 256}
SIGNS = ["<s>", "</s>", "<|endoftext|>"]
TEXTS = ["Which of these is it: positive, negative? Text: a good film, not dull. Answer: no", "About billing? yes"]
CHAT = "{% for m in messages %}<|user|>{{ m.content }}<|end|>{% endfor %}<|model|>\n"


def write_causal(folder: Path, family: str) -> Path:
    """Write a random language model of two layers and its tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer, sizes = _tokenizer(family), GPT2 if family == "gpt2" else SIZES
    signs = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None, "initializer_range": 0.4}
    config = AutoConfig.for_model(family, vocab_size=len(tokenizer), **signs, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(family: str) -> Any:
    """Return a tokenizer of bytes, or as Llama's: one that marks words and begins each text with a sign."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    marks_words = family == "llama"
    backend = Tokenizer(models.BPE(byte_fallback=marks_words))
    if marks_words:
        backend.pre_tokenizer = pre_tokenizers.Metaspace()
        backend.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
        signs, letters = SIGNS + [f"<0x{byte:02X}>" for byte in range(256)], []
    else:
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        signs, letters = SIGNS, pre_tokenizers.ByteLevel.alphabet()
    options = {"special_tokens": signs, "initial_alphabet": letters, "show_progress": False}
    backend.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=len(signs) + len(letters) + 60, **options))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = CHAT
    return tokenizer
