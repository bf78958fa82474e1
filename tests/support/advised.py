"""A small described cluster and card for tests of advice and reports."""

from advisor.cluster import Cluster, load_cluster
from advisor.reliability.failures.failure_model import FailureModel

MODEL = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": {"value": 2, "low": 1, "high": 5}, "minutes": 5},
            "destroyed": {"per_year": 0.01, "hours": 12},
        },
        "rack": {"network": {"per_year": 0.1, "minutes": 60}},
    }
)


def described(racks: dict[int, str] | None = None, topic: str = "orders") -> Cluster:
    """Return three brokers with one topic of three partitions, RF 3, as described by Kafka 4."""
    lines = [f"Topic: {topic}\tPartitionCount: 3\tReplicationFactor: 3\tConfigs: "]
    lines += [
        f"\tTopic: {topic}\tPartition: {p}\tLeader: {p + 1}\tReplicas: {order}\tIsr: {order}"
        "\tElr: \tLastKnownElr: "
        for p, order in enumerate(("1,2,3", "2,3,1", "3,1,2"))
    ]
    cluster = load_cluster("\n".join(lines) + "\n")
    return cluster.with_racks(racks or {1: "a", 2: "b", 3: "c"})
