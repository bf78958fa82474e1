"""What is written: the load on the partitions whose reliability is asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from advisor.errors import InputError, shown

MOST_PARTITIONS = 10_000_000
"""Several times what the largest clusters hold, and what a computation can still place."""
MOST_AMOUNT = 1e18
"""Of anything else, and of the bytes that are kept: an exabyte, or far from every cluster."""

_AMOUNTS = (
    "records_per_second",
    "record_bytes",
    "retention_hours",
    "replication_delay_ms",
    "bytes_per_broker",
    "within_rack_ms",
    "between_racks_ms",
)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The traffic of one topic, spread evenly over its partitions.

    Parameters
    ----------
    partitions : int
    records_per_second : float
        Of the whole topic.
    record_bytes : int
        Mean size as stored.
    retention_hours : float
        How long records are kept; Kafka's default is a week (``log.retention.hours=168``).
    replication_delay_ms : float
        How long an acks=1 or acks=0 record stands on the leader alone before its followers have
        fetched it. A fetch that waits is answered at once, so this is a network round trip plus
        the append; it is an assumption to be measured by the user.
    bytes_per_broker : float, optional
        What a replaced broker has to copy; by default this topic's share alone.
    within_rack_ms, between_racks_ms : float
        Round trips between two brokers, for the cost alone: half a millisecond and two are our
        judgement for one building and for zones of a region. Measure your own.

    Raises
    ------
    InputError
        If a number is negative, not finite, above 1e18 or no number, if there is no partition or
        more than ten million, or if what is kept comes to more than 1e18 bytes.
    """

    partitions: int = 1
    records_per_second: float = 1000.0
    record_bytes: int = 1024
    retention_hours: float = 168.0
    replication_delay_ms: float = 5.0
    bytes_per_broker: float | None = None
    within_rack_ms: float = 0.5
    between_racks_ms: float = 2.0

    def __post_init__(self) -> None:
        whole = isinstance(self.partitions, int) and not isinstance(self.partitions, bool)
        if not whole or not 1 <= self.partitions <= MOST_PARTITIONS:
            raise InputError(
                f"partitions={shown(self.partitions)} must be a whole number from 1 to "
                f"{MOST_PARTITIONS:,}"
            )
        for name in _AMOUNTS:
            value = getattr(self, name)
            if name == "bytes_per_broker" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{name}={shown(value)} must be a number")
            # Not a number compares with nothing.
            if not 0 <= value <= MOST_AMOUNT:
                raise InputError(
                    f"{name}={shown(value)} must be a number from 0 to {MOST_AMOUNT:.0e}"
                )
        if self.retained_bytes > MOST_AMOUNT:
            raise InputError(
                f"records_per_second={self.records_per_second!r}, "
                f"record_bytes={self.record_bytes!r} and retention_hours={self.retention_hours!r} "
                f"together keep {self.retained_bytes:.1e} bytes, and {MOST_AMOUNT:.0e} is the most "
                "that can be computed; lower one of them"
            )

    @property
    def records_per_hour_per_partition(self) -> float:
        """Mean rate at which one partition is written."""
        return self.records_per_second * 3600.0 / self.partitions

    @property
    def retained_records_per_partition(self) -> float:
        """What one partition holds once it is as old as its retention."""
        return self.records_per_hour_per_partition * self.retention_hours

    @property
    def retained_bytes(self) -> float:
        """One copy of the whole topic, in bytes."""
        return self.retained_records_per_partition * self.partitions * self.record_bytes

    def to_dict(self) -> dict[str, float | None]:
        """Every field by name."""
        return asdict(self)
