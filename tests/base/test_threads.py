"""One thread for torch, without importing torch where nothing else does."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline_lib.base import threads
from pipeline_lib.base.threads import single_thread, usable_cores

ROOT = Path(__file__).parents[2]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_torch_that_is_imported_is_given_its_threads_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with single_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_torch_that_is_imported_within_has_one_thread() -> None:
    found = run(
        "import os; os.environ['OMP_NUM_THREADS'] = '2'\nfrom pipeline_lib.base.threads import single_thread\nwith "
        "single_thread():\n    import torch; print(torch.get_num_threads())\nprint(torch.get_num_threads(), "
        "os.environ['OMP_NUM_THREADS'])"
    )
    assert found.split() == ["1", "2", "2"]


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
    monkeypatch.setattr(threads, "CGROUP", tmp_path)
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert usable_cores() == expected
