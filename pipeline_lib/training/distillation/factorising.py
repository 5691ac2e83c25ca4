"""A BiLSTM's frozen word vectors, factorised after training: small, though it learnt from whole ones."""

from dataclasses import replace

import torch

from pipeline_lib.models.networks.student import StudentNetwork


def factorised(model: StudentNetwork) -> StudentNetwork:
    """Return the student with vectors of its settings' ``rank``, and the gates that read them; itself without one.

    Vectors (words, width) and gates (width, inputs) are multiplied anyway: the truncated singular value decomposition
    of their product is the closest of its rank (Eckart and Young 1936).
    """
    rank = getattr(model.config.settings, "rank", None)
    if rank is None or rank >= model.config.embedding_size:
        return model
    tensors, gates = model.state_dict(), ("encoder.ahead.weight_ih_l0", "encoder.back.weight_ih_l0")
    vectors = "encoder.embeddings.static.weight"
    rest, triangle = torch.linalg.qr(tensors[vectors].double())
    read = torch.cat([tensors[name] for name in gates]).double()
    left, values, right = torch.linalg.svd(triangle @ read.T, full_matrices=False)
    tensors[vectors] = (rest @ (left[:, :rank] * values[:rank])).float()
    tensors |= zip(gates, right[:rank].T.float().chunk(2), strict=True)
    smaller = StudentNetwork(replace(model.config, embedding_size=rank))
    smaller.load_state_dict(tensors)
    return smaller.to(tensors[vectors].device).eval()
