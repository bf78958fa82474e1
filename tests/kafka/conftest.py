"""Real brokers for tests: one cluster per specification, started on first use."""

from collections.abc import Callable, Iterator

import pytest

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from clusters import started


@pytest.fixture(scope="session")
def _clusters() -> Iterator[dict[str, RealCluster]]:
    running: dict[str, RealCluster] = {}
    yield running
    for cluster in running.values():
        cluster.close()


@pytest.fixture(scope="session")
def real_cluster(_clusters: dict[str, RealCluster]) -> Callable[[ClusterSpec], RealCluster]:
    """Return the running cluster of a specification; tests undo the faults they inject.

    Only the last one is kept running: two cores are not enough for more.
    """

    def cluster_of(spec: ClusterSpec) -> RealCluster:
        key = repr(spec)
        if key not in _clusters:
            for name in list(_clusters):
                _clusters.pop(name).close()
            _clusters[key] = started(spec)
        cluster = _clusters[key]
        for broker in cluster.brokers:
            if not cluster.running(broker):
                cluster.start(broker)
        return cluster

    return cluster_of
