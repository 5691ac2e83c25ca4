"""A sentence encoder, or a siamese student's, as a folder that sentence-transformers loads.

A mean of word vectors uses that library's own modules.  Every other encoder comes with the code of its network,
:mod:`pipeline_lib.models.networks.distilled_encoder` and what that imports.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from pipeline_lib.base.files import atomic_path, read_record, write_json
from pipeline_lib.base.text import MASK
from pipeline_lib.exports.folders import copy_code, padding_number, require_new_folder, require_own_code, unknown_number
from pipeline_lib.models.networks import distilled_encoder
from pipeline_lib.models.networks.encoders import StaticEncoder
from pipeline_lib.models.students.sentence_encoder import SentenceEncoder, load_encoder
from pipeline_lib.params import student_settings
from pipeline_lib.text.pieces import Pieces

Modules = list[tuple[str, str]]


def export_sentence_transformers(folder: Path, out: Path) -> int:
    """Write the encoder in ``folder`` to the new folder ``out``; return its vectors' width."""
    encoder = load_encoder(folder)
    config = read_record(folder / "config.json")
    require_own_code(folder, encoder.model)
    require_new_folder(out)
    is_mean = isinstance(encoder.model, StaticEncoder)
    modules = _write_mean(encoder, out) if is_mean else _write_network(encoder, config, out)
    write_json(
        out / "config_sentence_transformers.json",
        {
            "model_type": "SentenceTransformer",
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
    # Written last: without it, a half-written folder cannot be loaded.
    write_json(
        out / "modules.json",
        [
            {"idx": number, "name": str(number), "path": path, "type": type_}
            for number, (type_, path) in enumerate(modules)
        ],
    )
    return encoder.width


def _write_network(encoder: SentenceEncoder, config: dict[str, Any], out: Path) -> Modules:
    """Write the encoder along with the code of its network."""
    tokenizer, keys = encoder.tokenizer, ("vocab_size", "embedding_size", "pretrained")
    numbers = {"padding": padding_number(tokenizer), "unknown": unknown_number(tokenizer)}
    _write_tokenizer(encoder, out)
    _write_tensors(out, encoder.model.state_dict())
    sizes = {key: config[key] for key in keys if key in config}
    architecture = student_settings(config["architecture"]).model_dump()
    write_json(out / distilled_encoder.CONFIG, {"architecture": architecture} | sizes | numbers)
    copy_code(distilled_encoder, out)
    return [("distilled_encoder.DistilledEncoder", "")]


def _write_mean(encoder: SentenceEncoder, out: Path) -> Modules:
    """Write a mean of word vectors, with the module that sentence-transformers has for it.

    That module returns zeros for a text without words, where the encoder returns the unknown word's
    vector.  So this vector is subtracted from all others, and a linear layer adds it back.
    """
    channels = encoder.model.embeddings.state_dict()
    table = torch.cat([channels[key] for key in sorted(channels, reverse=True)], dim=1)
    unknown = table[encoder.tokenizer.token_to_id(MASK)]
    _write_tokenizer(encoder, out)
    _write_tensors(out, {"embedding.weight": table - unknown})
    _write_tensors(out / "1_Dense", {"linear.weight": torch.eye(len(unknown)), "linear.bias": unknown})
    write_json(
        out / "1_Dense" / "config.json",
        {
            "in_features": len(unknown),
            "out_features": len(unknown),
            "bias": True,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
    )
    # The names from before release 6, which it still supports.
    module = "sentence_transformers.models"
    return [(f"{module}.StaticEmbedding", ""), (f"{module}.Dense", "1_Dense")]


def _write_tokenizer(encoder: SentenceEncoder, out: Path) -> None:
    original = encoder.tokenizer
    # A copy, which truncates long texts as the encoder does.
    tokenizer = Tokenizer.from_str((original.tokenizer if isinstance(original, Pieces) else original).to_str())
    tokenizer.no_padding()
    tokenizer.enable_truncation(encoder.max_words)
    with atomic_path(out / distilled_encoder.TOKENIZER) as temporary:
        temporary.write_text(tokenizer.to_str(pretty=True), encoding="utf-8")


def _write_tensors(out: Path, tensors: dict[str, torch.Tensor]) -> None:
    with atomic_path(out / distilled_encoder.WEIGHTS) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, {"format": "pt"})
