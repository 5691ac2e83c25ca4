"""One undisturbed run of the whole pipeline, which every test here copies or compares with."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline_lib.base.files import read_json, write_json

from .corpus import write_corpus, write_encoder
from .workspace import ROOT, UNSET, Run, Workspace, write_params

WORKER = "PYTEST_XDIST_WORKER"
"""The variable that each of pytest's workers has, if there are several."""
SHIM = """#!{python} -SE
import json, os, signal, socket, sys, tempfile
with socket.socket(socket.AF_UNIX) as client, tempfile.NamedTemporaryFile("r") as log:
    client.connect({server!r})
    stream = client.makefile("rw")
    request = dict(argv=sys.argv[1:], cwd=os.getcwd(), env=dict(os.environ), log=log.name)
    stream.write(json.dumps(request | dict(prelude=os.environ.get("PRELUDE", ""))) + "\\n")
    stream.flush()
    group = int(stream.readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.killpg(group, number))
    status = int(stream.readline())
    sys.stdout.write(log.read())
sys.exit(status if status >= 0 else 128 - status)
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put a file with a pipeline of its own first.

    The files after it wait for the first run: one worker makes it while the other is here.
    """
    here = [n for n, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    if here:
        within = slice(here[0], here[-1] + 1)
        items[within] = sorted(items[within], key=lambda item: item.path.name != "test_pairs.py")


@dataclass(frozen=True)
class Finished:
    """The workspace after its first run; tests change copies of it only."""

    workspace: Workspace
    run: Run


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all of pytest's workers have."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if WORKER in os.environ else base


@contextmanager
def _first_only(record: Path) -> Iterator[bool]:
    """Yield whether this worker is the first, which writes ``record``; the others wait for it."""
    with open(record.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not record.exists()


@pytest.fixture(scope="session")
def server(shared: Path) -> Path:
    """Start the process that stages are forked from, one for all workers; return its socket."""
    record = shared / "server.json"
    with _first_only(record) as first:
        if first:
            write_json(record, {"socket": str(_start_server())})
    return Path(read_json(record)["socket"])


def _start_server() -> Path:
    # The paths of sockets are short.
    path, script = Path(tempfile.mkdtemp()) / "socket", Path(__file__).with_name("forking.py")
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    environment = kept | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    lifetime = os.getppid() if WORKER in os.environ else os.getpid()
    command = [sys.executable, script, path, str(lifetime)]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    while not path.exists():
        assert process.poll() is None, "the fork server ended at once"
        time.sleep(0.05)
    return path


@pytest.fixture(scope="session")
def shims(server: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose ``python`` has the server run a stage."""
    shim = tmp_path_factory.mktemp("shims") / "python"
    shim.write_text(SHIM.format(python=sys.executable, server=str(server)))
    shim.chmod(0o755)
    return shim.parent


@pytest.fixture(scope="session")
def new_workspace(server: Path, shims: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Workspace]:
    """Return the function that makes a workspace in a folder: nothing has run there yet."""
    inputs = tmp_path_factory.mktemp("inputs")
    write_corpus(inputs)
    write_encoder(inputs / "encoder")

    def make(folder: Path) -> Workspace:
        folder.mkdir(parents=True)
        for name in ("dvc.yaml", ".gitignore", ".dvcignore"):
            shutil.copyfile(ROOT / name, folder / name)
        shutil.copytree(inputs, folder / "data/input")
        write_params(folder / "params.yaml")
        workspace = Workspace(folder, server, shims)
        workspace.command("git", "init", "--quiet").sound()
        workspace.dvc("init", "--quiet").sound()
        (folder / ".dvc/config").write_text("[core]\nanalytics = false\ncheck_update = false\n")
        return workspace

    return make


@pytest.fixture(scope="session")
def finished(
    new_workspace: Callable[[Path], Workspace],
    server: Path,
    shims: Path,
    shared: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Finished:
    """Run the whole pipeline, once for all of pytest's workers; each has a copy of its own."""
    base, record = tmp_path_factory.getbasetemp(), shared / "finished.json"
    with _first_only(record) as first:
        if first:
            workspace = new_workspace(base / "first")
            run = workspace.dvc("repro").sound()
            write_json(record, {"folder": str(workspace.folder), "text": run.text})
    found = read_json(record)
    workspace = Workspace(Path(found["folder"]), server, shims)
    copy = workspace.copy(tmp_path_factory.mktemp("copy") / "workspace")
    return Finished(copy, Run(0, found["text"]))


@pytest.fixture
def workspace(finished: Finished, tmp_path: Path) -> Workspace:
    """Return a copy of the finished workspace to change."""
    return finished.workspace.copy(tmp_path / "workspace")
