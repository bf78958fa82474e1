"""Which brokers of a described cluster run, as far as the description shows."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.cluster.model import Cluster


@dataclass(frozen=True)
class Presence:
    """Brokers that are in sync somewhere, and those that are not.

    in_sync: in the ISR of a partition that has a leader, and not reported as down.
    down: a running cluster reports that they are fenced or not registered.
    behind: in no such ISR, though a running cluster reports that they run.
    unknown: in no such ISR of a description that does not show whether they run: down, or behind.
    offline: in no such ISR, and not serving some replica: described as offline, or in the last ISR
        of a partition without a leader. They are down, or their log directories have failed.
    failed_directories: in sync somewhere, and with replicas that are described as offline.
    part: whether the description shows a part of the cluster: the brokers may be in sync elsewhere.
    """

    in_sync: frozenset[int] = frozenset()
    down: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    failed_directories: tuple[int, ...] = ()
    part: bool = False

    @property
    def missing(self) -> tuple[int, ...]:
        """Brokers with replicas that are in no ISR, or that are down."""
        return tuple(sorted({*self.down, *self.behind, *self.unknown, *self.offline}))


def presence_of(cluster: Cluster) -> Presence:
    """Return which brokers are in sync somewhere; an ISR without a leader proves nothing."""
    partitions = [partition for topic in cluster.elected for partition in topic.partitions]
    observed = cluster.observed
    down = frozenset(() if observed is None else observed.down)
    in_sync = {b for p in partitions if p.leader is not None for b in p.isr} - down
    absent = {b for p in partitions for b in p.held} - in_sync - down
    not_serving = {b for p in partitions for b in p.offline}
    last = {b for p in partitions if p.leader is None for b in p.isr}
    offline = absent & (not_serving | last) if observed is None else frozenset()
    return Presence(
        in_sync=frozenset(in_sync),
        down=tuple(sorted(down)),
        behind=() if observed is None else tuple(sorted(absent)),
        unknown=tuple(sorted(absent - offline)) if observed is None else (),
        offline=tuple(sorted(offline)),
        failed_directories=tuple(sorted(in_sync & not_serving)),
        part=bool(cluster.part),
    )
