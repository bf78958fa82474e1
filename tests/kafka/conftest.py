"""Real brokers for tests: a cluster a spec, started when first asked for and kept."""

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
    """Give the running cluster of a spec; whoever breaks it mends it again.

    Only the cluster asked for last is kept running: two cores carry no more.
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
