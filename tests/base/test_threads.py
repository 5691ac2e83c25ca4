"""One thread for torch, without importing torch where nothing else does."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline_lib.base.threads import single_thread

ROOT = Path(__file__).parents[2]


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
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
        "import os; os.environ['OMP_NUM_THREADS'] = '2'\n"
        "from pipeline_lib.base.threads import single_thread\n"
        "with single_thread():\n"
        "    import torch; print(torch.get_num_threads())\n"
        "print(torch.get_num_threads(), os.environ['OMP_NUM_THREADS'])"
    )
    assert found.split() == ["1", "2", "2"]


@pytest.mark.parametrize(
    "module",
    ["augmentation.transfer_sets", "engine.local", "tasks.preparation", "wikipedia.sentence_sets"],
)
def test_stages_without_a_model_import_no_torch(module: str) -> None:
    found = run(f"import sys, pipeline_lib.{module}; print('torch' in sys.modules)")
    assert found == "False"
