"""Reset a cluster for the next scenario: all brokers up, no topics."""

from __future__ import annotations

import time

from advisor.kafka_lab.client import Client
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.node_properties import CONTROLLER
from advisor.kafka_lab.nodes.zookeeper_controller import move_controller
from advisor.kafka_lab.observation.controller_state import ControllerReader, open_controller_reader

_RESET_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.2


class _AllBrokers:
    """Lets a client use every broker."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster

    has_controller = True

    def reachable(self) -> tuple[int, ...]:
        """See `BrokerAccess`."""
        return self.cluster.brokers


def reset_cluster(cluster: RealCluster, controller: int) -> None:
    """Reconnect and start all brokers, delete all topics, and wait for completion.

    A cluster that is not reusable is recreated.

    cluster: a running cluster.
    controller: broker that becomes the controller under ZooKeeper.
    Raises BrokersUnavailableError if the reset takes more than two minutes.
    """
    if cluster.not_reusable:
        cluster.recreate()
    if cluster.network.can_partition:
        for broker in cluster.brokers:
            cluster.network.heal(broker)
            cluster.catch_up(broker)
            cluster.recover(broker)
    if not cluster.running(CONTROLLER):
        cluster.start_controller()
    reader = open_controller_reader(cluster)
    client = Client(_AllBrokers(cluster))
    deadline = time.monotonic() + _RESET_TIMEOUT_S
    deleted: set[str] = set()
    try:
        _wait_for_session_ends(cluster, reader, deadline)
        cluster.start_missing()
        while True:
            state = reader.read()
            topics = {topic for topic, _ in state.registrations}
            all_serving = state.serving == frozenset(cluster.brokers)
            if all_serving and not topics and not _replica_folders(cluster):
                break
            for topic in topics - deleted:
                client.delete_topic(topic)
                deleted.add(topic)
            if time.monotonic() > deadline:
                raise BrokersUnavailableError(
                    f"the cluster did not get whole again: serving {sorted(state.serving)}, "
                    f"topics {sorted(topics)}"
                )
            time.sleep(_POLL_INTERVAL_S)
    finally:
        reader.close()
    if cluster.spec.mode == "zookeeper":
        move_controller(cluster, controller)


def _wait_for_session_ends(cluster: RealCluster, reader: ControllerReader, deadline: float) -> None:
    """Wait until brokers may start: under ZooKeeper one exits if its last session is still open."""
    if cluster.spec.mode != "zookeeper":
        return
    missing = {broker for broker in cluster.brokers if not cluster.running(broker)}
    while missing & reader.read().serving and time.monotonic() < deadline:
        time.sleep(_POLL_INTERVAL_S)


def _replica_folders(cluster: RealCluster) -> list[str]:
    """Replica directories that brokers have not deleted yet."""
    return [
        path.name
        for broker in cluster.brokers
        for path in cluster.data(broker).glob("*-*")
        if path.is_dir() and not path.name.startswith("__") and not path.name.endswith("-delete")
    ]
