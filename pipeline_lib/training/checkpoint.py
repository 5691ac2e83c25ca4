"""Checkpoints: everything a run's next step depends on, in one safetensors file."""

import json
import math
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path


@dataclass
class Progress:
    """A run's progress: what a checkpoint holds besides the tensors.

    ``history`` has one entry per evaluation on dev: the fields of
    :class:`~pipeline_lib.shards.training_records.Evaluation`.

    :ivar best_merit: of the evaluation at ``best_step``, whose weights are kept: its score, or
        minus its loss if that chooses.
    """

    step: int = 0
    best_merit: float = -math.inf
    best_step: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class State:
    """A model in training, its optimiser and progress, and the best weights so far."""

    model: torch.nn.Module
    optimiser: torch.optim.Optimizer
    progress: Progress
    best: dict[str, torch.Tensor] = field(default_factory=dict)

    def keep_best(self) -> None:
        """Keep a copy of the model's weights as the best so far."""
        self.best = {name: t.detach().clone() for name, t in self.model.state_dict().items()}

    def save(self, path: Path) -> None:
        """Write the state, atomically."""
        tensors = {f"model.{n}": t for n, t in self.model.state_dict().items()}
        tensors |= {f"best.{n}": t for n, t in self.best.items()}
        states = self.optimiser.state_dict()["state"]
        tensors |= {f"optimiser.{i}.{n}": t for i, s in states.items() for n, t in s.items()}
        tensors |= {f"random.{n}": t for n, t in generator_states(self._device).items()}
        contiguous = {name: t.detach().contiguous().clone() for name, t in tensors.items()}
        progress = json.dumps(vars(self.progress))
        metadata = {"progress": progress, "checksums": json.dumps(_checksums(contiguous, progress))}
        with atomic_path(path) as temporary:
            save_file(contiguous, temporary, metadata)

    def load(self, path: Path) -> None:
        """Load the state in ``path``, if there is one."""
        try:
            with safe_open(path, "pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                metadata = file.metadata()
            if json.loads(metadata["checksums"]) != _checksums(tensors, metadata["progress"]):
                raise ValueError("a checksum does not match")
            self.progress = Progress(**json.loads(metadata["progress"]))
        except FileNotFoundError:
            # None yet, or another process has just finished the same run.
            return
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise PotstillError(
                f"{path}: damaged checkpoint ({error}). Delete it and run again: this training starts over."
            ) from error
        self.model.load_state_dict(_below(tensors, "model."))
        self.best = _below(tensors, "best.")
        _load_optimiser(self.optimiser, _below(tensors, "optimiser."))
        set_generators(self._device, _below(tensors, "random."))

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device


def generator_states(device: torch.device) -> dict[str, torch.Tensor]:
    """Return the random generators' states used by a run on ``device``, by device type."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    return states


def set_generators(device: torch.device, states: dict[str, torch.Tensor]) -> None:
    """Set the random generators used by a run on ``device``, and no others."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
    elif device.type == "mps" and "mps" in states:
        torch.mps.set_rng_state(states["mps"])


def _checksums(tensors: dict[str, torch.Tensor], progress: str) -> dict[str, int]:
    """Return a checksum of each tensor and of the progress: a flipped bit changes one."""
    sums = {"": zlib.crc32(progress.encode())}
    for name, tensor in tensors.items():
        content = tensor.cpu().reshape(-1).view(torch.uint8).numpy()
        sums[name] = zlib.crc32(content, zlib.crc32(f"{tensor.dtype}{[*tensor.shape]}".encode()))
    return sums


def _below(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _load_optimiser(optimiser: torch.optim.Optimizer, flat: dict[str, torch.Tensor]) -> None:
    states: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in flat.items():
        index, key = name.split(".", 1)
        states.setdefault(int(index), {})[key] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": states})
