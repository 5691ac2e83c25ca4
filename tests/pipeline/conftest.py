"""Undisturbed runs of the whole pipeline, each made once, which the tests here copy or compare with."""

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
from tests.corpora.wikipedia.wikis import write_dump

from . import joint_tasks, pair_tasks
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
    """Put the files that share a run far apart, the dearest first: while one worker makes it, none waits for it."""
    here = [n for n, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    if here:
        within, order = slice(here[0], here[-1] + 1), {"test_pairs.py": 0, "test_label_sets.py": 2, "test_joint.py": 2}
        items[within] = sorted(items[within], key=lambda item: order.get(item.path.name, 1))


@dataclass(frozen=True)
class Finished:
    """A workspace after its first run; tests change copies of it only."""

    workspace: Workspace
    run: Run


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    shim = tmp_path_factory.mktemp("shims") / "python"
    shim.write_text(SHIM.format(python=sys.executable, server=str(server)))
    shim.chmod(0o755)
    return shim.parent


@pytest.fixture(scope="session")
def new_workspace(server: Path, shims: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Workspace]:
    """Return the function that makes a workspace in a folder: nothing has run there yet."""
    first = Workspace(tmp_path_factory.mktemp("first"), server, shims)
    for name in ("dvc.yaml", ".gitignore", ".dvcignore"):
        shutil.copyfile(ROOT / name, first / name)
    write_corpus(first / "data/input")
    write_encoder(first / "data/input/encoder")
    write_params(first / "params.yaml")
    first.command("git", "init", "--quiet").sound()
    first.dvc("init", "--quiet").sound()
    (first / ".dvc/config").write_text("[core]\nanalytics = false\ncheck_update = false\n")
    return first.copy


@pytest.fixture(scope="session")
def once(
    server: Path, shims: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, Callable[[Path], tuple[Workspace, Run]]], Finished]:
    """Return the function that has a run made once for all of pytest's workers; each has a copy."""

    def made(name: str, make: Callable[[Path], tuple[Workspace, Run]]) -> Finished:
        record = shared / f"{name}.json"
        with _first_only(record) as first:
            if first:
                workspace, run = make(tmp_path_factory.mktemp(name) / "workspace")
                write_json(record, {"folder": str(workspace.folder), "text": run.text})
        finished = read_json(record)
        workspace = Workspace(Path(finished["folder"]), server, shims)
        return Finished(workspace.copy(tmp_path_factory.mktemp("copy") / "workspace"), Run(0, finished["text"]))

    return made


@pytest.fixture(scope="session")
def finished(once: Callable[..., Finished], new_workspace: Callable[[Path], Workspace]) -> Finished:
    def make(folder: Path) -> tuple[Workspace, Run]:
        workspace = new_workspace(folder)
        return workspace, workspace.dvc("repro").sound()

    return once("finished", make)


@pytest.fixture(scope="session")
def joined(once: Callable[..., Finished], finished: Finished) -> Finished:
    """Run what comes on top of it: encoders, joint trainings and the students that start from them."""

    def make(folder: Path) -> tuple[Workspace, Run]:
        workspace = finished.workspace.copy(folder)
        write_dump(workspace / "data/input/wiki.xml.bz2", articles=30)
        pair_tasks.write_pairs(workspace / "data/input")
        workspace.params(joint_tasks.edit_params)
        return workspace, workspace.run_stages()

    return once("joined", make)


@pytest.fixture(scope="session")
def pairs(once: Callable[..., Finished], new_workspace: Callable[[Path], Workspace]) -> Workspace:
    """Run the whole pipeline on tasks of pairs, and on one whose rows may have several labels."""

    def make(folder: Path) -> tuple[Workspace, Run]:
        workspace = new_workspace(folder)
        for write in (pair_tasks.write_pairs, pair_tasks.write_praise, pair_tasks.write_marks):
            write(workspace / "data/input")
        workspace.params(pair_tasks.edit_params)
        workspace.params(pair_tasks.add_marks)
        return workspace, workspace.run_stages()

    return once("pairs", make).workspace


@pytest.fixture
def workspace(finished: Finished, tmp_path: Path) -> Workspace:
    return finished.workspace.copy(tmp_path / "workspace")
