"""What is read of config.json."""

import pytest

from pipeline_lib.base.model_config import position_count

RELATIVE = {"max_position_embeddings": 9, "relative_attention": True}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512, "pad_token_id": 0}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "mpnet", "max_position_embeddings": 514}, 512),
        ({"model_type": "gpt2", "n_positions": 1024}, 1024),
        # XLNet says -1; T5 has distances instead of positions.
        ({"model_type": "xlnet", "max_position_embeddings": -1}, None),
        ({"model_type": "t5"}, None),
        # DeBERTa-v3 reads distances alone; DeBERTa-v1 may read positions, too.
        ({"max_position_embeddings": 9, "relative_attention": True, "position_biased_input": False}, None),
        ({"max_position_embeddings": 9, "relative_attention": True}, 9),
    ],
)
def test_positions_are_those_that_sentences_can_have(config: dict[str, object], expected: int | None) -> None:
    assert position_count(config) == expected
