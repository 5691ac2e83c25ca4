"""``distill engine``: its job scripts, run with stand-ins for Slurm and Ray that log calls."""

import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from .running import Fails, distill

RAY = """#!/bin/bash
trap 'echo "ray stopped" >> "$CALLS"; exit 0' TERM
echo "ray $*" >> "$CALLS"
while :; do sleep 0.05; done
"""
SRUN = """#!/bin/bash
# As srun does: runs the command in each task, and passes signals on.
echo "srun $*" >> "$CALLS"
while [[ $1 == --* ]]; do
    case $1 in --ntasks=*) tasks=${1#*=};; esac
    shift
done
trap 'kill $(jobs -p)' TERM
for ((task = 0; task < tasks; task++)); do "$@" & done
wait
wait
"""
DISTILL = """#!/bin/bash
# As `distill engine check` does: waits for the nodes.
case $* in
"engine check"*)
    nodes=1
    case $* in *--nodes*) nodes="${@: -1}";; esac
    until [ "$(grep -c '^ray start' "$CALLS")" -ge "$nodes" ]; do sleep 0.05; done
    echo "distill $*" >> "$CALLS"
    exit "${CHECK_STATUS:-0}";;
esac
echo "distill $* in $PWD, POTSTILL_RAY=$POTSTILL_RAY" >> "$CALLS"
exit "${RUN_STATUS:-0}"
"""
SCONTROL = """#!/bin/bash
printf 'node1\\nnode2\\nnode3\\n'
"""
HOSTNAME = """#!/bin/bash
echo "10.0.0.1 fd00::1"
"""
SRUN_OPTIONS = "srun --overlap --cpu-bind=none --ntasks-per-node=1"
RAY_START = "ray start --block --disable-usage-stats --num-gpus=8"
SLURM = {"SLURM_JOB_NODELIST": "node[1-3]", "SLURM_JOB_ID": "120042"}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with an environment of stand-ins, and a workspace whose name has a space."""
    fakes = {"ray": RAY, "srun": SRUN, "distill": DISTILL, "scontrol": SCONTROL}
    (tmp_path / "env/bin").mkdir(parents=True)
    for name, text in (fakes | {"hostname": HOSTNAME}).items():
        path = tmp_path / "env/bin" / name
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "my workspace").mkdir()
    return tmp_path


def script(site: Path, *options: str) -> str:
    folders = "--environment", str(site / "env"), "--workspace", str(site / "my workspace")
    return distill("engine", "script", *options, *folders)


def start(site: Path, text: str, **variables: str) -> subprocess.Popen[str]:
    environment = os.environ | {"CALLS": str(site / "calls"), "RAY_ADDRESS": "elsewhere:1"}
    (site / "calls").touch()
    command = ["timeout", "40", "bash", "-c", text]  # ends its children too
    return subprocess.Popen(command, env=environment | variables, text=True)


def calls(site: Path) -> list[str]:
    return (site / "calls").read_text().splitlines()


def run(site: Path, text: str, **variables: str) -> tuple[int, list[str]]:
    return start(site, text, **variables).wait(timeout=60), calls(site)


def test_slurm_starts_ray_on_all_nodes_runs_and_stops_it(site: Path) -> None:
    text = script(site, "slurm", "--nodes", "3", "--gpus-per-node", "8")
    directives = re.findall(r"^#SBATCH (\S+)$", text, re.M)
    shape = ["--nodes=3", "--ntasks-per-node=1", "--exclusive", "--gpus-per-node=8"]
    assert directives == ["--job-name=distill", *shape]
    # Directives after the first command would not count.
    assert text.rindex("#SBATCH") < text.index("set -euo pipefail")
    status, made = run(site, text, **SLURM)
    head = f"{RAY_START} --head --node-ip-address=10.0.0.1 --port=20042 --include-dashboard=false"
    worker = f"{RAY_START} --address=10.0.0.1:20042"
    assert (status, made) == (
        0,
        [
            f"{SRUN_OPTIONS} --nodes=1 --ntasks=1 --nodelist=node1 {head}",
            head,
            "distill engine check 10.0.0.1:20042",
            f"{SRUN_OPTIONS} --nodes=2 --ntasks=2 --exclude=node1 {worker}",
            worker,
            worker,
            "distill engine check 10.0.0.1:20042 --nodes 3",
            f"distill run in {site / 'my workspace'}, POTSTILL_RAY=10.0.0.1:20042",
            *["ray stopped"] * 3,
        ],
    )


def test_slurm_on_one_node_without_gpus(site: Path) -> None:
    text = script(site, "slurm", "--nodes", "1", "--run", "distill run train@movies")
    assert "gpus" not in text
    _, made = run(site, text, **SLURM)
    assert [line.split(" ")[:3] for line in made] == [
        ["srun", "--overlap", "--cpu-bind=none"],
        ["ray", "start", "--block"],
        ["distill", "engine", "check"],
        ["distill", "run", "train@movies"],
        ["ray", "stopped"],
    ]


@pytest.mark.parametrize("scheduler", ["slurm", "skypilot"])
def test_a_script_that_fails_stops_ray_and_tells(site: Path, scheduler: str) -> None:
    text = script(site, scheduler, "--nodes", "1")
    if scheduler == "skypilot":
        text = read_yaml(text)["run"]
    variables = SLURM | {"SKYPILOT_NODE_RANK": "0", "SKYPILOT_NODE_IPS": "10.0.0.1"}
    status, made = run(site, text, **variables, RUN_STATUS="3")
    assert status == 3 and made[-1] == "ray stopped"
    (site / "calls").unlink()
    # A cluster that does not answer computes nothing.
    status, made = run(site, text, **variables, CHECK_STATUS="1")
    assert status == 1 and made[-1] == "ray stopped"
    assert not [line for line in made if line.startswith("distill run")]


def read_yaml(text: str) -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load(text)


def test_skypilot_has_a_head_that_runs(site: Path) -> None:
    task = read_yaml(script(site, "skypilot", "--nodes", "2", "--gpus-per-node", "8", "--gpu", "H100"))
    assert {key: task[key] for key in task if key != "run"} == {
        "name": "distill",
        "num_nodes": 2,
        "resources": {"accelerators": "H100:8"},
    }
    nodes = {"SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2", "SKYPILOT_NUM_GPUS_PER_NODE": "8"}
    # The other node joins: a line that the stand-in of `distill engine check` counts.
    (site / "calls").write_text("ray start on the other node\n")
    status, made = run(site, task["run"], SKYPILOT_NODE_RANK="0", **nodes)
    # SkyPilot's own Ray has another port.
    options = "--block --disable-usage-stats --num-gpus=8 --node-ip-address=10.0.0.1 --port=6379"
    assert (status, made[1:]) == (
        0,
        [
            f"ray start --head {options} --include-dashboard=false",
            "distill engine check 10.0.0.1:6379 --nodes 2",
            f"distill run in {site / 'my workspace'}, POTSTILL_RAY=10.0.0.1:6379",
            "ray stopped",
        ],
    )


def test_skypilots_other_nodes_stay_as_long_as_the_head(site: Path) -> None:
    task = read_yaml(script(site, "skypilot", "--nodes", "2"))
    assert "resources" not in task
    with socket.create_server(("127.0.0.1", 0)) as head:
        port = head.getsockname()[1]
        text = task["run"].replace("port=6379", f"port={port}")
        nodes = {"SKYPILOT_NODE_IPS": "127.0.0.1\n10.0.0.2", "SKYPILOT_NODE_RANK": "1"}
        worker = start(site, text, **nodes)
        while not calls(site):
            assert worker.poll() is None
            time.sleep(0.05)
        assert worker.poll() is None
    assert worker.wait(timeout=30) == 0
    options = f"--block --disable-usage-stats --address=127.0.0.1:{port}"
    assert calls(site) == [f"ray start {options}", "ray stopped"]


def test_skypilot_asks_which_gpu(fails: Fails) -> None:
    told = fails("engine", "script", "skypilot", "--gpus-per-node", "8")
    assert told == ("error: --gpus-per-node: SkyPilot asks which. Add --gpu, such as --gpu H100.\n")


def test_paths_are_absolute_and_those_of_this_environment_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", "/elsewhere")
    text = distill("engine", "script", "slurm")
    assert f"\ncd {Path.cwd()}\n" in text
    assert re.search(r"^export PATH=/\S+/bin:\"\$PATH\"$", text, re.M)
