"""A teacher that runs beside its student in training (Jiao et al. 2020, TinyBERT)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.networks.imitation import token_states
from pipeline_lib.networks.student import StudentNetwork
from pipeline_lib.teachers.model import load_teacher
from pipeline_lib.text.pieces import Pieces, model_inputs


@dataclass(frozen=True)
class RunningTeacher:
    """A fine-tuned teacher, and which of its layers go with the student's, counted from 1.

    :ivar encoder: transformers' model below the teacher's head.
    :ivar scores: whether its attention is compared too.
    """

    encoder: Any
    layers: Sequence[int]
    scores: bool

    @classmethod
    def load(
        cls,
        folder: Path,
        layers: Sequence[int],
        student: StudentNetwork,
        pieces: Pieces,
        device: str,
        scores: bool,
    ) -> Self:
        """Load the teacher in ``folder``, and have the student give what it is asked for.

        :param pieces: the student's.
        :raises DistilleryError: if the two read different word pieces, or one of them keeps its
            attention to itself.
        """
        from pipeline_lib.networks.attention_scores import give_scores

        teacher = load_teacher(folder, device, "float32")
        own, other = teacher.pieces.tokenizer.get_vocab(), pieces.tokenizer.get_vocab()
        if own != other:
            raise DistilleryError(
                f"{folder}: the teacher has {len(own):,} word pieces and the student {len(other):,}"
                " others, so their states cannot be compared. Take a student whose `model` reads "
                "the same, or leave out `teacher_runs`."
            )
        encoder = teacher.model.base_model.requires_grad_(False)
        if scores:
            try:
                give_scores(encoder)
                student.encoder.give_scores()
            except ValueError as error:
                raise DistilleryError(
                    f"{folder}: objective.attentions compares the teacher's attention with the "
                    f"student's, and {error}. Leave the term out, or use another model."
                ) from error
        return cls(encoder, layers, scores)

    @property
    def width(self) -> int:
        """Values of a layer's state."""
        return int(self.encoder.config.hidden_size)

    def targets(self, batch: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Return ``teacher_embeddings``, ``teacher_hidden`` and, if wanted, ``teacher_attentions``.

        Shapes: :func:`~pipeline_lib.networks.imitation.token_states`.
        """
        with torch.no_grad():
            found = self.encoder(
                **model_inputs(batch), output_hidden_states=True, output_attentions=self.scores
            )
        hidden = [found.hidden_states[layer] for layer in (0, *self.layers)]
        scores = [found.attentions[n - 1] for n in self.layers] if self.scores else None
        states = token_states(hidden, scores, batch)
        return {f"teacher_{name}": values for name, values in states.items()}
