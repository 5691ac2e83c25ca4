"""Whether a model answers what its tokenizer makes of a text, and of a text beside longer ones.

Two texts tell: ids beyond the embeddings, positions too few, padding that is read.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.model_config import position_count
from pipeline_lib.base.text import Text
from pipeline_lib.models.networks.layers import inside, model_inputs
from pipeline_lib.models.networks.packing import let_pack, packed
from pipeline_lib.text.pieces import Pieces

SHORT = "a film"
LONG = "a film that is not long, and not short; ☃ is a word that few know"
MOST = 16
"""Word pieces of a text that is tried."""


def check_answers(folder: Path, model: Any, pieces: Pieces) -> None:
    """Try a model, in evaluation mode on a CPU, on two texts and on two pairs."""
    check_vocabulary(folder, model, pieces)
    limit = min(position_count(model.config.to_dict()) or MOST, MOST)
    pairs: list[Text] = [(SHORT, SHORT), (LONG, LONG)]
    for texts in ([SHORT, LONG], pairs):
        try:
            alone, beside = _answers(model, pieces, texts, limit)
        except MemoryError:
            raise
        except Exception as error:  # each architecture and tokenizer fails in its own way
            raise PotstillError(_unable(folder, model, pieces, reason_of(error))) from error
        if not alone.isfinite().all():
            raise PotstillError(
                f"{folder}: the model's answer to a text is no finite number, so its weights are "
                "damaged. Get them again."
            )
        if not torch.allclose(alone, beside, rtol=0.0, atol=1e-5 + 0.01 * float(alone.abs().max())):
            raise PotstillError(_padded(folder, model, pieces))


def can_pack(model: Any, pieces: Pieces) -> bool:
    """Prepare a model, in evaluation on a CPU, to compute packed batches; return whether its answers stay."""
    let_pack(model)
    limit = min(position_count(model.config.to_dict()) or MOST, MOST)
    batch = pieces.number([LONG, SHORT, SHORT], limit).batch(np.arange(3))
    with torch.inference_mode():
        padded = _answers_of(model, batch)
        try:
            with packed(batch):
                answers = _answers_of(model, batch)
        except Exception:  # each architecture fails in its own way
            return False
    return answers.shape == padded.shape and torch.allclose(
        answers, padded, rtol=0.0, atol=1e-5 + 1e-4 * float(padded.abs().max())
    )


def check_vocabulary(folder: Path, model: Any, pieces: Pieces) -> None:
    """Check that a model has an embedding for each of its tokenizer's word pieces."""
    rows = model.get_input_embeddings().weight.shape[0]
    piece, number = max(pieces.tokenizer.get_vocab().items(), key=lambda item: item[1])
    if number >= rows:
        raise PotstillError(
            f"{folder}: its tokenizer counts pieces up to {number:,} ({piece!r}), its weights have {rows:,} embeddings "
            "(vocab_size in config.json). Put the tokenizer files there that the model was trained with, or train it "
            "after model.resize_token_embeddings(len(tokenizer))."
        )


def _answers(model: Any, pieces: Pieces, texts: list[Text], limit: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the answer to the first text, alone and beside the second."""
    sentences = pieces.number(texts, limit)
    length, rows = int(sentences.lengths[0]), torch.arange(2).numpy()
    with torch.inference_mode():
        alone, beside = (model(**model_inputs(sentences.batch(chosen))) for chosen in (rows[:1], rows))
    if "logits" in alone:
        # One per class, or as many per token as there are word pieces.
        return alone.logits[0], beside.logits[0, : len(alone.logits[0])]
    return alone.last_hidden_state[0], beside.last_hidden_state[0, :length]


def _answers_of(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return a classifier's logits, (rows, classes), or an encoder's states, (tokens, width)."""
    output = model(**model_inputs(batch))
    if "logits" in output:
        return output.logits
    return output.last_hidden_state[inside(batch["ids"], batch["lengths"])]


def _unable(folder: Path, model: Any, pieces: Pieces, reason: str) -> str:
    if pieces.padding is None:
        return (
            f"{folder}: its tokenizer has no padding token, and texts of different lengths need one ({reason}). Name "
            "one as pad_token in tokenizer_config.json, and its id as pad_token_id in config.json."
        )
    return (
        f"{folder}: the model cannot answer what its tokenizer makes of a text ({reason}). Put the "
        "config.json and tokenizer files there that its weights were saved with."
    )


def _padded(folder: Path, model: Any, pieces: Pieces) -> str:
    number = getattr(model.config, "pad_token_id", None)
    if pieces.padding is not None and number != pieces.pad_id:
        return (
            f"{folder}: its tokenizer pads with {pieces.padding!r}, {pieces.pad_id}, and pad_token_id in config.json "
            f"is {number}, so that padding is read as text. Set it to {pieces.pad_id}."
        )
    return (
        f"{folder}: the answers of a {model.config.model_type} model change with the padding "
        "behind a text, so they depend on the texts beside it. Use another architecture."
    )
