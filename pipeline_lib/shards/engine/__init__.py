"""What runs the jobs: this machine's processes (``local``), or a Ray cluster's (``ray``)."""

import os

from pipeline_lib.params import Params
from pipeline_lib.shards.engine.protocol import Engine

CLUSTER = "POTSTILL_RAY"
"""The environment variable with a Ray cluster's address, which goes before params.yaml's engine:
a job script starts a cluster, and changes no file."""


def make_engine(params: Params, device: str, single_threaded: bool = True) -> Engine:
    """Return the engine that params.yaml asks for, for jobs on a device of torch.

    :param single_threaded: give torch one thread per job on a CPU.  A job's bytes then depend on neither the number
        of workers nor the number of cores.  Otherwise jobs run one after the other.
    """
    cluster = os.environ.get(CLUSTER)
    if (cluster or params.engine.kind == "ray") and single_threaded:
        from pipeline_lib.shards.engine.ray import RayEngine

        return RayEngine(cluster or params.engine.address, params.workers, device)
    from pipeline_lib.base.processor import usable_cores
    from pipeline_lib.shards.engine.local import LocalEngine, accelerators

    if device != "cpu":
        per_device = params.engine.per_accelerator if single_threaded else 1
        return LocalEngine.on(accelerators(device), per_device)
    if not single_threaded:
        return LocalEngine(1, single_threaded=False)
    return LocalEngine(params.workers or usable_cores())
