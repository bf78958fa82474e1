"""Which brokers of a described cluster run, as far as the description shows."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.cluster.model import Cluster


@dataclass(frozen=True)
class Presence:
    """Brokers that are in sync somewhere, and those that are not.

    Attributes
    ----------
    in_sync : frozenset of int
        In the ISR of a partition that has a leader, and not reported as down.
    down : tuple of int
        A running cluster reports that they are fenced or not registered.
    behind : tuple of int
        In no such ISR, though a running cluster reports that they run.
    unknown : tuple of int
        In no such ISR of a description that does not show whether they run: down, or behind.
    """

    in_sync: frozenset[int] = frozenset()
    down: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()

    @property
    def missing(self) -> tuple[int, ...]:
        """Brokers with replicas that are in no ISR, or that are down."""
        return tuple(sorted({*self.down, *self.behind, *self.unknown}))


def presence_of(cluster: Cluster) -> Presence:
    """Return which brokers are in sync somewhere, and what is known of the others.

    An ISR without a leader proves nothing: its members stay in it when they die. Brokers without
    replicas are not judged.

    Parameters
    ----------
    cluster : Cluster

    Examples
    --------
    >>> from advisor import load_cluster
    >>> presence_of(load_cluster("Topic: t Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1"))
    Presence(in_sync=frozenset({1}), down=(), behind=(), unknown=(2,))
    """
    partitions = [partition for topic in cluster.topics for partition in topic.partitions]
    observed = cluster.observed
    down = frozenset(() if observed is None else observed.down)
    in_sync = {b for each in partitions if each.leader is not None for b in each.isr} - down
    absent = tuple(sorted({b for each in partitions for b in each.held} - in_sync - down))
    return Presence(
        in_sync=frozenset(in_sync),
        down=tuple(sorted(down)),
        behind=() if observed is None else absent,
        unknown=absent if observed is None else (),
    )
