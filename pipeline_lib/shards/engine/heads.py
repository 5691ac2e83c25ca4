"""Whether the head of a Ray cluster listens: Ray itself waits for minutes, and then says little."""

import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable

from pipeline_lib.base.errors import PotstillError

Head = tuple[str, int]
"""Host and port."""
TIMEOUT = 5.0
"""Seconds to wait for a connection, and between two."""
MISSES = 3
"""A head that does not answer so often in a row is lost."""
_ADDRESS = re.compile(r"(?:ray://)?(?P<host>\[[^\]]+\]|[^:/\[\]]+):(?P<port>\d+)")


def check_head(address: str) -> Head | None:
    """Return the host and port of an address, having connected to it; None: it has none.

    :param address: ``host:port``, ``ray://host:port``, or a word of Ray's, such as ``auto``.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return None
    head = match["host"].strip("[]"), int(match["port"])
    try:
        _connect(head)
    except OSError as error:
        raise no_cluster(address, str(error)) from error
    return head


def no_cluster(address: str | None, reason: str) -> PotstillError:
    """Return the error for an address at which no cluster answers."""
    return PotstillError(
        f"engine.address: {address}: no Ray cluster answers ({reason}). Start one with `ray start "
        "--head`, correct the address, or set null."
    )


def watch(head: Head, lost: Callable[[Head], None], pause: float = TIMEOUT) -> None:
    """Connect to a head every few seconds, in a thread, and call ``lost`` when it is gone."""

    def look() -> None:
        misses = 0
        while misses < MISSES:
            time.sleep(pause)
            try:
                _connect(head)
                misses = 0
            except OSError:
                misses += 1
        lost(head)

    threading.Thread(target=look, daemon=True).start()


def end_without(head: Head) -> None:
    """End this process, whose calls to Ray would wait for the head for a long time yet."""
    host, port = head
    sys.stderr.write(
        f"error: engine.address: {host}:{port}: the Ray cluster's head does not answer any more. "
        "Start it again, and run again: what was finished is kept.\n"
    )
    sys.stderr.flush()
    os._exit(1)


def _connect(head: Head) -> None:
    with socket.create_connection(head, timeout=TIMEOUT):
        pass
