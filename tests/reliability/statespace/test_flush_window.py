"""Power failures after writes have stopped and before the last writes are on disk."""

import math

import numpy as np
import pytest
from scipy import integrate

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.versions import rules_for
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.reduced_state import apply, healthy
from advisor.reliability.partition.transition_table import PartitionTransitionTable
from advisor.reliability.statespace.flush_window import flush_window_loss
from advisor.reliability.statespace.successors import EventSequences, PartitionTransitions

YEAR = 8760.0
LOAD = Workload(partitions=1, records_per_second=10.0)


def constants(version="4.2", min_isr=2, elr=True, page_cache=True):
    rules = rules_for(version, "kraft", elr)
    return ChainConstants(Policy(min_isr, False, rules), "all", copying=True, page_cache=page_cache)


def lived(these, *events):
    """The partition after some events, and all the losses."""
    state, losses = healthy(2), 0
    for event, *slots in events:
        state, outcome = apply(state, event, tuple(slots), these)
        losses |= outcome.losses
    return state, losses, outcome


@pytest.mark.parametrize("first", [red.POWER, red.DESTROY])
def test_power_loss_of_the_last_page_cache_loses_the_record(first):
    """The other replica lost it with its power or disk; after the flush it would be on disk."""
    late = lived(constants(), (first, 0), (red.POWER, 1))
    early = lived(constants(), (first, 0), (red.EARLY_POWER, 1))
    assert not late[1] & Effect.PAGE_CACHE_LOSS
    assert early[1] & Effect.PAGE_CACHE_LOSS
    assert late[0] == early[0]


def test_without_a_page_cache_no_power_failure_comes_before_the_flush():
    """Everything is on disk when it is acknowledged."""
    _, losses, _ = lived(constants(page_cache=False), (red.POWER, 0), (red.EARLY_POWER, 1))
    assert losses == 0


@pytest.mark.parametrize(
    ("elr", "fall", "lost"),
    [
        (False, red.CRASH, True),
        (False, red.STOP, True),
        (True, red.CRASH, True),
        (True, red.STOP, False),
    ],
)
def test_the_end_of_the_log_is_lost_when_a_replica_without_it_leads(elr, fall, lost):
    """Slot 0 has it, and may lead only with ELR and after a clean stop."""
    these = constants("4.2" if elr else "3.9", elr=elr)
    state, losses, outcome = lived(these, (fall, 0), (red.EARLY_POWER, 1))
    assert losses == 0
    assert outcome.effects & Effect.UNFLUSHED
    assert state.level == (0, 1)
    for first in (0, 1):
        after, losses = state, 0
        for slot in (first, 1 - first):
            after, outcome = apply(after, red.BACK, (slot,), these)
            losses |= outcome.losses
        assert (losses != 0) == lost


def test_records_spared_and_then_destroyed_open_no_gap():
    """Slot 0 alone has the end of the log when power goes, and loses its disk with it."""
    table = PartitionTransitionTable(constants(), 2)
    transitions = PartitionTransitions(table, EventSequences())
    crashed, _ = table.step(0, red.CRASH, (0,))
    spared, destroyed = (
        transitions._follow_events(crashed, events)
        for events in (
            ((red.EARLY_POWER, (1,)),),
            ((red.EARLY_POWER, (1,)), (red.DESTROY, (0,))),
        )
    )
    assert spared[1] == Effect.UNFLUSHED
    assert destroyed[1] == Effect.LOSS


@pytest.mark.parametrize("out", [0.0, 1e-7, 0.3, 40.0])
def test_flush_window_loss_is_the_integral_over_the_time_of_failure(out):
    """Unless something else happens before, it loses what is not on disk yet."""
    rate, hours = 0.01, 0.2
    chance, lost = flush_window_loss(np.array([rate]), np.array([out]), np.array([hours]))
    expected, _ = integrate.quad(lambda t: rate * math.exp(-out * t), 0, hours)
    assert chance[0] == pytest.approx(expected, rel=1e-9)
    taken, _ = integrate.quad(lambda t: rate * math.exp(-out * t) * (hours - t), 0, hours)
    assert lost[0] == pytest.approx(taken, rel=1e-9)


def evaluated(config, **broker):
    card = FailureModel.from_dict({"broker": broker, "flush": {"seconds": 36.0}})
    brokers = Cluster.uniform(brokers=config.replication_factor, racks=config.replication_factor)
    return evaluate(brokers, config, card, LOAD)


def test_two_power_failures_within_the_flush_window_match_the_closed_form():
    """RF 2, min ISR 2: the second of two power failures, unless the first broker is back by then.

    A failure at t before the end T of the flush loses T - t of writes, a record with probability
    1 - exp(-r (T - t)).
    """
    per_year, hours, flush = 3.0, 2.0, 0.01
    config = Config(replication_factor=2, min_insync_replicas=2, acks="all")
    found = evaluated(config, power={"per_year": per_year, "minutes": hours * 60.0})
    fails, back = per_year / YEAR, 1.0 / hours
    # Each broker by itself is up or down.
    both = (back / (back + fails)) ** 2
    leave = fails + back
    records = LOAD.records_per_hour_per_partition
    empty = (math.exp(-leave * flush) - math.exp(-records * flush)) / (records - leave)
    chance = fails * (-math.expm1(-leave * flush) / leave - empty)
    assert found.loss_events_per_year == pytest.approx(2.0 * per_year * both * chance, rel=1e-9)
    lost = found.acked_records_lost_per_year / records
    assert lost == pytest.approx(2.0 * per_year * both * fails * flush**2 / 2.0, rel=2e-3)
    assert found.flush_window_losses_per_year == found.loss_events_per_year
    assert "100 % of them are power lost within 36 s" in found.explain()
    mean = found.mean_years_to_loss * found.loss_events_per_year
    assert mean == pytest.approx(1.0, rel=2e-3)


def test_nothing_is_acknowledged_while_acks_all_waits_for_a_lagging_follower():
    """By the time the ISR shrinks all is on disk; a shorter wait leaves some of it."""
    both = {"lag": {"per_year": 12.0, "minutes": 30.0}, "power": {"per_year": 1.0, "minutes": 5.0}}
    settings = {"replication_factor": 2, "min_insync_replicas": 2, "kafka_version": "3.9"}
    patient = evaluated(Config(**settings), **both)
    hasty = evaluated(Config(**settings, replica_lag_time_max_ms=10_000), **both)
    assert "broker.lag" not in patient.causes["loss_events_per_year"]
    waited = 1.25 * 10_000 / 3_600_000
    left = 36.0 / 3600.0 - waited
    # Only the follower of the two can lag.
    lags = 12.0 * left * 1.0 / YEAR
    assert hasty.causes["loss_events_per_year"]["broker.lag"] == pytest.approx(lags, rel=0.02)
