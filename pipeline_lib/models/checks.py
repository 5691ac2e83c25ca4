"""What a model's folder must have before it is used, and what its labels say."""

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lib.base.errors import PotstillError

if TYPE_CHECKING:
    import numpy as np


def require_model(folder: Path) -> None:
    """Check that there is a model in ``folder``."""
    if not (folder / "config.json").exists():
        raise PotstillError(f"{folder}: no model here. Run `dvc repro` to train it.")


def check_outputs(folder: Path | str, outputs: "np.ndarray") -> "np.ndarray":
    """Return a model's outputs, float (texts, values), unless one is NaN or infinite.

    :param folder: the model's.
    """
    import numpy as np

    broken = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    if broken.size:
        raise PotstillError(
            f"{folder}: its outputs are NaN or infinite (for {broken.size:,} of {len(outputs):,} "
            f"texts, the first is number {broken[0] + 1}). Its weights are damaged or too large: "
            "put others there, or train it again, with a lower learning rate."
        )
    return outputs


def check_names(folder: Path, names: list[str], wanted: list[str]) -> None:
    """Check that a model's classes are the task's, in the same order."""
    if list(names) != list(wanted):
        raise PotstillError(
            f"{folder}: its classes are {', '.join(names)}; the task's {', '.join(wanted)}. Put "
            "the task's `labels` in params.yaml into the model's order, or train it again."
        )
