"""Real brokers for tests: one cluster per specification, started on first use."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import broker_costs
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
        cluster.start_missing()
        return cluster

    return cluster_of


@pytest.fixture(scope="session")
def _costs() -> broker_costs.Costs | None:
    return broker_costs.recorded() if "ADVISOR_BROKER_COSTS" in os.environ else None


@pytest.fixture(autouse=True, scope="module")
def _record_costs(
    request: pytest.FixtureRequest, _costs: broker_costs.Costs | None
) -> Iterator[None]:
    """Add a line about each test file to the file that ADVISOR_BROKER_COSTS names."""
    yield
    if _costs is not None:
        row = {"file": request.path.name, **_costs.take()}
        with Path(os.environ["ADVISOR_BROKER_COSTS"]).open("a") as file:
            file.write(json.dumps(row) + "\n")
