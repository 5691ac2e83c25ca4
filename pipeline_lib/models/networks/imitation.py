"""A student that learns from its teacher's layers, token by token, with the teacher in memory.

Jiao et al. 2020, section 3.1 (TinyBERT).  The tensors compared are too large to store, so they are
recomputed for every batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from .inputs import inside
from .student import StudentNetwork
from .transformer import TransformerReader


class Imitation(nn.Module):
    """A transformer student, and projections of its states to the teacher's width.

    The projections, one for the embeddings and one shared by all layers, are learned with the
    student and discarded when it is saved.

    :param student: a task's student, or only its reader; :param width: of the teacher's states.
    """

    def __init__(self, student: StudentNetwork | TransformerReader, width: int) -> None:
        super().__init__()
        self.student = student
        student_width = reader_of(student).width
        self.embeddings = nn.Linear(student_width, width, bias=False)
        self.hidden = nn.Linear(student_width, width, bias=False)

    def outputs(self, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the student's named outputs, and those of :func:`token_states`, projected."""
        outputs = self.student.outputs(batch)
        states = token_states(outputs["hidden"], outputs.get("attentions"), batch)
        states["embeddings"] = self.embeddings(states["embeddings"])
        states["hidden"] = self.hidden(states["hidden"])
        return outputs | states


def reader_of(student: StudentNetwork | TransformerReader) -> TransformerReader:
    """Return the part that reads the input: for a task's student, everything below its head."""
    return student.encoder if isinstance(student, StudentNetwork) else student


def token_states(
    hidden: Sequence[torch.Tensor], attentions: Sequence[torch.Tensor] | None, batch: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    """Return a batch's states and attention scores for comparison, without padding.

    :param hidden: of the embeddings and of each layer, (rows, longest, width).
    :param attentions: of each layer, (rows, heads, longest, longest), or None.
    :returns: ``embeddings`` (tokens, width), ``hidden`` (layers, tokens, width) and ``attentions``
        (layers, pairs of tokens, heads).
    """
    real = inside(batch["ids"], batch["lengths"])
    states = [layer[real] for layer in hidden]
    outputs = {"embeddings": states[0], "hidden": torch.stack(states[1:])}
    if attentions is not None:
        pairs = real[:, :, None] & real[:, None, :]
        scores = [layer.permute(0, 2, 3, 1)[pairs] for layer in attentions]
        outputs["attentions"] = torch.stack(scores)
    return outputs
