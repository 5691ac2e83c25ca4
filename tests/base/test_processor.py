"""Which processor computed a result: named, stored with it, and no part of what identifies it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline_lib.base import processor
from pipeline_lib.base.processor import computed_on, cpu_name, single_thread, usable_cores, used_accelerators


def test_what_a_result_was_computed_on(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: Fast CPU: 2 GHz\n")
    assert cpu_name(info) == "Fast CPU: 2 GHz"
    assert cpu_name(tmp_path / "absent")
    # What a result was computed on.
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
    # Torch that is imported within has one thread.
    found = run(
        "import os; os.environ['OMP_NUM_THREADS'] = '2'\nfrom pipeline_lib.base.processor import single_thread\nwith "
        "single_thread():\n    import torch; print(torch.get_num_threads())\nprint(torch.get_num_threads(), "
        "os.environ['OMP_NUM_THREADS'])"
    )
    assert found.split() == ["1", "2", "2"]
    # Torch is not imported to find none.
    code = (
        "import sys; from pipeline_lib.base.processor import used_accelerators; "
        "assert used_accelerators() == [] and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "module",
    [
        "corpora.augmentation.transfer_sets",
        "shards.engine.local",
        "corpora.tasks.preparation",
        "corpora.wikipedia.sentence_sets",
    ],
)
def test_stages_without_a_model_import_no_torch(module: str) -> None:
    found = run(f"import sys, pipeline_lib.{module}; print('torch' in sys.modules)")
    assert found == "False"


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
def test_cores_are_those_of_the_affinity_and_the_quota(
    files: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(processor, "CGROUP", tmp_path)
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert usable_cores() == expected
