"""A workspace of its own, without code: the stages on a small corpus with a tiny teacher."""

import copy
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipeline_lib.base.files import sha256_file
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import SEAL
from pipeline_lib.params import load_params
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.training.distillation.plans import Plan, make_plan
from tests.tour import TOUR

ROOT = Path(__file__).parents[2]
TASK = "reviews"
TEACHER = "minilm"
BLOCKS, N_ITER = 3, 2
SHARDS = BLOCKS * (1 + N_ITER)
BOTH = SHARDS + BLOCKS
"""Shards of both transfer sets; their originals are the same and computed once."""
METHODS = ("bilstm", "bilstm_kd", "bilstm_kd_ts")
OUTPUTS = Path("data/outputs") / TASK / TEACHER / "full"
TRANSFER = Path("data/transfer") / TASK / "full"
STORE = Path(".potstill/store")
SINGLE = (
    "fingerprint",
    "fetch_models",
    "split_wikipedia",
    "digest_wikipedia",
    "precompute_vectors",
    "digest_starts",
    "report",
)
"""Stages without a matrix."""
UNSET = ("POTSTILL_HOME", "DVC_ROOT", "PYTHONDONTWRITEBYTECODE")
"""Variables of the environment that a workspace does not take over."""


@dataclass(frozen=True)
class Run:
    """A finished command: its exit status and all it printed."""

    status: int
    text: str

    def sound(self) -> "Run":
        """Fail the test unless the command ended well."""
        assert self.status == 0, self.text
        return self

    @property
    def stages(self) -> list[str]:
        return re.findall(r"^Running stage '([^']+)'", self.text, re.MULTILINE)

    @property
    def tally(self) -> tuple[int, int]:
        """Shards (computed, reused) of both transfer sets, as precompute printed them."""
        found = re.findall(rf"^{TEACHER} {TASK} \w+: .*computed (\d+) shards, reused (\d+)", self.text, re.MULTILINE)
        assert len(found) == 2, self.text
        return sum(int(computed) for computed, _ in found), sum(int(reused) for _, reused in found)

    @property
    def error(self) -> str:
        """The one line of a refused stage's error, its last: no traceback, exit status 1."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        assert self.status == 1, self.text
        assert [line for line in lines if re.match("error|Traceback", line)] == lines[-1:], self.text
        return lines[-1]


class Workspace:
    """The folder, and the commands that are run in it.

    :param server: the socket of ``forking.py``.
    :param shims: a folder whose ``python`` runs stages through the server.
    :param code: the folder of the library.
    """

    def __init__(self, folder: Path, server: Path, shims: Path, code: Path = ROOT) -> None:
        self.folder, self.server, self.shims, self.code = folder, server, shims, code

    def copy(self, folder: Path) -> "Workspace":
        """Return an independent copy, with cache and store: no file is shared."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Workspace(folder, self.server, self.shims)

    def with_own_code(self) -> "Workspace":
        """Copy the library into the folder, so that it can be edited; return the workspace."""
        # With what is compiled already, less what another worker is writing.
        ignored = shutil.ignore_patterns("*.pyc.*")
        shutil.copytree(ROOT / "pipeline_lib", self.folder / "pipeline_lib", ignore=ignored)
        return Workspace(self.folder, self.server, self.shims, self.folder)

    def __truediv__(self, path: str | Path) -> Path:
        return self.folder / path

    def env(self, fast: bool = True) -> dict[str, str]:
        """Return the environment: this interpreter first on the path, or its quick stand-in."""
        own = Path(sys.executable).parent
        path = f"{self.shims}:{own}" if fast else str(own)
        kept = {name: value for name, value in os.environ.items() if name not in UNSET}
        return kept | {
            "PATH": f"{path}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.code),
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            "DVC_NO_ANALYTICS": "1",
        }

    def command(self, *argv: str, fast: bool = True) -> Run:
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=self.env(fast),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
        )
        return Run(done.returncode, done.stdout)

    def dvc(self, *argv: str) -> Run:
        """Run DVC, and its stages, as forks: the same but for the imports."""
        return self.command("python", str(Path(sys.executable).with_name("dvc")), *argv)

    def distill(self, *argv: str) -> Run:
        return self.command("python", "-m", "pipeline_lib.cli", *argv)

    def stage(self, name: str, *options: str, prelude: str = "") -> Run:
        """Run one stage for the task, or what ``options`` name, and wait for its end."""
        with self.started(name, *options, prelude=prelude) as stage:
            return stage.wait()

    @contextmanager
    def started(self, name: str, *options: str, prelude: str = "") -> Iterator["Started"]:
        """Start one stage for the task; it is killed when the block ends before it."""
        alone = options or name in SINGLE
        item = () if alone else ("--task", TASK)
        with self.forked(f"pipeline_lib.stages.{name}", *item, *options, prelude=prelude) as stage:
            yield stage

    @contextmanager
    def forked(self, module: str, *options: str, prelude: str = "") -> Iterator["Started"]:
        """Start a module as a fork; it is killed when the block ends before it."""
        argv, name = ["-m", module, *options], module.rpartition(".")[2]
        log = self.folder / f"{name}-{time.monotonic_ns()}.log"
        env = self.env() | {"DVC_ROOT": str(self.folder)}
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.server))
            stream = client.makefile("rw")
            request = {"argv": argv, "cwd": str(self.folder), "env": env, "log": str(log)}
            stream.write(json.dumps(request | {"prelude": prelude}) + "\n")
            stream.flush()
            stage = Started(int(stream.readline()), stream, log)
            try:
                yield stage
            finally:
                if not stage.ended:
                    stage.kill()

    def run_stages(self) -> Run:
        """Run all stages without DVC, in the order of dvc.yaml: as one command."""
        runs = [self.stage(name, *item).sound() for name, item in self.stages()]
        return Run(0, "".join(run.text for run in runs))

    def stages(self) -> list[tuple[str, tuple[str, ...]]]:
        yaml = YAML(typ="safe", pure=True)
        params, flow = (yaml.load(self.folder / name) for name in ("params.yaml", "dvc.yaml"))
        stages = []
        for name, stage in flow["stages"].items():
            # One option names the item, of the rows of one key: {task: "${tasks}"}.
            [(option, rows)] = stage.get("matrix", {None: None}).items()
            items = [(f"--{option}", item) for item in params[rows[2:-1]]] if rows else [()]
            stages += [(name, item) for item in items]
        return stages

    def params(self, edit: Callable[[Any], None]) -> None:
        yaml, path = YAML(), self.folder / "params.yaml"
        values = yaml.load(path.read_text())
        edit(values)
        with path.open("w") as file:
            yaml.dump(values, file)

    def iterate(self, number: int) -> Run:
        """Set ``n_iter``, make the transfer sets of it, and have them answered."""
        self.params(lambda params: params["tasks"][TASK]["augment"].update(n_iter=number))
        self.stage("augment").sound()
        return self.stage("precompute").sound()

    def digests(self, folder: str | Path) -> dict[str, str]:
        """Return the SHA-256 of every file below ``folder``, by relative path."""
        base = self.folder / folder
        found = {
            path.relative_to(base).as_posix(): sha256_file(path) for path in sorted(base.rglob("*")) if path.is_file()
        }
        assert found, f"{base}: nothing there"
        return found

    def entries(self, kind: str) -> set[str]:
        """Return the keys of the whole entries of one kind in the store."""
        records = (self.folder / STORE / kind).glob("*/*.json")
        return {path.stem for path in records if path.with_suffix(".arrow").exists()}

    def trained(self) -> set[str]:
        """Return the keys of the students that are whole: they have their seal."""
        seals = (self.folder / ".potstill/students").glob(f"[!.]*/{SEAL}")
        return {path.parent.name for path in seals}

    def report(self) -> tuple[str, str, dict[str, Any]]:
        """Return the report's JSON and its page, both without their provenance, and that."""
        folder = self.folder / "data/report"
        content = json.loads((folder / "report.json").read_text())
        page = (folder / "index.html").read_text()
        page, cut = re.subn(r'(?s)<section id="provenance".*?</section>', "", page)
        assert cut == 1
        provenance = content.pop("provenance")
        return json.dumps(content), page, provenance

    def scores(self, task: str) -> TaskScores:
        return TaskScores.read(Layout(self.folder / "data").scores(task))

    def plan(self, method: str, task: str = TASK) -> Plan:
        with chdir(self.folder):
            return make_plan(load_params(), task, method, Layout())

    def moved(self, edit: Callable[[Any], None]) -> set[str]:
        """Change params.yaml; return the stages that DVC then runs: the first one has moved what they depend on."""
        before = self.digests("data")
        self.params(edit)
        self.stage("fingerprint").sound()
        after = self.digests("data")
        changed = [Path("data", name) for name in {*before} | {*after} if before.get(name) != after.get(name)]
        above = {str(path) for name in changed for path in (name, *name.parents)}
        return {stage.name for stage in self.graph() if above & {dep.def_path for dep in stage.deps}}

    def graph(self) -> "list[PipelineStage]":  # noqa: F821
        """Return the stages as DVC has them, with what they depend on and what they write; no two write the same."""
        from dvc.repo import Repo

        with chdir(self.folder), Repo() as repo:
            repo.index.check_graph()
            return list(repo.index.stages)

    def only(self, method: str) -> str:
        """Leave one row and no trained student; return the folder of the row's students."""

        def alone(values: Any) -> None:
            values["methods"] = {method: values["methods"][method] | {"baseline": None}}

        self.params(alone)
        self.forget(f"data/students/{TASK}", ".potstill/students")
        return f"data/students/{TASK}/{method}"

    def forget(self, *paths: str | Path) -> None:
        for path in paths:
            target = self.folder / path
            shutil.rmtree(target) if target.is_dir() else target.unlink()

    def lend(self, path: str | Path, other: "Workspace") -> None:
        shutil.copytree(self.folder / path, other / path)

    def lock(self) -> dict[str, Any]:
        return YAML(typ="safe", pure=True).load((self.folder / "dvc.lock").read_text())["stages"]


@dataclass
class Started:
    """A running stage: the leader of its own process group."""

    pid: int
    stream: Any
    log: Path
    ended: bool = False

    def wait(self) -> Run:
        status = int(self.stream.readline())
        self.ended = True
        return Run(status, self.log.read_text() if self.log.exists() else "")

    def kill(self, number: int = signal.SIGKILL) -> Run:
        """Kill the whole process group, as a machine that goes down does; it may have ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        return self.wait()

    def kill_when(self, happened: Callable[[], bool], seconds: float = 60.0) -> Run:
        """Kill the stage as soon as ``happened``; it must not have ended before."""
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, f"nothing to kill: {self.log.read_text()}"
            time.sleep(0.005)
        killed = self.kill()
        assert killed.status == -signal.SIGKILL, f"it had ended: {killed.text}"
        return killed


def flip_byte(path: Path) -> None:
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def write_params(path: Path) -> None:
    path.write_text(_small_params_file(), encoding="utf-8")


def small_params() -> dict[str, Any]:
    return copy.deepcopy(_small_params())


@cache
def _small_params() -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load(_small_params_file())


@cache
def _small_params_file() -> str:
    yaml = YAML()
    values = yaml.load(TOUR.read_text())
    task = next(iter(values["tasks"].values()))
    task["source"] = {
        "kind": "files",
        "files": {split: f"{split}.tsv" for split in ("train", "dev", "test")},
        "format": "tsv",
        "columns": None,
    }
    task |= {"text": ["sentence"], "label": "label", "metrics": ["accuracy"], "positive": None}
    task |= {"labels": {"negative": ["0"], "positive": ["1"]}, "split": None, "blocks": BLOCKS}
    task["augment"] = {"n_iter": N_ITER, "cap": None}
    values["models"] = {TEACHER: {"kind": "path", "path": "encoder"}}
    teacher = values["teachers"][TEACHER]
    teacher["max_length"] = values["sentence_vectors"]["max_length"] = 32
    teacher["tuning"] |= {"learning_rates": [5.0e-3], "epochs": 3, "batch_size": 16}
    teacher["tuning"] |= {"precision": "float32", "freeze_embeddings": False}
    values["precompute"] |= {"precision": "float32", "batch_tokens": 512}
    values["vocabulary"] |= {"dimensions": 16, "pieces": 0}
    values["students"]["bilstm"] |= {"hidden": 8, "classifier": 8, "embeddings": "trained", "rank": None}
    small = {"batch_size": 16, "epochs": 7, "evaluate_every": 20, "learning_rates": [2.0e-2]}
    small["precision"] = "float32"
    # What no row uses is left out: DVC reads and writes all parameters of all stages after each.
    short, long = (values["optimisers"][name] | small for name in ("short", "long"))
    values["optimisers"] = {"short": short, "long": long | {"max_steps": 140}}
    values |= {
        "device": "cpu",
        "workers": 1,
        "yardsticks": False,
        "tasks": {TASK: task},
        "transfer": {n: values["transfer"][n] | {"tasks": None} for n in ("original", "full")},
        "methods": {name: values["methods"][name] | {"tasks": None} for name in METHODS},
        "seeds": [1, 2],
        "wikipedia": None,
        "encoders": {},
        "joint": {},
    }
    # Chosen once the students are trained: it moves none of them.
    values["methods"]["bilstm_kd"]["temperature"] = "dev"
    text = io.StringIO()
    yaml.dump(values, text)
    return text.getvalue()
