"""Which processor computed a result.

Floating-point sums differ in their last digits between kinds of processor and between versions of
torch.  The guarantee is the same bytes on the same kind of processor with the same versions,
whatever the number of workers.  The processor is not part of any key: where two machines share a
store, one uses what the other computed as it is.  Instead it is recorded beside the result: in the
manifest, for every shard of teacher outputs, and in the ``training.json`` of teachers and students.
These records are part of DVC's outputs.  They are not part of any key, except that a student which
starts from another model depends on that model's whole folder.
"""

import platform
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
