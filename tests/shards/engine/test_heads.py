"""A Ray head that does not listen, or no more, is noticed within seconds; Ray is not needed."""

import socket
import subprocess
import sys
import threading

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.shards.engine.heads import Head, check_head, watch


@pytest.fixture
def server() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_a_head_that_is_not_there_is_one_error(server: socket.socket) -> None:
    port = server.getsockname()[1]
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        assert check_head(address) == ("127.0.0.1", port)
    assert check_head("auto") is None and check_head("local") is None
    server.close()
    with pytest.raises(PotstillError, match=rf"engine.address: 127.0.0.1:{port}: no Ray cluster"):
        check_head(f"127.0.0.1:{port}")
    # The process ends with one line.
    code = "from pipeline_lib.shards.engine.heads import end_without; end_without(('h', 1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: engine.address: h:1: the Ray cluster's head does not")


def test_a_head_that_dies_is_noticed(server: socket.socket) -> None:
    head, noticed, heads = server.getsockname()[:2], threading.Event(), []

    def lost(gone: Head) -> None:
        heads.append(gone)
        noticed.set()

    watch(head, lost, pause=0.05)
    assert not noticed.wait(0.5)
    server.close()
    assert noticed.wait(20) and heads == [head]
