"""What a stage computed about finished work, kept by content: a stage that runs again finds it.

A proof of alignment, a student's answers, an explanation, a timing: each is about files whose
digests are in its key, and is computed again only if one of them, or the code, has changed.
"""

import json
from collections.abc import Callable, Mapping
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
    return _value_in(kept_table(kind, made_from, lambda: _table_of(compute())))


def kept_together(
    kind: str, made_from: Mapping[str, Any], compute: Callable[[list[str]], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return JSON values by name; those that are not in the store are computed together.

    :param made_from: all that determines each, by name; see :func:`kept_table`.
    :param compute: returns the values of the names that it gets.
    """
    store, keys = Store(kind), {name: sha256_json(parts) for name, parts in made_from.items()}
    missing = [name for name, key in keys.items() if store.find(key) is None]
    for name, value in (compute(missing) if missing else {}).items():
        store.add(keys[name], _table_of(value))
    return {name: _value_in(store.read(key)) for name, key in keys.items()}


def _table_of(value: Any) -> pa.Table:
    return pa.table({"json": [json.dumps(value)]})


def _value_in(table: pa.Table) -> Any:
    return json.loads(table["json"][0].as_py())
