"""A cluster after a scenario made ready for the next: whole again, and without topics."""

from __future__ import annotations

import time

from advisor.kafka_lab.client import Client
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.zookeeper_controller import lead
from advisor.kafka_lab.observation.controller_state import controller_of

_MENDED_WITHIN_S = 120.0
_LOOK_EVERY_S = 0.2


class _Whole:
    """Every broker of a cluster is reachable."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster

    def reachable(self) -> tuple[int, ...]:
        """See `client.Reach`."""
        return self.cluster.brokers


def mend(cluster: RealCluster, controller: int) -> None:
    """Connect and start all brokers, delete all topics, and wait until that is done.

    A cluster that is spent is started anew.

    Parameters
    ----------
    cluster : RealCluster
    controller : int
        The broker that is to be the controller under ZooKeeper.

    Raises
    ------
    BrokersUnavailableError
        If it is not whole again within two minutes.
    """
    if cluster.spent:
        cluster.renew()
    if cluster.network.breakable:
        for broker in cluster.brokers:
            cluster.network.heal(broker)
            cluster.catch_up(broker)
    for broker in cluster.brokers:
        if not cluster.running(broker):
            cluster.start(broker)
    reader = controller_of(cluster)
    client = Client(_Whole(cluster))
    until = time.monotonic() + _MENDED_WITHIN_S
    deleted: set[str] = set()
    try:
        while True:
            truth = reader.read()
            topics = {topic for topic, _ in truth.registrations}
            if not topics and truth.serving == frozenset(cluster.brokers) and not _folders(cluster):
                break
            for topic in topics - deleted:
                client.delete_topic(topic)
                deleted.add(topic)
            if time.monotonic() > until:
                raise BrokersUnavailableError(
                    f"the cluster did not get whole again: serving {sorted(truth.serving)}, "
                    f"topics {sorted(topics)}"
                )
            time.sleep(_LOOK_EVERY_S)
    finally:
        reader.close()
    if cluster.wish.mode == "zookeeper":
        lead(cluster, controller)


def _folders(cluster: RealCluster) -> list[str]:
    """Copies of partitions that brokers have not let go of."""
    return [
        path.name
        for broker in cluster.brokers
        for path in cluster.data(broker).glob("*-*")
        if path.is_dir() and not path.name.startswith("__") and not path.name.endswith("-delete")
    ]
