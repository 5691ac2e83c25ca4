"""What a stage computed about finished work, kept by content: a stage that runs again finds it.

A proof of alignment, a student's answers, an explanation: each is about files whose digests are in
its key, and is computed again only if one of them, or the code, has changed.
"""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pipeline_lib.base.files import sha256_json
from pipeline_lib.shards.store import Store


def kept_table(kind: str, made_from: Any, compute: Callable[[], pa.Table]) -> pa.Table:
    """Return a table from the store, or compute and store it.

    :param kind: names its part of the store.
    :param made_from: all that determines it, as JSON: digests of what it is about, settings, code.
    """
    store, key = Store(kind), sha256_json(made_from)
    if store.find(key) is None:
        store.add(key, compute())
    return store.read(key)


def kept_json(kind: str, made_from: Any, compute: Callable[[], Any]) -> Any:
    """Return a JSON value from the store, or compute and store it; see :func:`kept_table`."""

    def table() -> pa.Table:
        return pa.table({"json": [json.dumps(compute(), sort_keys=True)]})

    return json.loads(kept_table(kind, made_from, table)["json"][0].as_py())
