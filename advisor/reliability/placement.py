"""Which brokers and racks hold the partitions whose reliability is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from advisor.errors import InputError
from advisor.protocol.assignment import assign
from advisor.protocol.config import Config

Replicas = tuple[int, ...]


class Brokers(Protocol):
    """Anything with brokers and their racks."""

    @property
    def brokers(self) -> Mapping[int, str | None]:
        """Broker id to rack, None where it is not known."""


@dataclass(frozen=True)
class Placement:
    """A topic's partitions, grouped by their replicas.

    Attributes
    ----------
    sets : tuple of (replicas, count)
        Replica lists in assignment order and how many partitions have each.
    brokers : int
        Of the whole cluster.
    rack_of : dict
        Rack per broker; a broker whose rack is not known stands in one of its own.
    """

    sets: tuple[tuple[Replicas, int], ...]
    brokers: int
    rack_of: Mapping[int, str]

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return sum(count for _, count in self.sets)

    def pattern(self, replicas: Replicas, ordered: bool) -> tuple[int, ...]:
        """Rack numbers of a replica list.

        Parameters
        ----------
        replicas : tuple of int
        ordered : bool
            Keep the order of the assignment, which decides unclean elections; otherwise the
            fullest rack comes first, so that like sets share one chain.
        """
        racks = [self.rack_of[broker] for broker in replicas]
        if ordered:
            names = list(dict.fromkeys(racks))
            return tuple(names.index(rack) for rack in racks)
        sizes = sorted(map(racks.count, set(racks)), reverse=True)
        return tuple(rack for rack, size in enumerate(sizes) for _ in range(size))


def place(
    cluster: Brokers,
    config: Config,
    partitions: int,
    placement: tuple[Replicas, ...] | None = None,
) -> Placement:
    """Place a topic as Kafka would, or take the placement that it has.

    Parameters
    ----------
    cluster : Brokers
    config : Config
        Its replication factor, and its mode for the algorithm.
    partitions : int
        Ignored when ``placement`` is given.
    placement : tuple of tuple of int, optional
        Replicas of each partition.

    Raises
    ------
    InputError
        If Kafka would refuse: more replicas than brokers; or a replica on an unknown broker.
    """
    racks = {
        broker: f"rack {rack}" if rack is not None else f"broker {broker}"
        for broker, rack in cluster.brokers.items()
    }
    if placement is None:
        assert config.replication_factor is not None
        brokers, striped = tuple(cluster.brokers.items()), config.mode == "kraft"
        sets = _as_kafka_would(brokers, partitions, config.replication_factor, striped)
    else:
        lists = Counter(tuple(replicas) for replicas in placement)
        for replicas in lists:
            _check(replicas, config, racks)
        sets = tuple(lists.items())
    return Placement(sets, len(racks), racks)


@lru_cache(maxsize=64)
def _as_kafka_would(
    brokers: tuple[tuple[int, str | None], ...],
    partitions: int,
    replication_factor: int,
    striped: bool,
) -> tuple[tuple[Replicas, int], ...]:
    """Many settings are asked about on one cluster; its placement stays."""
    known = all(rack is not None for _, rack in brokers)
    table = assign(
        {broker: rack if known else None for broker, rack in brokers},
        partitions=partitions,
        replication_factor=replication_factor,
        algorithm="striped" if striped else "rack_alternated",
    )
    return tuple(Counter(tuple(replicas) for replicas in table.values()).items())


def _check(replicas: Replicas, config: Config, racks: Mapping[int, str]) -> None:
    unknown = [broker for broker in replicas if broker not in racks]
    if unknown:
        raise InputError(f"placement {list(replicas)}: broker {unknown[0]} is not in the cluster")
    if len(set(replicas)) != len(replicas):
        raise InputError(f"placement {list(replicas)}: a broker holds two replicas")
    if len(replicas) != config.replication_factor:
        raise InputError(
            f"placement {list(replicas)} has {len(replicas)} replicas, "
            f"replication_factor={config.replication_factor}"
        )
