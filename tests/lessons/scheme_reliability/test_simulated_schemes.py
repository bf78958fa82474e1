"""Records that other schemes lose: a simulation that shares no code with the chain."""

import math
from collections.abc import Mapping

import numpy as np
import pytest

from advisor import Cluster, Config, FailureModel, Workload
from advisor.lessons.scheme_reliability.comparison import SchemeRow, compare_schemes
from advisor.lessons.scheme_reliability.quorum_rules import SCHEMES
from sampled_runs import FAR, card
from scheme_twin import Life

YEAR = 8760.0
FLUSH_HOURS, PATIENCE_HOURS = 0.01, 2.0
# Simulated cases: yearly rates, mean hours, retention. Stale logs; destroyed disks.
GAPS = ({"crash": 300, "power": 100, "lag": 200}, {"crash": 10, "power": 5, "lag": 3}, 30.0)
DISKS = (
    {"crash": 300, "power": 100, "destroyed": 60},
    {"crash": 10, "power": 5, "destroyed": 12},
    1.0,
)
# Power fails often, and soon after writing has stopped.
CUTS = ({"crash": 1000, "power": 1000}, {"crash": 4, "power": 4}, 30.0)
# ... and takes longer to return than from a crash.
LONG_CUTS = ({"crash": 2000, "power": 600}, {"crash": 0.5, "power": 8}, 30.0)
LONG_FLUSH_HOURS = 0.1


def rows(
    model: FailureModel, replicas: int, load: Workload, **settings: object
) -> Mapping[str, SchemeRow]:
    config = Config(
        **{"replication_factor": replicas, "min_insync_replicas": 1, "acks": "all", **settings}
    )
    # The other schemes have no controller quorum: Kafka's is out of reach.
    elsewhere = {101: "x", 102: "y", 103: "z"}
    cluster = Cluster.uniform(brokers=replicas, racks=replicas, controllers=elsewhere)
    return {row.name: row for row in compare_schemes(cluster, config, model, load)}


def simulated(
    name: str,
    rates: Mapping[str, float],
    hours: Mapping[str, float],
    load: Workload,
    years: float,
    replicas: int = 3,
    flush_hours: float = FLUSH_HOURS,
) -> list[tuple[float, float, float, float]]:
    """Records lost, loss events, records refused and write unavailability, for each run."""
    found = []
    for number in range(32):
        life = Life(
            scheme=name,
            replicas=replicas,
            rates={what: rate / YEAR for what, rate in rates.items()},
            hours=dict(hours),
            flush_hours=flush_hours,
            retention_hours=load.retention_hours,
            patience_hours=PATIENCE_HOURS,
            records_per_hour=load.records_per_hour_per_partition,
            rng=np.random.default_rng([7, number]),
        )
        life.live(years / 32 * YEAR)
        span = life.now / YEAR
        amounts = (life.lost / span, life.losses / span, life.refused / span)
        found.append((*amounts, 1.0 - life.written / life.now))
    return found


@pytest.mark.parametrize(("rates", "hours", "kept"), [GAPS, DISKS])
@pytest.mark.parametrize("name", SCHEMES)
def test_simulated_schemes_lose_as_much(
    name: str, rates: dict[str, float], hours: dict[str, float], kept: float
) -> None:
    """A simulation with offsets instead of levels loses and refuses as much, within its error.

    Disks are destroyed with a retention much shorter than every outage, since the chain treats
    losses of whole logs as a Poisson process, which successive losses are not.
    """
    mechanisms = {
        f"broker_{what}": {"per_year": rate}
        | ({"hours": hours[what]} if what == "destroyed" else {"minutes": hours[what] * 60})
        for what, rate in rates.items()
    }
    load = Workload(records_per_second=1 / 3600, replication_delay_ms=0.0, retention_hours=kept)
    model = card(**mechanisms, flush={"seconds": FLUSH_HOURS * 3600})
    row = rows(model, 3, load, delivery_timeout_ms=int(PATIENCE_HOURS * 3.6e6))[name]
    drawn = np.array(simulated(name, rates, hours, load, years=80))
    mean, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / math.sqrt(len(drawn))
    exact = [
        row.acked_records_lost_per_year,
        row.loss_events_per_year,
        row.records_refused_per_year,
        row.write_unavailability,
    ]
    assert (np.abs(mean - exact) <= FAR * error).all(), (mean, exact, error)


@pytest.mark.parametrize(
    ("name", "replicas", "case", "years"),
    [("synchronous", 2, CUTS, 40), ("majority", 3, CUTS, 40), ("majority", 3, LONG_CUTS, 50)],
)
def test_simulated_flush_window_losses_are_as_frequent(
    name: str,
    replicas: int,
    case: tuple[dict[str, float], dict[str, float], float],
    years: float,
) -> None:
    """The simulation has no rule for early power: it tracks when each record was written.

    Two synchronous replicas lose in no other way. For a majority the chain neglects that power
    failures may lose the same records twice, so only its loss events are compared, and with so many
    records that none of them is without.
    """
    rates, hours, kept = case
    load = Workload(records_per_second=1e6, replication_delay_ms=0.0, retention_hours=kept)
    mechanisms = {
        f"broker_{what}": {"per_year": rate, "minutes": hours[what] * 60}
        for what, rate in rates.items()
    }
    model = card(**mechanisms, flush={"seconds": LONG_FLUSH_HOURS * 3600})
    row = rows(model, replicas, load)[name]
    drawn = np.array(simulated(name, rates, hours, load, years, replicas, LONG_FLUSH_HOURS))
    mean, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / math.sqrt(len(drawn))
    assert abs(mean[1] - row.loss_events_per_year) <= FAR * error[1]
    if name == "synchronous":
        hours = row.acked_records_lost_per_year / load.records_per_hour_per_partition
        assert abs(mean[0] - hours) <= FAR * error[0]
