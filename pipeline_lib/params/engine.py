"""The engine of params.yaml: what runs the jobs.

It changes no byte of any result, except for what several processes train together.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pipeline_lib.params.base import Positive, Section


class LocalProcesses(Section):
    """Worker processes on this machine: `workers` on a CPU, `per_accelerator` on each GPU.

    Several share a GPU's memory.  A teacher, or an encoder of sentence vectors, is trained by one
    process, or by ``per_training`` of them together, each on a GPU of its own.
    """

    kind: Literal["local"]
    per_accelerator: Positive = 1
    per_training: Positive = 1


class RayCluster(Section):
    """A Ray cluster: the one at ``address``, or (null) one that is started on this machine."""

    per_training: ClassVar[int] = 1
    kind: Literal["ray"]
    address: str | None


EngineSettings = Annotated[LocalProcesses | RayCluster, Field(discriminator="kind")]
