"""Runs scripts as forks of one process that has imported the heavy libraries already.

    python tests/pipeline/forking.py SOCKET PID

A stage spends seconds on importing torch and transformers, and these tests run dozens.  The server imports
third-party libraries, the settings of the library and the digests of its code, of which every stage needs all; it
computes nothing else.  Each fork leads a process group of its own, takes ``pipeline_lib`` anew from the folder that
PYTHONPATH names if that is another, and is `python -m MODULE` or `python SCRIPT` in all else: a stage, the
``distill`` command, or DVC, whose stages are forks too.  `measure_speed` times in its own process.  Files are not
flushed to the disk: only a machine that goes down loses what the kernel holds, and here processes are killed.

A request is one line of JSON: argv, cwd, env, log (the file that takes the output), prelude (code
that runs before the script).  The answer is two lines: the fork's process id, then its exit status.
The server ends, and deletes the folder of SOCKET, once the process PID has ended.
"""

import gc
import importlib
import json
import os
import runpy
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
HEAVY = """
pyarrow.compute pydantic typer rich.progress ruamel.yaml pandas jinja2 scipy.stats spacy spacy.lang.en
spacy.pipeline thinc.api onnx onnxruntime.quantization tokenizers torch safetensors.torch
transformers.models.bert.modeling_bert transformers.models.auto.modeling_auto
transformers.models.auto.tokenization_auto multiprocessing.context concurrent.futures.process pydantic.type_adapter
pyarrow.dataset pyarrow.pandas_compat pyarrow.parquet networkx pyparsing fsspec.implementations.memory dulwich.ignore
scmrepo.git dvc.cachemgr dvc.cli.parser dvc.data_cloud dvc.lock dvc.repo.artifacts dvc.repo.datasets
dvc.repo.reproduce dvc.repo.status dvc_data.hashfile.db.local dvc_data.index
"""


def serve(path: str, lifetime: int) -> None:
    """Answer requests as long as the process ``lifetime`` runs."""
    for name in HEAVY.split():
        importlib.import_module(name)
    _warm()
    # A fork would otherwise look through all of these objects for garbage, and so copy their pages.
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        server.settimeout(1.0)
        while _runs(lifetime):
            try:
                client, _ = server.accept()
            except TimeoutError:
                continue
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            # A process for each request, so that stages can run at once.
            if os.fork() == 0:
                server.close()
                _answer(client)
                os._exit(0)
            client.close()
    shutil.rmtree(Path(path).parent)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _warm() -> None:
    """Import what all stages need of the library, and digest its code."""
    sys.path[0] = str(ROOT)
    importlib.import_module("pipeline_lib.params")
    fingerprint = importlib.import_module("pipeline_lib.shards.fingerprint")
    for stage in fingerprint.stage_files():
        fingerprint.stage_code(stage)


def _forget_library() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pipeline_lib"]:
        del sys.modules[name]


def _answer(client: socket.socket) -> None:
    stream = client.makefile("rw")
    request = json.loads(stream.readline())
    pid = os.fork()
    if pid == 0:
        os.setsid()
        client.close()
        _become(request)
    # Who asked may have been killed.
    with suppress(BrokenPipeError):
        stream.write(f"{pid}\n")
        stream.flush()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        stream.write(f"{status}\n")
        stream.flush()


class _Here:
    """Stands in for a pool of one process that imports torch anew."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Keep nothing."""

    def __enter__(self) -> "_Here":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is to be ended."""

    def submit(self, run: Any, *job: Any) -> "_Here":
        self.measured = run(*job)
        return self

    def result(self) -> Any:
        return self.measured


def _time_here() -> None:
    """Have `measure_speed` take a second, not 25: no processes, no ONNX form of the teacher.

    tests/exports/test_speed.py has both, and tests/commands/test_wheel.py runs the stage as it is.
    """
    contestants = importlib.import_module("pipeline_lib.exports.contestants")
    speed = importlib.import_module("pipeline_lib.exports.speed")
    speed.ProcessPoolExecutor, speed.SECONDS, speed.REPEATS = _Here, 0.01, 1
    contestants.export_teacher = lambda *_: {}


def _become(request: dict[str, Any]) -> NoReturn:
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    code = request["env"]["PYTHONPATH"]
    sys.argv, sys.path[:1] = request["argv"], [request["cwd"], code]
    os.fsync = lambda handle: None
    if Path(code) != ROOT:
        _forget_library()
    status: Any = 0
    try:
        exec(request["prelude"], {})
        if sys.argv[:2] == ["-m", "pipeline_lib.stages.measure_speed"]:
            _time_here()
        if sys.argv[0] == "-m":
            del sys.argv[0]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
