"""Which processor computed a result: named, stored with it, and no part of what identifies it."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import torch

from pipeline_lib.base import devices, processor
from pipeline_lib.base.devices import (
    resolve_batch_tokens,
    resolve_device,
    resolve_precision,
    resolve_training_precision,
    runs_lstm_in_bfloat16,
)
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.model_config import position_count
from pipeline_lib.base.processor import computed_on, cpu_name, single_thread, usable_cores, used_accelerators


def test_what_a_result_was_computed_on(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: Fast CPU: 2 GHz\n")
    assert cpu_name(info) == "Fast CPU: 2 GHz"
    assert cpu_name(tmp_path / "absent")
    assert computed_on("cpu") == f"{cpu_name()}, torch {torch.__version__}"


def test_accelerators_are_named_if_their_memory_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    names, peaks = ["Card B", "Card A", "Card C"], [1, 4096, 0]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", peaks.__getitem__)
    monkeypatch.setattr(torch.cuda, "get_device_name", names.__getitem__)
    assert used_accelerators() == ["Card A", "Card B"]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert used_accelerators() == []
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 4096)
    assert used_accelerators() == [f"{cpu_name()} (mps)"]


ROOT = Path(__file__).parents[2]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_torch_has_one_thread_within() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with single_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    found = run(
        "import os; os.environ['OMP_NUM_THREADS'] = '2'\nfrom pipeline_lib.base.processor import single_thread\nwith "
        "single_thread():\n    import torch; print(torch.get_num_threads())\nprint(torch.get_num_threads(), "
        "os.environ['OMP_NUM_THREADS'])"
    )
    assert found.split() == ["1", "2", "2"]


def test_stages_without_a_model_import_no_torch() -> None:
    modules = ["corpora.augmentation.transfer_sets", "shards.engine.local"]
    modules += ["corpora.tasks.preparation", "corpora.wikipedia.sentence_sets"]
    imports = ", ".join(f"pipeline_lib.{module}" for module in modules)
    accelerators = "from pipeline_lib.base.processor import used_accelerators as used"
    assert run(f"import sys, {imports}; {accelerators}; print(used(), 'torch' in sys.modules)") == "[] False"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "1600000 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ],
)
def test_usable_cores(files: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(processor, "CGROUP", tmp_path)
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert usable_cores() == expected


CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_formats_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for amx, avx512 in product((True, False), repeat=2):
        monkeypatch.setattr(devices.torch.cpu, "_is_amx_tile_supported", lambda amx=amx: amx)
        monkeypatch.setattr(devices.torch.cpu, "_is_avx512_bf16_supported", lambda avx512=avx512: avx512)
        expected = "bfloat16" if amx or avx512 else "float32"
        assert resolve_precision("auto", CPU) == resolve_training_precision("auto", CPU) == expected
        assert resolve_precision("float16", CPU) == "float16"
    monkeypatch.setattr(devices.torch.cuda, "is_bf16_supported", lambda **_: False)
    assert resolve_precision("auto", CUDA) == "float16"
    assert resolve_training_precision("auto", CUDA) == "float32"
    # Emulated bfloat16 does not count.
    monkeypatch.setattr(devices.torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert resolve_precision("auto", CUDA) == "float16"
    assert resolve_batch_tokens(None, CPU) < resolve_batch_tokens(None, CUDA)
    assert resolve_batch_tokens(77, CUDA) == 77
    # The probe draws nothing at random.
    before = torch.get_rng_state()
    runs_lstm_in_bfloat16.__wrapped__("cpu")
    assert torch.equal(before, torch.get_rng_state())
    # Set by importing the module, so in worker processes too.
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.mem_efficient_sdp_enabled()
    # An absent device is named, and one that computes nothing.
    with pytest.raises(PotstillError, match="device: 'cuda:77' is not available here"):
        resolve_device("cuda:77")
    for name in ("meta", "tpu", "cpu:1", "cuda:x", ""):
        with pytest.raises(PotstillError, match=r"is not one of auto, cpu, cuda, cuda:<number>, mps"):
            resolve_device(name)


@pytest.mark.parametrize(
    ("runs", "recurrent", "auto"), [(True, True, "bfloat16"), (False, True, "float32"), (False, False, "bfloat16")]
)
def test_formats_of_training_students(monkeypatch: pytest.MonkeyPatch, runs: bool, recurrent: bool, auto: str) -> None:
    monkeypatch.setattr(devices.torch.cpu, "_is_amx_tile_supported", lambda: True)
    monkeypatch.setattr(devices, "runs_lstm_in_bfloat16", lambda _: runs)
    assert resolve_training_precision("auto", CPU, recurrent) == auto
    assert resolve_training_precision("float32", CPU, recurrent) == "float32"
    if auto == "bfloat16":
        assert resolve_training_precision("bfloat16", CPU, recurrent) == "bfloat16"
        return
    with pytest.raises(PotstillError, match=r"precision: bfloat16, .*LSTM.*auto or float32"):
        resolve_training_precision("bfloat16", CPU, recurrent)


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
