"""Which processor computed a result.

Floating-point sums differ in their last digits between kinds of processor and between versions of torch.  The
guarantee is the same bytes on the same kind of processor with the same versions, whatever the number of workers.
The processor is not part of any key: where two machines share a store, one uses what the other computed as it is.
Instead it is recorded beside the result: in the manifest, for every shard of teacher outputs, and in the
``training.json`` of teachers and students. These records are part of DVC's outputs.  They are not part of any key,
except that a student which starts from another model depends on that model's whole folder.
"""

import platform
import sys
from functools import lru_cache
from pathlib import Path


def cpu_name(info: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's model name, or the architecture if the system does not report it."""
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").split("\n"):
            if line.lower().startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def computed_on(device: str) -> str:
    """Return what a result was computed on: the processor or accelerator, and torch's version.

    :param device: as torch names it: ``cpu``, ``cuda:0``, ``mps``.
    """
    import torch

    cuda = device.startswith("cuda")
    name = torch.cuda.get_device_name(device) if cuda else cpu_name()
    kind = f"{name} (mps)" if device.startswith("mps") else name
    return f"{kind}, torch {torch.__version__}"


def used_accelerators() -> list[str]:
    """Return the names of the accelerators whose memory this process has used, sorted.

    A process that has not imported torch has used none; it is not imported for this.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    numbers = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    used = [number for number in numbers if torch.cuda.max_memory_allocated(number)]
    names = {torch.cuda.get_device_name(number) for number in used}
    if torch.backends.mps.is_available() and torch.mps.driver_allocated_memory():
        names.add(f"{cpu_name()} (mps)")
    return sorted(names)
