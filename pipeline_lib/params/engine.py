"""The engine of params.yaml: who computes.  It moves no byte of any result."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.params.base import Section


class LocalProcesses(Section):
    """Worker processes of this machine: `workers` on a CPU, one per accelerator elsewhere."""

    kind: Literal["local"]


class RayCluster(Section):
    """A Ray cluster: the one at ``address``, or (null) one that is started on this machine."""

    kind: Literal["ray"]
    address: str | None


EngineSettings = Annotated[LocalProcesses | RayCluster, Field(discriminator="kind")]
