"""Planned restarts: one broker at a time, and as often as the card says."""

import pytest

from advisor import Cluster, Config, Workload, evaluate
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.mechanisms import table
from sampled_runs import YEAR, card, sample

QUIET = Workload(records_per_second=1.0, replication_delay_ms=0.0)


def busy(per_year: float, minutes: float):
    return card(broker_restart={"per_year": per_year, "minutes": minutes})


@pytest.mark.parametrize("brokers", [3, 6, 30])
def test_a_calendar_of_restarts_is_kept(brokers: int) -> None:
    """With min ISR = RF = 3, writes stop for three brokers' restarts, which never overlap."""
    per_year, minutes = 50.0, 200.0
    config = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=3)
    found = evaluate(Cluster.uniform(brokers, 3), config, busy(per_year, minutes), QUIET)
    calendar = 3.0 * per_year * minutes / 60.0 / YEAR
    assert found.write_unavailability == pytest.approx(calendar, rel=1e-12)


def test_the_sampler_keeps_the_calendar_too() -> None:
    """The sampled share of time lies about the calendar's, in a cluster restarting half its time.

    At four standard errors; without the restarts that are put off it would be a third lower.
    """
    per_year, minutes = 50.0, 876.0
    config = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=3)
    found, _ = sample(Cluster.uniform(6, 3), config, busy(per_year, minutes), QUIET, years=500)
    calendar = 3.0 * per_year * minutes / 60.0 / YEAR
    one = found.write_unavailability
    error = (one.high - one.low) / (2.0 * 1.96)
    assert abs(one.value - calendar) < 4.0 * error
    assert error < 0.01 * calendar


def test_no_two_restart_at_once() -> None:
    """With min ISR 2 of 3, restarts alone never stop writes, however many there are."""
    config = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=2)
    model = busy(50.0, 876.0)
    found, _ = sample(Cluster.uniform(6, 3), config, model, QUIET, years=100)
    assert evaluate(Cluster.uniform(6, 3), config, model, QUIET).write_unavailability == 0.0
    assert not found.write_unavailability.seen


def test_what_fits_into_no_year_is_left_undone() -> None:
    """A hundred brokers with a day each every week restart for nine tenths of the time."""
    model = busy(52.0, 24.0 * 60.0)
    tried = transition_rates.offered_rate(
        table()["broker.restart"], model, brokers=100, together=100
    )
    share = 100.0 * tried * 24.0 / (1.0 + 100.0 * tried * 24.0)
    assert share == pytest.approx(0.9, rel=1e-12)
