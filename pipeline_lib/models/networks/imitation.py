"""Networks that exist only in training: a student beside its teacher's layers, and several tasks' students in one.

Jiao et al. 2020, section 3.1 (TinyBERT), compare layers token by token; the tensors are too large to store, so they
are recomputed for every batch, with the teacher in memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import torch
from torch import nn

from .layers import inside
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


class SharingModels(nn.Module):
    """Models that share weights, which are registered here once.

    :ivar members: the models; torch does not look for modules in a tuple.
    """

    members: tuple[nn.Module, ...]

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode, for the members too."""
        for member in self.members:
            member.train(mode)
        return super().train(mode)


HEAD = ("hidden", "logits")
"""The parts of a student that are specific to its task."""


class JointNetwork(SharingModels):
    """Students of several tasks that share everything but their heads.

    Liu 2020, section 4.1.2: "shared" layers, and above them a ReLU layer and the outputs of each task.  The head of
    a pair task takes the comparison of both sentences, so its first layer may be wider.

    :ivar students: the networks, in the order of the tasks.  Each is an ordinary student that
        shares its weights with this network: training one updates all.
    """

    def __init__(self, students: Iterable[StudentNetwork]) -> None:
        """Join untrained students of one architecture; each shared part is taken from the first that has it."""
        super().__init__()
        self.shared, self.heads = nn.ModuleDict(), nn.ModuleList()
        joined = []
        for student in students:
            layers = dict(student.named_children())
            self.heads.append(nn.ModuleDict({name: layers.pop(name) for name in HEAD}))
            for name, layer in layers.items():
                if name not in self.shared:
                    self.shared[name] = layer
                setattr(student, name, self.shared[name])
            joined.append(student)
        self.students = self.members = tuple(joined)
