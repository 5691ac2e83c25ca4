"""Students whose frozen vectors are factorised after training."""

import pytest
import torch

from pipeline_lib.models.networks.student import StudentConfig, StudentNetwork
from pipeline_lib.params import student_settings
from pipeline_lib.training.distillation.factorising import factorised

VALUES = {
    "architecture": "bilstm",
    "hidden": 5,
    "classifier": 7,
    "embeddings": "static",
    "dropout": 0.1,
    "max_words": 9,
}


def logits(model: StudentNetwork) -> torch.Tensor:
    ids, lengths = torch.arange(2, 38).view(4, 9), torch.tensor([9, 3, 1, 7])
    return model.eval()(ids, lengths)["logits"]


def make(rank: int | None, known: int) -> StudentNetwork:
    """Return a student of 40 words whose vectors, of 12 values, have a rank of ``known``."""
    torch.manual_seed(1)
    model = StudentNetwork(StudentConfig(40, 12, student_settings(VALUES | {"rank": rank}), False, ["no", "yes"]))
    model.encoder.embeddings.load(torch.randn(40, known) @ torch.randn(known, 12))
    return model


def test_vectors_of_that_rank_stay_as_they_were_read() -> None:
    model = make(rank=4, known=4)
    smaller = factorised(model)
    assert smaller.config.embedding_size == 4 and smaller.encoder.embeddings.static.weight.shape == (40, 4)
    assert torch.allclose(logits(smaller), logits(model), atol=1e-5)


def test_a_lower_rank_comes_closer_the_higher_it_is() -> None:
    whole = logits(make(rank=None, known=12))
    distances = [float((logits(factorised(make(rank, 12))) - whole).abs().max()) for rank in (1, 6, 11)]
    assert distances == sorted(distances, reverse=True) and distances[-1] < 0.5 * distances[0]


@pytest.mark.parametrize("rank", [None, 12, 99])
def test_without_a_lower_rank_it_stays_whole(rank: int | None) -> None:
    model = make(rank, known=12)
    assert factorised(model) is model


def test_vectors_that_are_trained_are_not_factorised() -> None:
    with pytest.raises(ValueError, match="`rank` is of vectors that are not trained"):
        student_settings(VALUES | {"rank": 4, "embeddings": "trained"})
