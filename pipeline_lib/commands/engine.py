"""``distill engine``: job scripts that start a Ray cluster, and whether one answers."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.terminal import say
from pipeline_lib.base.workspace import shipped

app = typer.Typer(no_args_is_help=True, help="Ray clusters of several nodes (docs/clusters.md).")


class Scheduler(StrEnum):
    """What gives out the nodes, and the file of its script."""

    slurm = "slurm"
    skypilot = "skypilot"


SCRIPTS = {Scheduler.slurm: "slurm.sh", Scheduler.skypilot: "skypilot.yaml"}


@app.command("script", epilog="Example: distill engine script slurm --nodes 4 > job.sh")
def script(
    scheduler: Annotated[Scheduler, Argument(help="What gives out the nodes.")],
    nodes: Annotated[int, Option(min=1, help="How many machines.")] = 2,
    gpus_per_node: Annotated[int, Option(min=0, help="GPUs of each; 0: computes on CPUs.")] = 0,
    gpu: Annotated[str | None, Option(help="SkyPilot's name of the GPU, such as H100.")] = None,
    workspace: Annotated[Path, Option(help="The workspace, at this path on all nodes.")] = Path(),
    environment: Annotated[Path, Option(help="The Python environment, at this path on all nodes.")] = Path(sys.prefix),
    run: Annotated[str, Option(help="What runs in the workspace.")] = "distill run",
) -> None:
    """Print a job script that runs the pipeline on a Ray cluster of several nodes.

    The script starts Ray on every node, waits until all have joined, runs the pipeline on the first one, and stops
    Ray. It does not depend on the `engine` in params.yaml, and changes no file of the workspace.
    """
    from jinja2 import Environment, StrictUndefined

    from pipeline_lib.shards.engine import CLUSTER

    if scheduler == Scheduler.skypilot and gpus_per_node and gpu is None:
        raise PotstillError("--gpus-per-node: SkyPilot asks which. Add --gpu, such as --gpu H100.")
    templates = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    templates.filters["quote"] = lambda path: shlex.quote(str(path))
    template = shipped("engine") / SCRIPTS[scheduler]
    text = templates.from_string(template.read_text(encoding="utf-8")).render(
        nodes=nodes,
        gpus=gpus_per_node,
        gpu=gpu,
        workspace=workspace.absolute(),
        bin=environment.absolute() / "bin",
        run=run,
        variable=CLUSTER,
    )
    say(text.removesuffix("\n"))


@app.command("check", epilog="Example: distill engine check 10.0.0.1:6379 --nodes 4")
def check(
    address: Annotated[str, Argument(help="Of the Ray cluster's head, host:port.")],
    nodes: Annotated[int, Option(min=1, help="How many nodes must have joined.")] = 1,
    seconds: Annotated[float, Option(help="How long to wait for them.")] = 300.0,
) -> None:
    """Wait until all nodes of a Ray cluster have joined; run it on one of them.

    If they have not in time, says so and exits with status 1.
    """
    from pipeline_lib.shards.engine.ray import wait_for_nodes

    joined = wait_for_nodes(address, nodes, seconds)
    cores, gpus = (sum(int(node.get(kind, 0)) for node in joined) for kind in ("CPU", "GPU"))
    say(f"{address}: {len(joined)} of {nodes} nodes joined, with {cores} cores and {gpus} GPUs.")
