"""Which processor computed a result: named, stored with it, and no part of what identifies it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline_lib.base.processor import computed_on, cpu_name, used_accelerators


def test_cpu_name_is_read_where_the_system_tells(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: Fast CPU: 2 GHz\n")
    assert cpu_name(info) == "Fast CPU: 2 GHz"
    assert cpu_name(tmp_path / "absent")


def test_what_a_result_was_computed_on() -> None:
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


def test_torch_is_not_imported_to_find_none() -> None:
    code = (
        "import sys; from pipeline_lib.base.processor import used_accelerators; "
        "assert used_accelerators() == [] and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
