"""The engine of params.yaml: what runs the jobs.  It changes no byte of any result."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.params.base import Positive, Section


class LocalProcesses(Section):
    """Worker processes on this machine: `workers` on a CPU, `per_accelerator` on each GPU, sharing its memory."""

    kind: Literal["local"]
    per_accelerator: Positive = 1


class RayCluster(Section):
    """A Ray cluster: the one at ``address``, or (null) one that is started on this machine."""

    kind: Literal["ray"]
    address: str | None


EngineSettings = Annotated[LocalProcesses | RayCluster, Field(discriminator="kind")]
