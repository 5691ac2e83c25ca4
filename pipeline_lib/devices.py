"""Which device computes, and in which number format: resolved once, recorded with every result."""

import torch

from pipeline_lib.errors import DistilleryError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def resolve_device(name: str) -> torch.device:
    """Return the device of that name; ``auto`` is CUDA where there is one, else the CPU.

    :raises DistilleryError: if the name is unknown or the device is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise DistilleryError(
            f"device: {name!r} is not available here ({str(error).splitlines()[0]}). Use auto or "
            "cpu."
        ) from error
    return device


def resolve_precision(name: str, device: torch.device) -> str:
    """Return the number format that ``auto`` stands for on ``device``; others stand for themselves.

    On CUDA bfloat16, or float16 on cards before it.  On a CPU bfloat16 only with AMX tiles: without
    them its matrix products ran at about half the float32 rate (benchmarks/results).
    """
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    if device.type == "cpu" and torch.cpu._is_amx_tile_supported():
        return "bfloat16"
    return "float32"


def resolve_training_precision(name: str, device: torch.device) -> str:
    """Return the number format to train in, as :func:`resolve_precision`, but never float16.

    Its gradients underflow without loss scaling.
    """
    resolved = resolve_precision(name, device)
    return "float32" if resolved == "float16" else resolved


def resolve_batch_tokens(wanted: int | None, device: torch.device) -> int:
    """Return ``wanted``, or what suits: batches that stay in a core's cache, or that fill a GPU."""
    if wanted is not None:
        return wanted
    return 1024 if device.type == "cpu" else 65536
