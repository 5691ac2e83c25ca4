"""Device and number format of a computation: resolved once, recorded with every result."""

import re
from functools import cache

import torch

from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.processor import single_thread

# cuDNN's attention, which torch prefers on new cards, compiles a plan for every shape that it has
# not seen, and batches here come in hundreds of lengths.  On an H200 (torch 2.11) MiniLM's forward
# and backward passes ran at 4.1 per second with it, at 42 without (batches of 32, 20-128 tokens).
torch.backends.cuda.enable_cudnn_sdp(False)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def resolve_device(name: str) -> torch.device:
    """Return the device called ``name``; ``auto`` is CUDA if available, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        # torch accepts more names, such as `meta`, a device that computes nothing.
        raise PotstillError(f"device: {name!r} is not one of auto, cpu, cuda, cuda:<number>, mps.")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise PotstillError(f"device: {name!r} is not available here ({reason_of(error)}). Use auto or cpu.") from error
    return device


def resolve_precision(name: str, device: torch.device) -> str:
    """Resolve ``auto`` to a number format for ``device``; return any other name unchanged.

    On CUDA: bfloat16, or float16 on cards without it.  On a CPU: bfloat16 only if the processor has
    instructions to multiply it, AMX tiles or AVX-512 BF16 (2.5 times the float32 rate on an AMD
    EPYC, family 25, model 17).  Without them it ran at half the float32 rate.
    """
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bfloat16" if _has_bfloat16_units() else "float16"
    if device.type == "cpu" and _multiplies_bfloat16():
        return "bfloat16"
    return "float32"


def resolve_training_precision(name: str, device: torch.device, recurrent: bool = False) -> str:
    """Return the number format to train in: as :func:`resolve_precision`, but never float16.

    float16 gradients underflow without loss scaling.  ``auto`` is float32 where an LSTM cannot run in bfloat16.
    """
    resolved = resolve_precision(name, device)
    if resolved == "float16":
        return "float32"
    if resolved != "bfloat16" or not recurrent or runs_lstm_in_bfloat16(device.type):
        return resolved
    if name == "auto":
        return "float32"
    raise PotstillError(
        f"precision: bfloat16, but torch cannot run an LSTM in it on this machine's {device.type}: its processor has "
        "no bfloat16 units. Set the optimiser's precision to auto or float32, or use another device."
    )


@cache
def runs_lstm_in_bfloat16(device_type: str) -> bool:
    """Return whether an LSTM can be trained in bfloat16, tested once with a tiny one.

    Other layers fall back to slower kernels; oneDNN refuses to run an LSTM on a CPU without bfloat16 units.
    """
    # Initialising its weights must not advance the seeded generator.
    with torch.random.fork_rng(devices=[]):
        lstm = torch.nn.LSTM(1, 1).to(device_type)
    try:
        # In one thread, so that this process can be forked afterwards.
        with single_thread(), torch.enable_grad(), torch.autocast(device_type, torch.bfloat16):
            lstm(torch.zeros(1, 1, 1, device=device_type))[0].sum().backward()
    except RuntimeError:
        return False
    return True


def _multiplies_bfloat16() -> bool:
    return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()


def _has_bfloat16_units() -> bool:
    # By default torch counts emulated bfloat16 too, which is slower than float16.
    return torch.cuda.is_bf16_supported(including_emulation=False)


def resolve_batch_tokens(wanted: int | None, device: torch.device) -> int:
    """Return ``wanted``, or a default: batches that fit in a core's cache, or that fill a GPU."""
    if wanted is not None:
        return wanted
    return 1024 if device.type == "cpu" else 65536
