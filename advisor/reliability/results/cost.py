"""Cost of a configuration: bytes stored, bytes sent, a coarse acknowledgement latency."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from advisor.formatting import significant
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.placement import Brokers, Placement
from advisor.reliability.workload import Workload
from advisor.tables import html_paragraphs

_UNITS = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


@dataclass(frozen=True, repr=False)
class Cost:
    """Cost of a workload's copies while every replica is in sync.

    Attributes
    ----------
    bytes_stored : float
        All copies of all partitions at full retention.
    bytes_per_second_between_brokers : float
        Fetched by followers; producers and consumers come on top.
    bytes_per_second_between_racks : float or None
        The part fetched from another rack; None if a broker's rack is unknown.
    acknowledgement_ms : float
        Mean over partitions of a round trip from the leader to its slowest follower, in ms. No
        queues, disks or batching; the round trip of the producer comes on top. 0 unless acks=all.
    """

    bytes_stored: float
    bytes_per_second_between_brokers: float
    bytes_per_second_between_racks: float | None
    acknowledgement_ms: float

    @property
    def summary(self) -> str:
        """One sentence."""
        waits = "no acknowledgement waits for followers"
        if self.acknowledgement_ms:
            added = significant(self.acknowledgement_ms)
            waits = f"acks=all adds about {added} ms of latency (round trips only)"
        return (
            f"{in_bytes(self.bytes_stored)} stored; followers fetch "
            f"{in_bytes(self.bytes_per_second_between_brokers)}/s, "
            f"{self.between_racks_text}; {waits}."
        )

    @property
    def between_racks_text(self) -> str:
        """The traffic between racks, in words."""
        if self.bytes_per_second_between_racks is None:
            return "racks unknown"
        return f"{in_bytes(self.bytes_per_second_between_racks)}/s of it across racks"

    def to_dict(self) -> dict[str, float | None]:
        """Return every field by name."""
        return asdict(self)

    def __repr__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        return html_paragraphs([self.summary]).text


def cost_of(config: Config, load: Workload, where: Placement, cluster: Brokers) -> Cost:
    """Price a configuration; an unknown rack counts as another rack.

    A follower's next fetch confirms a record: one round trip
    (``Partition.maybeIncrementLeaderHW``).
    """
    assert config.replication_factor is not None
    sent = load.records_per_second * load.record_bytes
    followers, crossing = config.replication_factor - 1, where.cross_rack_followers
    partitions = sum(crossing.values())
    racks_are_known = None not in cluster.brokers.values()
    away = sum(number * count for number, count in crossing.items()) / partitions
    waits = (
        count * _wait_ms(followers - number, number, config, load)
        for number, count in crossing.items()
    )
    return Cost(
        bytes_stored=load.retained_bytes * config.replication_factor,
        bytes_per_second_between_brokers=sent * (config.replication_factor - 1),
        bytes_per_second_between_racks=sent * away if racks_are_known else None,
        acknowledgement_ms=math.fsum(waits) / partitions,
    )


def _wait_ms(near: int, away: int, config: Config, load: Workload) -> float:
    """Round trip to the slowest follower."""
    if config.acks != "all":
        return 0.0
    trips = [load.within_rack_ms] * (near > 0) + [load.between_racks_ms] * (away > 0)
    return max(trips, default=0.0)


def in_bytes(amount: float) -> str:
    """Format bytes with two digits.

    >>> in_bytes(1.85e12), in_bytes(999_999), in_bytes(0)
    ('1.9 TB', '1 MB', '0 bytes')
    """
    rounded = float(f"{amount:.1e}")
    for size, unit in _UNITS:
        if rounded >= size:
            return f"{significant(amount / size)} {unit}"
    return f"{significant(amount)} bytes"
