"""Wait until a real cluster is quiescent: stable, with no timeout that can still change it.

Two equal snapshots prove little: a session may be about to expire, or follower lag to be detected.
So pending work is derived from the snapshot; if there is any, the cluster must stay unchanged for
as long as its longest timeout.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.node_properties import ClusterTimeouts
from advisor.kafka_lab.observation.snapshot import Snapshot
from advisor.protocol.log.replica_log import EMPTY, Log
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration

_POLL_INTERVAL_S = 0.25
# At least five fetches, so that followers know the high watermark.
_STABLE_FOR_S = 1.0
_MAX_WAIT_S = 120.0
# Reconnecting may take longer than a timeout on a loaded machine.
_POSSIBLE, _POSSIBLE_FACTOR = "may join the ISR", 4
_CERTAIN = ("is to be fenced", "is to serve", "is to register", "is to stop", "is to join the ISR")


@dataclass(frozen=True)
class OpenFaults:
    """Faults that were injected and not repaired yet, which a snapshot does not show.

    isolated: brokers disconnected from the other nodes.
    lagging: brokers that cannot fetch.
    limping: brokers that cannot fetch and cannot be fetched from.
    has_quorum: whether there is a controller.
    waiting: brokers that wait to register, or whose last life is still to be fenced.
    stopping: brokers that were told to stop while there was no controller.
    """

    isolated: frozenset[int] = frozenset()
    lagging: frozenset[int] = frozenset()
    limping: frozenset[int] = frozenset()
    has_quorum: bool = True
    waiting: frozenset[int] = frozenset()
    stopping: frozenset[int] = frozenset()

    def cut(self, follower: int, leader: int) -> bool:
        """Return whether a follower cannot fetch from a leader."""
        return follower in self.lagging | self.limping or leader in self.limping


def pending_work(snapshot: Snapshot, faults: OpenFaults) -> list[str]:
    """Return the changes that are still to come without further events, one sentence each.

    Without a controller only copying goes on.
    """
    live = snapshot.running - faults.isolated
    serving = snapshot.controller.serving
    pending = [f"broker {b} is to stop" for b in sorted(faults.stopping & snapshot.running)]
    if faults.has_quorum:
        pending += [f"broker {b} is to be fenced" for b in sorted(serving - live)]
        pending += [f"broker {b} is to serve" for b in sorted(live - serving)]
        pending += [f"broker {b} is to register" for b in sorted(live & serving & faults.waiting)]
    for (topic, number), record in sorted(snapshot.controller.registrations.items()):
        name = f"{topic}-{number}"
        pending += [
            f"{name}: {what}"
            for what in _pending_for_partition(snapshot, faults, topic, number, record)
        ]
    return pending


def _pending_for_partition(
    snapshot: Snapshot, faults: OpenFaults, topic: str, number: int, record: Registration
) -> list[str]:
    live = snapshot.running - faults.isolated
    leader = record.leader
    leads = snapshot.high_watermarks.get((topic, number)) is not None
    if leader == NO_LEADER or not (faults.has_quorum or (leader in live and leads)):
        return []
    if leader not in live:
        return [f"leader {leader} is gone"]
    if not leads:
        return [f"broker {leader} does not lead yet"]
    log = snapshot.logs.get((leader, topic, number), EMPTY)
    pending = []
    if not log.epochs or log.epochs[-1].epoch != record.leader_epoch:
        pending.append(f"broker {leader} has not begun epoch {record.leader_epoch}")
    followers = [b for b in record.replicas if b in live and b != leader]
    if not faults.has_quorum:
        followers = [b for b in followers if b not in faults.waiting and not faults.cut(b, leader)]
    for broker in followers:
        copy = snapshot.logs.get((broker, topic, number), EMPTY)
        pending += _pending_for_replica(broker, leader, record, _same(copy, log), faults)
    if record.adding or record.removing:
        # A reassignment completes once all added replicas are in sync.
        blocked = [b for b in record.adding if b not in live or faults.cut(b, leader)]
        pending += [] if blocked or not faults.has_quorum else ["a reassignment is to end"]
    return pending


def _pending_for_replica(
    broker: int, leader: int, record: Registration, same: bool, faults: OpenFaults
) -> list[str]:
    """Return the pending changes of a live follower."""
    if faults.cut(broker, leader):
        # Even an equal log leaves the ISR of a new leader, which has not seen it fetch.
        return [f"broker {broker} may leave the ISR"] if broker in record.isr else []
    if not same:
        return [f"broker {broker} is to copy"]
    if broker in record.isr or not faults.has_quorum:
        return []
    # The leader sends AlterPartition to the controller, which a lagging one may not reach.
    how = "may" if leader in faults.lagging else "is to"
    return [f"broker {broker} {how} join the ISR"]


def _same(one: Log, two: Log) -> bool:
    return one.leo == two.leo and one.runs == two.runs


def wait_until_quiescent(
    read: Callable[[], Snapshot],
    faults: Callable[[], OpenFaults],
    timeouts: ClusterTimeouts,
    max_wait_s: float = _MAX_WAIT_S,
) -> Snapshot:
    """Take snapshots until the cluster is quiescent, and return the last one."""
    began = since = time.monotonic()
    last = read()
    while True:
        time.sleep(_POLL_INTERVAL_S)
        current = read()
        now_s = time.monotonic()
        if current != last:
            last, since = current, now_s
        pending = pending_work(current, faults())
        stable_for_s = now_s - since
        factor = _POSSIBLE_FACTOR if any(what.endswith(_POSSIBLE) for what in pending) else 1
        needed_s = _STABLE_FOR_S + (factor * timeouts.longest_timer_ms / 1000 if pending else 0)
        # These always happen, however long it takes on a loaded machine.
        certain = any(what.endswith(_CERTAIN) for what in pending)
        if stable_for_s >= needed_s and not certain:
            return current
        if now_s - began > max_wait_s:
            what = "; ".join(pending) or "it keeps changing"
            raise BrokersUnavailableError(
                f"the cluster did not come to rest within {max_wait_s:g} s: {what}"
            )
