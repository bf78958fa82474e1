"""What a configuration costs a month: dated list prices, which users replace by their own.

The bytes come from `Reliability.cost`. Whatever `acks` says, followers fetch the same bytes.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass, fields

from advisor import catalog
from advisor.errors import InputError, shown
from advisor.formatting import significant
from advisor.reliability.results.reliability import Reliability

_FILE = "prices.csv"
_BYTES_PER_GB = 1e9
_SECONDS_PER_MONTH = 365.25 * 86_400 / 12


@dataclass(frozen=True, kw_only=True)
class Prices:
    """List prices of one provider, in US dollars.

    storage_usd_per_gb_month: a GB of disk for a month.
    between_zones_usd_per_gb: a GB from one zone to another, both sides together.
    """

    storage_usd_per_gb_month: float
    between_zones_usd_per_gb: float
    source: str

    def __post_init__(self) -> None:
        for field in fields(self)[:2]:
            value = getattr(self, field.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 <= value <= sys.float_info.max:
                raise InputError(f"{field.name}={shown(value)}: give a price of 0 or more, in USD")

    def __repr__(self) -> str:
        return (
            f"Prices(storage {significant(self.storage_usd_per_gb_month)} USD/GB and month, "
            f"between zones {significant(self.between_zones_usd_per_gb)} USD/GB; {self.source})"
        )


@dataclass(frozen=True)
class MonthlyCost:
    """What the copies of a workload cost a month, in US dollars.

    storage_usd: all copies at full retention, on disks that are `headroom` times as large.
    replication_usd, clients_usd: traffic between zones: what followers fetch, and what producers
        and consumers send.
    """

    storage_usd: float
    replication_usd: float
    clients_usd: float

    @property
    def total_usd(self) -> float:
        """The sum."""
        return self.storage_usd + self.replication_usd + self.clients_usd


def load_prices(name: str = "aws-us-east-1") -> Prices:
    """Return the list prices of a row of ``data/prices.csv``: "aws-us-east-1" or "gcp-us"."""
    with catalog.data_path(_FILE).open(encoding="utf-8", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    if name not in rows:
        raise InputError(f"{shown(name)} is not one of the price lists {', '.join(rows)}")
    row = rows[name]
    if not row["storage_usd_per_gb_month"]:
        raise InputError(f"the price list {name} has no price for storage: {row['note']}")
    return Prices(
        storage_usd_per_gb_month=float(row["storage_usd_per_gb_month"]),
        between_zones_usd_per_gb=float(row["between_zones_usd_per_gb"]),
        source=f"{row['provider']}, {row['region']}, {row['retrieved']}",
    )


def monthly_cost(
    result: Reliability,
    prices: Prices,
    *,
    consumers: float = 1.0,
    fetch_from_nearest: bool = False,
    headroom: float = 1.0,
) -> MonthlyCost:
    """Return what storing and copying a workload costs a month.

    With z zones, a client and its leader are in different ones for (z - 1) / z of the traffic; a
    consumer that reads from its own zone needs another only where that has no replica, taking them
    to be spread over as many zones as there are replicas.

    consumers: how often each record is read.
    fetch_from_nearest: whether consumers read from a replica in their own zone (``client.rack``,
        KIP-392).
    headroom: size of the disks over what full retention fills, at least 1.
    """
    if not consumers >= 0 or not headroom >= 1:
        raise InputError(
            f"consumers={shown(consumers)} must be at least 0, "
            f"headroom={shown(headroom)} at least 1"
        )
    cost = result.cost
    if cost.bytes_per_second_between_racks is None:
        raise InputError("the rack of a broker is not known, so traffic between zones is not")
    zones = len(result.cluster.racks)
    bytes_per_second = result.load.records_per_second * result.load.record_bytes
    factor = result.config.replication_factor or 1
    readers_zones = min(factor, zones) if fetch_from_nearest else 1
    crossing_bytes = (zones - 1 + consumers * (zones - readers_zones)) / zones * bytes_per_second
    monthly = _SECONDS_PER_MONTH / _BYTES_PER_GB * prices.between_zones_usd_per_gb
    return MonthlyCost(
        cost.bytes_stored / _BYTES_PER_GB * headroom * prices.storage_usd_per_gb_month,
        cost.bytes_per_second_between_racks * monthly,
        crossing_bytes * monthly,
    )
