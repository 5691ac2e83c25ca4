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


def used_cores(nodes: Cluster, number: int) -> float:
    """Return how many cores of a node, counted from 0, workers have."""
    state, node = nodes.global_state, nodes.list_all_nodes()[number].node_id
    resources = state.total_resources_per_node(), state.available_resources_per_node()
    total, free = (one.get(node, {}).get("CPU", 0.0) for one in resources)
    return total - free
