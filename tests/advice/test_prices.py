"""What a configuration costs a month, against sums made by hand."""

import math
from collections.abc import Callable

import pytest

import advisor
from advisor.advice.prices import Prices, load_prices, monthly_cost
from advisor.reliability.results.reliability import Reliability

CARD = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})
PRICES = Prices(storage_usd_per_gb_month=0.1, between_zones_usd_per_gb=0.02, source="made up")
# 10 MB a second are 26,298 GB a month; a day of it is 864 GB.
LOAD = advisor.Workload(records_per_second=1e4, record_bytes=1000, retention_hours=24)
GB = 26_298.0


def found(zones: int, factor: int) -> Reliability:
    cluster = advisor.Cluster.uniform(brokers=6, racks=zones)
    config = advisor.Config(replication_factor=factor, min_insync_replicas=1, acks="all")
    return advisor.evaluate(cluster, config, CARD, LOAD)


@pytest.mark.parametrize(
    ("zones", "factor", "nearest", "storage", "replicated_gb", "sent_gb"),
    [
        (3, 3, False, 3 * 86.4, 2 * GB, GB * (2 / 3 + 2 * 2 / 3)),
        (3, 3, True, 3 * 86.4, 2 * GB, GB * 2 / 3),
        (3, 2, True, 2 * 86.4, GB, GB * (2 / 3 + 2 * 1 / 3)),
        (1, 3, False, 3 * 86.4, 0.0, 0.0),
    ],
)
def test_costs_are_those_made_by_hand(
    zones: int, factor: int, nearest: bool, storage: float, replicated_gb: float, sent_gb: float
) -> None:
    """Two consumers; storage at 0.1 USD, traffic between zones at 0.02 USD a GB."""
    cost = monthly_cost(found(zones, factor), PRICES, consumers=2, fetch_from_nearest=nearest)
    assert cost.storage_usd == pytest.approx(storage)
    assert cost.replication_usd == pytest.approx(0.02 * replicated_gb)
    assert cost.clients_usd == pytest.approx(0.02 * sent_gb)
    assert cost.total_usd == cost.storage_usd + cost.replication_usd + cost.clients_usd


def test_headroom_is_disk_only() -> None:
    """Disks twice as large as what retention fills cost twice as much; traffic stays."""
    plain, roomy = (monthly_cost(found(3, 3), PRICES, headroom=room) for room in (1.0, 2.0))
    assert roomy.storage_usd == pytest.approx(2 * plain.storage_usd)
    assert (roomy.replication_usd, roomy.clients_usd) == (plain.replication_usd, plain.clients_usd)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: load_prices("moon"),
        lambda: load_prices("azure"),
        lambda: Prices(storage_usd_per_gb_month=-1, between_zones_usd_per_gb=0, source=""),
        lambda: Prices(storage_usd_per_gb_month=math.nan, between_zones_usd_per_gb=0, source=""),
        lambda: Prices(storage_usd_per_gb_month=10**400, between_zones_usd_per_gb=0, source=""),
        lambda: monthly_cost(found(3, 3), PRICES, headroom=0.5),
        lambda: monthly_cost(found(3, 3), PRICES, consumers=-1),
    ],
)
def test_what_has_no_price_is_refused(refused: Callable[[], object]) -> None:
    """A sentence instead of a wrong sum."""
    with pytest.raises(advisor.AdvisorError):
        refused()
