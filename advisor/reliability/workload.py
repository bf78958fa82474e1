"""The workload of a topic: partitions, traffic, retention and round trips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from advisor.arguments import suggestion, suggests_names
from advisor.errors import InputError, shown
from advisor.value_tables import FieldTable

MOST_PARTITIONS = 10_000_000
"""Several times what the largest clusters hold, and still few enough to place one by one."""
MOST_AMOUNT = 1e18
"""Upper limit of every other number, and of the bytes retained: an exabyte."""
_NIGHT, _EDGE, _DAY = 0.25, 1.0, 2.0
SHAPES = MappingProxyType(
    {
        "even": (1.0,) * 24,
        "office hours": (
            *(_NIGHT,) * 7,
            *(_EDGE,) * 2,
            *(_DAY,) * 9,
            *(_EDGE,) * 2,
            *(_NIGHT,) * 4,
        ),
    }
)
"""Traffic of each hour of the day, relative; our judgement: measure your own."""

_AMOUNTS = (
    "records_per_second",
    "record_bytes",
    "retention_hours",
    "replication_delay_ms",
    "bytes_per_broker",
    "within_rack_ms",
    "between_racks_ms",
)


@suggests_names
@dataclass(frozen=True, kw_only=True)
class Workload(FieldTable):
    """The traffic of one topic, spread evenly over its partitions.

    Parameters
    ----------
    partitions : int
        Number of partitions of the topic.
    records_per_second : float
        Produce rate of the whole topic, in records per second.
    record_bytes : int
        Mean size of a record as stored, in bytes.
    retention_hours : float
        Retention time in hours; Kafka's default is a week (``log.retention.hours=168``).
    replication_delay_ms : float
        Milliseconds for which an acks=1 or acks=0 record exists on the leader alone, before its
        followers have fetched it. A waiting fetch is answered at once, so this is a network round
        trip plus the append. An assumption: measure your own.
    bytes_per_broker : float, optional
        Bytes that a replaced broker has to copy; by default its share of this topic alone.
    within_rack_ms : float
        Round trip between two brokers of a rack, in milliseconds; used for the cost only. The
        default is our judgement for one building.
    between_racks_ms : float
        Round trip between two racks, in milliseconds; used for the cost only. The default is our
        judgement for zones of one region.
    hourly : "office hours", "even" or 24 numbers, optional
        Traffic of each hour of the day from 0:00 on, relative; only the ratios count. The hours
        are those of the clock by which a calendar of rolling restarts is read. `simulate` and
        `patching` use it; for `evaluate` every hour has the mean traffic, since failures at random
        hit all hours evenly. Default: even.

    Raises
    ------
    InputError
        If a field is not a number, negative, not finite or above 1e18; if ``partitions`` is not
        from 1 to ten million; or if the topic retains more than 1e18 bytes.

    See Also
    --------
    advisor.evaluate : Reliability of a configuration under a workload.

    Examples
    --------
    >>> load = Workload(partitions=2, records_per_second=10.0, record_bytes=100)
    >>> load.records_per_hour_per_partition
    18000.0
    >>> load.retained_bytes
    604800000.0
    """

    partitions: int = 1
    records_per_second: float = 1000.0
    record_bytes: int = 1024
    retention_hours: float = 168.0
    replication_delay_ms: float = 5.0
    bytes_per_broker: float | None = None
    within_rack_ms: float = 0.5
    between_racks_ms: float = 2.0
    hourly: str | Sequence[float] | None = None

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
            # Written so that NaN fails too.
            if not 0 <= value <= MOST_AMOUNT:
                raise InputError(
                    f"{name}={shown(value)} must be a number from 0 to {MOST_AMOUNT:.0e}"
                )
        if self.hourly is not None:
            object.__setattr__(self, "hourly", _checked_hours(self.hourly))
        if self.retained_bytes > MOST_AMOUNT:
            raise InputError(
                f"records_per_second={self.records_per_second!r}, "
                f"record_bytes={self.record_bytes!r} and retention_hours={self.retention_hours!r} "
                f"together keep {self.retained_bytes:.1e} bytes, and {MOST_AMOUNT:.0e} is the most "
                "that can be computed; lower one of them"
            )

    @property
    def hourly_traffic(self) -> tuple[float, ...]:
        """Traffic of each hour of the day in units of the mean; () if it is even."""
        shape = SHAPES.get(self.hourly) if isinstance(self.hourly, str) else self.hourly
        if shape is None or len(set(shape)) == 1:
            return ()
        mean = math.fsum(shape) / len(shape)
        return tuple(hour / mean for hour in shape)

    @property
    def records_per_hour_per_partition(self) -> float:
        """Produce rate of one partition, in records per hour."""
        return self.records_per_second * 3600.0 / self.partitions

    @property
    def retained_records_per_partition(self) -> float:
        """Records that one partition holds once it is older than its retention."""
        return self.records_per_hour_per_partition * self.retention_hours

    @property
    def retained_bytes(self) -> float:
        """Bytes that one copy of the whole topic holds."""
        return self.retained_records_per_partition * self.partitions * self.record_bytes

    def to_dict(self) -> dict[str, Any]:
        """Return every field by name; ``hourly`` only where it is given.

        Returns
        -------
        dict of str to (float, str, tuple or None)
            The units are in the names.

        See Also
        --------
        Workload : The fields.

        Examples
        --------
        >>> Workload(partitions=2).to_dict()["partitions"]
        2
        """
        fields = asdict(self)
        if self.hourly is None:
            del fields["hourly"]
        return fields


def _checked_hours(hourly: str | Sequence[float]) -> str | tuple[float, ...]:
    """Return the traffic by the hour as given, or refuse it."""
    if isinstance(hourly, str):
        if hourly in SHAPES:
            return hourly
        meant = suggestion(hourly, SHAPES)
        hint = f"did you mean {meant!r}?" if meant else f"there are {', '.join(map(repr, SHAPES))}"
        raise InputError(f"hourly={shown(hourly)} is no shape of traffic; {hint}")
    wrong = InputError(
        f"hourly={shown(hourly)} must be 24 numbers from 0, one for each hour, not all of them 0"
    )
    if not isinstance(hourly, Sequence) or len(hourly) != 24:
        raise wrong
    for number in hourly:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise wrong
        if not 0 <= number <= MOST_AMOUNT:
            raise wrong
    if not any(hourly):
        raise wrong
    return tuple(float(number) for number in hourly)
