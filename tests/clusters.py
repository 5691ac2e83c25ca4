"""A Ray cluster of two nodes on this machine, for the tests that compute through one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'potstill[ray]'")
from ray.cluster_utils import Cluster  # noqa: E402


@contextmanager
def two_nodes() -> Iterator[Cluster]:
    """Start a node of one core and one of two, and stop them at the end."""
    # Ray's workers otherwise wait for every other test's processes.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  its name
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=2)
    yield nodes
    ray.shutdown()
    nodes.shutdown()
