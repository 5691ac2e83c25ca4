"""Training the head above a frozen encoder, whose vectors are computed once, not every epoch.

Barkan et al. 2019, section 4.2 (DSE with ψ frozen).
"""

from dataclasses import replace

import torch

from pipeline_lib.models.networks.student import ENCODED, StudentNetwork
from pipeline_lib.models.students.sentence_encoder import encode_sentences
from pipeline_lib.text.ragged import Sentences


def with_vectors(model: StudentNetwork, sentences: Sentences, device: torch.device) -> Sentences:
    """Return the sentences with the encoder's vectors for them, float32 (rows, width), in memory.

    They are added to the targets under the names ``ENCODED`` of
    :mod:`pipeline_lib.models.networks.student`, so that every batch has them.
    """
    sides = [replace(sentences, second=None)]
    sides += [] if sentences.second is None else [sentences.second]
    vectors = [encode_sentences(model.encoder, side, device) for side in sides]
    encoded = dict(zip(ENCODED, vectors, strict=False))
    return replace(sentences, targets={**sentences.targets, **encoded})
