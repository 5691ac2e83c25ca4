"""What networks read: rows of ids, padded at the end, and how long each row is."""

from collections.abc import Mapping

import torch

PAD_ID = 0
"""The id of words' padding, as in :mod:`pipeline_lib.text.ragged`."""


def inside(ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return bool (rows, columns): whether a column is within the row's length."""
    return torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]


def model_inputs(batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor | None]:
    """Return a batch of :class:`~pipeline_lib.text.ragged.Sentences` as transformers' arguments."""
    ids, lengths = batch["ids"], batch["lengths"]
    # Without padding a mask says nothing, and attention without one is cheaper.
    padded = int(lengths.min()) < ids.shape[1]
    mask = inside(ids, lengths).long() if padded else None
    segments = {"token_type_ids": batch["segments"]} if batch.get("segments") is not None else {}
    return {"input_ids": ids, "attention_mask": mask, **segments}
