"""A teacher, or a pretrained model, run alongside its student (Jiao et al. 2020, TinyBERT)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.networks.imitation import Imitation, reader_of, token_states
from pipeline_lib.models.networks.layers import model_inputs
from pipeline_lib.models.networks.student import StudentNetwork
from pipeline_lib.models.networks.transformer import TransformerReader
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.teacher import load_pretrained
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import Sentences, to_device
from pipeline_lib.training.objectives import objective_loss


@dataclass(frozen=True)
class RunningTeacher:
    """A teacher, and which of its layers are matched with the student's, counted from 1.

    :ivar encoder: the transformers model below the teacher's head.
    :ivar scores: whether its attention is compared too.
    """

    encoder: Any
    layers: Sequence[int]
    scores: bool

    @classmethod
    def load(
        cls, folder: Path, layers: Sequence[int], student: StudentNetwork, pieces: Pieces, device: str, scores: bool
    ) -> Self:
        """Load a fine-tuned teacher, and make the student, which reads ``pieces``, return what is compared."""
        teacher = load_teacher(folder, device, "float32")
        running_teacher = cls(teacher.model.base_model.requires_grad_(False), layers, scores)
        return running_teacher._matched(folder, teacher.pieces, student, pieces)

    @classmethod
    def load_pretrained(
        cls, folder: Path, layers: Sequence[int], student: TransformerReader, pieces: Pieces, device: str, scores: bool
    ) -> Self:
        """Load the pretrained model in ``folder``, which has no task; else like :meth:`load`."""
        model, tokenizer = load_pretrained(folder, "AutoModel", {})
        running_teacher = cls(model.to(device).eval().requires_grad_(False), layers, scores)
        read = Pieces.of(tokenizer, model.config)
        return running_teacher._matched(folder, read, student, pieces)

    def _matched(self, folder: Path, read: Pieces, student: StudentNetwork | TransformerReader, pieces: Pieces) -> Self:
        """Return the teacher, which reads ``read``, once both models return what is compared."""
        from pipeline_lib.models.networks.attention import give_scores

        vocab, other = read.tokenizer.get_vocab(), pieces.tokenizer.get_vocab()
        if vocab != other:
            raise PotstillError(
                f"{folder}: the teacher has {len(vocab):,} word pieces and the student {len(other):,} others, so their "
                "states cannot be compared. Use a student whose `model` reads the same, or leave out `teacher_runs`."
            )
        if self.scores:
            try:
                reader = reader_of(student)
                for model in (self.encoder, reader.model):
                    give_scores(model)
                reader.gives_scores = True
            except ValueError as error:
                raise PotstillError(
                    f"{folder}: objective.attentions compares the teacher's attention with the "
                    f"student's, and {error}. Leave the term out, or use another model."
                ) from error
        return self

    @property
    def width(self) -> int:
        """The width of a layer's states."""
        return int(self.encoder.config.hidden_size)

    def targets(self, batch: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Return ``teacher_embeddings``, ``teacher_hidden`` and, if wanted, ``teacher_attentions``.

        Shapes: :func:`~pipeline_lib.models.networks.imitation.token_states`.
        """
        with torch.no_grad():
            outputs = self.encoder(**model_inputs(batch), output_hidden_states=True, output_attentions=self.scores)
        hidden = [outputs.hidden_states[layer] for layer in (0, *self.layers)]
        scores = [outputs.attentions[n - 1] for n in self.layers] if self.scores else None
        states = token_states(hidden, scores, batch)
        return {f"teacher_{name}": values for name, values in states.items()}


def held_back_loss(
    model: Imitation,
    teacher: RunningTeacher,
    sentences: Sentences,
    weights: Mapping[str, float],
    batch_size: int,
    device: torch.device,
) -> float:
    """Return the mean loss on held-out sentences of an objective whose terms compare layers only."""
    total = 0.0
    for rows in LengthSorted(sentences, batch_size, seed=0).epoch(0):
        batch = to_device(sentences.batch(rows), device)
        targets = teacher.targets(batch)
        total += len(rows) * float(objective_loss(weights, model.outputs(batch), targets))
    return total / len(sentences)
