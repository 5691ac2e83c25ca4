import pytest
import torch

from pipeline_lib import devices
from pipeline_lib.devices import (
    resolve_batch_tokens,
    resolve_device,
    resolve_precision,
    resolve_training_precision,
)
from pipeline_lib.errors import DistilleryError

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_an_absent_device_is_named() -> None:
    with pytest.raises(DistilleryError, match="device: 'cuda:77' is not available here"):
        resolve_device("cuda:77")


@pytest.mark.parametrize(("amx", "expected"), [(True, "bfloat16"), (False, "float32")])
def test_a_cpu_takes_bfloat16_with_amx_only(
    monkeypatch: pytest.MonkeyPatch, amx: bool, expected: str
) -> None:
    monkeypatch.setattr(devices.torch.cpu, "_is_amx_tile_supported", lambda: amx)
    assert resolve_precision("auto", CPU) == expected
    assert resolve_training_precision("auto", CPU) == expected
    assert resolve_precision("float16", CPU) == "float16"


def test_a_card_without_bfloat16_infers_in_float16_and_trains_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices.torch.cuda, "is_bf16_supported", lambda: False)
    assert resolve_precision("auto", CUDA) == "float16"
    assert resolve_training_precision("auto", CUDA) == "float32"


def test_batches_fit_the_device_unless_they_are_given() -> None:
    assert resolve_batch_tokens(None, CPU) < resolve_batch_tokens(None, CUDA)
    assert resolve_batch_tokens(77, CUDA) == 77
