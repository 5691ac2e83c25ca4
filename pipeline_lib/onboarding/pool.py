"""The pool of a task with few rows: bundled texts of other kinds, for its teacher to answer.

Its labels are not read.  What it is worth is measured in benchmarks/results/few_rows.md.
"""

from collections.abc import Mapping
from typing import Any

FEW_ROWS = 1000
"""Up to so many labelled rows, a student gains from texts of any kind."""
_ROWS = 4000
_KINDS = ("movieReviewSnippets", "amazonReviewSnippets", "nytEditorialSnippets", "tweets")


def bundled_pool(base: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``pool`` of the texts in the package that the default's task comes from."""
    [task] = base["tasks"].values()
    source = task["source"]
    folder = source["files"]["all"].rpartition("/")[0]
    texts = {"files": [f"{folder}/{kind}_GroundTruth.txt" for kind in _KINDS], "text": "text"}
    pinned = {name: source[name] for name in ("requirement", "artifact", "sha256")}
    read = {name: source[name] for name in ("format", "columns")}
    return {"rows": _ROWS, "sources": [{"kind": "package", **pinned, **texts, **read}]}
