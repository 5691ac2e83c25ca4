import pytest
import torch

from pipeline_lib.base import devices
from pipeline_lib.base.devices import (
    resolve_batch_tokens,
    resolve_device,
    resolve_precision,
    resolve_training_precision,
    runs_lstm_in_bfloat16,
)
from pipeline_lib.base.errors import PotstillError

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("name", ["meta", "tpu", "cpu:1", "cuda:x", ""])
def test_a_device_that_computes_nothing_is_refused(name: str) -> None:
    with pytest.raises(PotstillError, match=r"is not one of auto, cpu, cuda, cuda:<number>, mps"):
        resolve_device(name)


@pytest.mark.parametrize(
    ("amx", "avx512", "expected"),
    [(True, True, "bfloat16"), (True, False, "bfloat16"), (False, True, "bfloat16"), (False, False, "float32")],
)
def test_a_cpu_takes_bfloat16_where_it_multiplies_it(
    monkeypatch: pytest.MonkeyPatch, amx: bool, avx512: bool, expected: str
) -> None:
    monkeypatch.setattr(devices.torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(devices.torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    assert resolve_precision("auto", CPU) == expected
    assert resolve_training_precision("auto", CPU) == expected
    assert resolve_precision("float16", CPU) == "float16"


def test_formats_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices.torch.cuda, "is_bf16_supported", lambda **_: False)
    assert resolve_precision("auto", CUDA) == "float16"
    assert resolve_training_precision("auto", CUDA) == "float32"
    # Emulated bfloat16 does not count.
    monkeypatch.setattr(devices.torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert resolve_precision("auto", CUDA) == "float16"
    # Batches fit the device unless they are given.
    assert resolve_batch_tokens(None, CPU) < resolve_batch_tokens(None, CUDA)
    assert resolve_batch_tokens(77, CUDA) == 77
    # The probe draws nothing at random.
    before = torch.get_rng_state()
    runs_lstm_in_bfloat16.__wrapped__("cpu")
    assert torch.equal(before, torch.get_rng_state())
    # Set by importing the module, so in worker processes too.
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.mem_efficient_sdp_enabled()
    # An absent device is named.
    with pytest.raises(PotstillError, match="device: 'cuda:77' is not available here"):
        resolve_device("cuda:77")


@pytest.mark.parametrize(
    ("runs", "recurrent", "auto"), [(True, True, "bfloat16"), (False, True, "float32"), (False, False, "bfloat16")]
)
def test_students_train_in_a_format_that_their_layers_have(
    monkeypatch: pytest.MonkeyPatch, runs: bool, recurrent: bool, auto: str
) -> None:
    monkeypatch.setattr(devices.torch.cpu, "_is_amx_tile_supported", lambda: True)
    monkeypatch.setattr(devices, "runs_lstm_in_bfloat16", lambda _: runs)
    assert resolve_training_precision("auto", CPU, recurrent) == auto
    assert resolve_training_precision("float32", CPU, recurrent) == "float32"
    if auto == "bfloat16":
        assert resolve_training_precision("bfloat16", CPU, recurrent) == "bfloat16"
        return
    with pytest.raises(PotstillError, match=r"precision: bfloat16, .*LSTM.*auto or float32"):
        resolve_training_precision("bfloat16", CPU, recurrent)
