"""One training by two processes: as by one but for rounding, and the same bytes after a kill."""

import multiprocessing
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.interrupts import MESSAGE
from pipeline_lib.shards.training_records import Settings, StudentRecord, TrainingRecord
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training import loop
from pipeline_lib.training.runs import Prepared, TrainingSpec, train_or_find
from tests.interrupted import start_stage

pytest.importorskip("accelerate", reason="accelerate is not installed (extra `parallel`)")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("store_home")]


@dataclass(frozen=True)
class Curve(TrainingSpec):
    """A small network with dropout, whose batches of three leave the second process one row.

    :ivar fault: what happens in the second process at its fifth loss, once.
    """

    kind: ClassVar[str] = "students"
    record: ClassVar[type[TrainingRecord]] = StudentRecord
    folder: Path
    fault: str = "none"
    processes: int = 2
    rate: float = 0.01
    seed: int = 1
    device: str = "cpu"

    @property
    def settings(self) -> Settings:
        fixed = {"warmup": 0.0, "epochs": 2, "max_steps": None, "evaluate_every": 3}
        fixed |= {"clip_norm": 1.0, "weight_decay": 0.0, "precision": "float32"}
        return Settings("adam", self.rate, "constant", batch_size=3, seed=self.seed, **fixed)

    @property
    def rows(self) -> int:
        return 16

    @property
    def made_from(self) -> Any:
        return "curve"

    def prepare(self) -> Prepared:
        loop.CHECKPOINT_SECONDS = -1.0
        x = np.linspace(-1.0, 1.0, self.rows, dtype=np.float32)
        words, offsets = np.ones(self.rows, np.int32), np.arange(self.rows + 1)
        sentences = Sentences(words, offsets, {"x": x, "y": x * x}, 0)
        torch.manual_seed(self.seed)
        model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
        steps = 0

        def loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
            nonlocal steps
            steps += 1
            if os.environ["RANK"] == "1" and steps == 5:
                self.fail()
            return (model(batch["x"][:, None])[:, 0] - batch["y"]).pow(2).mean()

        def evaluate(model: torch.nn.Module) -> float:
            assert os.environ["RANK"] == "0"
            return -loss(model, {"x": torch.tensor(x), "y": torch.tensor(x * x)}).item()

        def finish(folder: Path, _: Any) -> dict[str, Any]:
            save_file(model.state_dict(), folder / "model.safetensors")
            return {"rows": self.rows}

        return Prepared(model, LengthSorted(sentences, 3, self.seed), loss, evaluate, finish)

    def fail(self) -> None:
        try:
            (self.folder / "failed").touch(exist_ok=False)
        except FileExistsError:
            return
        if self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "waits":
            time.sleep(60)
        if self.fault == "error":
            raise PotstillError("the fifth step failed.")


def in_store(home: Path, monkeypatch: pytest.MonkeyPatch, spec: Curve) -> tuple[str, list[int]]:
    """Train with a state folder of its own; return the result's digest, and the steps reported."""
    monkeypatch.setenv("POTSTILL_HOME", str(home))
    steps: list[int] = []
    train_or_find(spec, lambda message: steps.append(message[0]))
    return sha256_folder(spec.result.folder), steps


def test_a_training_that_was_killed_ends_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = Curve(tmp_path, "killed")
    with pytest.raises(PotstillError, match="a worker process was killed"):
        in_store(tmp_path / "disturbed", monkeypatch, spec)
    resumed, steps = in_store(tmp_path / "disturbed", monkeypatch, spec)
    # Before the kill, four of twelve steps were done.
    assert steps[0] == 5
    assert not spec.result.checkpoint.exists()
    assert resumed == in_store(tmp_path / "whole", monkeypatch, spec)[0]


def test_an_error_in_one_process_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = Curve(tmp_path, "error")
    with pytest.raises(PotstillError, match=r"^the fifth step failed\.$"):
        in_store(tmp_path / "home", monkeypatch, spec)
    assert multiprocessing.active_children() == []
    assert spec.result.checkpoint.exists() and not spec.result.folder.exists()


STAGE = """
from pathlib import Path
from pipeline_lib.base.entry import run_stage
from pipeline_lib.training.runs import train_or_find
from tests.training.test_parallel import Curve

def main() -> None:
    train_or_find(Curve(Path.cwd(), "waits"), lambda message: None)

if __name__ == "__main__":
    run_stage(main)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all(tmp_path: Path, store_home: Path, number: signal.Signals) -> None:
    process = start_stage(tmp_path, STAGE)
    try:
        while not (tmp_path / "failed").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
        if number == signal.SIGINT:
            # As a terminal does: to all processes of the group.
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        # Ends when the last process that may write has ended.
        _, printed = process.communicate(timeout=20)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # Python itself warns of what a killed process has left to clean up.
    assert "Traceback" not in printed
    if number == signal.SIGINT:
        assert printed.split("\n")[0] == MESSAGE
    assert len(list((store_home / "checkpoints").glob("*.safetensors"))) == 1
