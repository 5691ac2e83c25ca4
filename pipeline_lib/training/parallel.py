"""One training that several processes compute together, each its share of every batch.

Every process holds the whole model and prepares the same data.  Before each step the gradients are added up, so that
all take the step which one process would take.  The main process alone scores the model on dev, saves checkpoints
and stores the result.  Sums are rounded in another order than in one process, and each process draws dropout of its
own: the bytes depend on the number of processes, which is part of the training's key.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.shards.engine.local import LocalEngine, accelerators
from pipeline_lib.shards.engine.protocol import Report
from pipeline_lib.training.loop import Batch, Batches, Score
from pipeline_lib.training.shares import shares_of

if TYPE_CHECKING:
    from pipeline_lib.training.runs import Prepared, TrainingSpec

PATIENCE = timedelta(days=30)
"""How long a process waits for the others: one that has died is noticed otherwise."""
GRACE_SECONDS = 10.0
"""How long a process waits to be ended after another has died."""
WEIGHT = "share"
"""The name, in a batch, of the weight of a process's share."""


@dataclass(frozen=True)
class Member:
    """One of the processes that compute a training together.

    :ivar rank: its number; the first is the main process; :ivar count: how many there are.
    :ivar device: where it computes, as torch names it; :ivar meeting: a new file to meet at.
    """

    rank: int
    count: int
    seed: int
    device: str
    meeting: Path

    @property
    def main(self) -> bool:
        """Whether this process scores the model, and stores checkpoints and results."""
        return self.rank == 0

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Join the other processes, and leave them when all are done."""
        from accelerate import PartialState

        # Each process sees its own accelerator only, which is therefore the first.
        numbers = {"RANK": self.rank, "WORLD_SIZE": self.count, "LOCAL_RANK": 0}
        numbers |= {"LOCAL_WORLD_SIZE": self.count}
        os.environ |= {name: str(number) for name, number in numbers.items()}
        with _reported():
            state = PartialState(
                cpu=self.device == "cpu",
                init_method=self.meeting.as_uri(),
                timeout=PATIENCE,
                rank=self.rank,
                world_size=self.count,
            )
        yield
        with _reported():
            state.wait_for_everyone()
        state.destroy_process_group()

    def share(self, run: "Prepared") -> "Prepared":
        """Return a run that computes this process's share of each batch, and the common score."""

        def loss(model: Any, batch: Batch) -> torch.Tensor:
            return run.loss(model, batch) * batch[WEIGHT]

        def evaluate(model: Any) -> Score:
            return self._from_main(run.evaluate(model) if self.main else None)

        batches = SharedBatches(run.batches, self.rank, self.count)
        return replace(run, batches=batches, loss=loss, evaluate=evaluate)

    def begin(self, step: int) -> None:
        """Check that all processes begin at the same step."""
        if step != self._from_main(step):
            raise PotstillError("another run of the same training has just written its checkpoint. Run again.")

    def seed_step(self, step: int) -> None:
        """Seed dropout by process and step: a checkpoint need not hold every process's state."""
        [seed] = np.random.SeedSequence([self.seed, self.rank, step]).generate_state(1)
        torch.manual_seed(int(seed))

    def add_up(self, model: torch.nn.Module, loss: torch.Tensor) -> torch.Tensor:
        """Replace the gradients by their sums over all processes; return the sum of the losses."""
        from accelerate.utils import reduce

        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        flat = torch.cat([loss.detach().reshape(1), *(g.reshape(-1) for g in gradients)])
        with _reported():
            total, *sums = reduce(flat, "sum").split([1, *(g.numel() for g in gradients)])
        for gradient, added in zip(gradients, sums, strict=True):
            gradient.copy_(added.view_as(gradient))
        return total[0]

    def _from_main(self, value: Any) -> Any:
        from accelerate.utils import broadcast_object_list

        with _reported():
            return broadcast_object_list([value])[0]


@contextmanager
def _reported() -> Iterator[None]:
    """Leave time for the engine to report that another process has died, which fails here too."""
    try:
        yield
    except RuntimeError:
        time.sleep(GRACE_SECONDS)
        raise


@dataclass(frozen=True)
class SharedBatches:
    """The batches of a training of which one process computes its shares."""

    batches: Batches
    rank: int
    count: int

    def epoch(self, number: int) -> Any:
        """Return the row numbers of each whole batch of epoch ``number``."""
        return self.batches.epoch(number)

    def collate(self, rows: np.ndarray) -> Batch:
        """Return the tensors of this process's share of a batch, and its weight."""
        share = shares_of(self.batches, rows, self.count)[self.rank]
        return {**self.batches.collate(share.rows), WEIGHT: share.weight}


def train_together(
    train: "Callable[[tuple[TrainingSpec, Member], Report], None]", spec: "TrainingSpec", report: Report
) -> None:
    """Call ``train`` with a training and each of its members, in a process of its own."""
    # On a CPU each has one thread: the bytes then don't depend on the number of cores.
    cpu = spec.device == "cpu"
    devices = () if cpu else accelerators(spec.device)[: spec.processes]
    engine = LocalEngine(spec.processes, single_threaded=cpu, devices=devices, together=True)
    with TemporaryDirectory(prefix="training-") as folder:
        common = spec.processes, spec.seed, spec.device, Path(folder) / "meeting"
        jobs = [(spec, Member(rank, *common)) for rank in range(spec.processes)]
        for _ in engine.run(train, jobs, lambda _, message: report(message)):
            pass
