"""How brokers learn of new leaders: a queue of nodes in ZooKeeper, or requests in batches.

When a broker dies, the controller tells every live replica of each changed partition. A queue has a
node for each, which the broker lists, reads and deletes. Kafka's controller sends two batches: new
leaders first, then the ISRs of what the dead broker followed; each is one LeaderAndIsr request to
each broker with a replica of what changed, and one UpdateMetadata request to each live broker.
Sources: ``KafkaController.onReplicasBecomeOffline``, ``ControllerBrokerRequestBatch``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.lessons.zookeeper import service
from advisor.lessons.zookeeper.service import (
    Connect,
    Create,
    Delete,
    Effect,
    GetChildren,
    GetData,
    Notification,
    Reply,
    ZooKeeper,
)
from advisor.protocol.rules import controller
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import Registration
from advisor.protocol.rules.versions import rules_for

QUEUE = "/queue"
_POLICY = Policy(min_isr=1, unclean=False, rules=rules_for("3.9", "zookeeper"))

Assignment = Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class NoticeLoad:
    """Requests to ZooKeeper or to brokers, those that write to ZooKeeper, and notifications."""

    requests: int
    writes: int
    notifications: int


def changed_by_broker(assignment: Assignment, dead: int) -> dict[int, list[int]]:
    """Partitions whose leader or ISR changes, by live broker with a replica of them."""
    live = frozenset({broker for replicas in assignment.values() for broker in replicas} - {dead})
    notices: dict[int, list[int]] = {}
    for partition, replicas in sorted(assignment.items()):
        record = Registration(tuple(replicas), tuple(replicas), replicas[0])
        if controller.broker_gone(record, dead, live, _POLICY) != record:
            for broker in live.intersection(replicas):
                notices.setdefault(broker, []).append(partition)
    return dict(sorted(notices.items()))


def rpc_load(assignment: Assignment, dead: int) -> NoticeLoad:
    """Load of Kafka's own way: at most four requests for each broker, whatever the partitions."""
    brokers = {broker for replicas in assignment.values() for broker in replicas}
    requests = 0
    for leads in (True, False):
        batch = {p: r for p, r in assignment.items() if (r[0] == dead) == leads}
        told = changed_by_broker(batch, dead)
        requests += len(told) + len(brokers - {dead}) if told else 0
    return NoticeLoad(requests, 0, 0)


def queue_load(assignment: Assignment, dead: int) -> NoticeLoad:
    """Load of a queue of nodes for each broker, counted on a simulated ZooKeeper."""
    notices = changed_by_broker(assignment, dead)
    server = service.with_paths(f"{QUEUE}/{broker}" for broker in notices)
    session = {broker: place + 2 for place, broker in enumerate(notices)}
    for client in (1, *session.values()):
        server, _ = service.step(server, Connect(18_000, client))
    for broker, client in session.items():
        server, _ = service.step(server, GetChildren(client, f"{QUEUE}/{broker}", watch=True))
    sent: list[Effect] = []
    for broker, partitions in notices.items():
        for partition in partitions:
            path = f"{QUEUE}/{broker}/n"
            server, effects = service.step(server, Create(1, path, str(partition), sequential=True))
            sent += effects
    for broker, client in session.items():
        server, read = _drain(server, client, f"{QUEUE}/{broker}")
        sent += read
    replies = [effect for effect in sent if isinstance(effect, Reply)]
    writes = [reply for reply in replies if isinstance(reply.request, Create | Delete)]
    told = sum(isinstance(effect, Notification) for effect in sent)
    return NoticeLoad(len(replies), len(writes), told)


def _drain(server: ZooKeeper, client: int, path: str) -> tuple[ZooKeeper, list[Effect]]:
    """A broker lists its queue, watches it again, and reads and deletes every node."""
    server, effects = service.step(server, GetChildren(client, path, watch=True))
    sent = list(effects)
    listed = effects[-1]
    assert isinstance(listed, Reply)
    assert isinstance(listed.value, tuple)
    for child in listed.value:
        for request in (GetData(client, f"{path}/{child}"), Delete(client, f"{path}/{child}")):
            server, effects = service.step(server, request)
            sent += effects
    return server, sent
