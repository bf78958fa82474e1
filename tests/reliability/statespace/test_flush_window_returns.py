"""Power failures before the flush, with unclean elections: the first broker back leads."""

import math
from dataclasses import replace

import numpy as np
import pytest

import conditions
from advisor import Cluster, Config, evaluate
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.versions import rules_for
from advisor.reliability.failures import fault_processes
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.transition_table import PartitionTransitionTable
from advisor.reliability.statespace.flush_window import FlushWindowFailures
from advisor.reliability.statespace.lumping import Symmetry
from advisor.reliability.statespace.successors import EventSequences, PartitionTransitions
from sampled_runs import FAR, QUIET, YEAR, card, off_by, sample

UNCLEAN = Config(
    replication_factor=2, min_insync_replicas=2, acks="all", unclean_leader_election_enable=True
)
PAIR = Cluster.uniform(brokers=2, racks=2)


def pair(crash, crashed_hours, power, dark_hours, flush_seconds=35.0):
    """Take rates a year and mean hours of both ways to go down."""
    return card(
        broker_crash={"per_year": crash, "minutes": crashed_hours * 60.0},
        broker_power={"per_year": power, "minutes": dark_hours * 60.0},
        flush={"seconds": flush_seconds},
    )


@pytest.mark.parametrize(("crashed", "dark"), [(10.0, 0.2 / 60.0), (1.0, 10.0), (0.1, 10.0)])
def test_two_replicas_lose_by_closed_form(crashed, dark):
    """The end of the log is on the crashed broker, or unflushed records are on the leader.

    One crashes, power takes the other within the flush, and it is back first; two lose their power
    within the flush; one lost its power, and is back first after the other has failed as well,
    whenever that was. What a third failure does in an outage is left out.
    """
    per_year, flush = 1.0, 35.0 / 3600.0
    rate = per_year / YEAR
    # So many that no loss is without a record.
    load = replace(QUIET, records_per_second=1e6)
    found = evaluate(PAIR, UNCLEAN, pair(per_year, crashed, per_year, dark), load)
    dark_first = crashed / (crashed + dark)
    within = [-math.expm1(-flush / hours) * hours for hours in (crashed, dark)]
    ways = within[0] * dark_first + within[1] + dark * dark_first + dark / 2.0
    third = 8.0 * rate * max(crashed, dark)
    exact = 2.0 * per_year * rate * ways
    assert found.loss_events_per_year == pytest.approx(exact, rel=third)


@pytest.mark.parametrize(
    ("crash", "dark_minutes", "years"), [(50.0, 0.2, 200_000), (5.0, 10.0, 500_000)]
)
def test_sampled_years_lose_as_often(crash, dark_minutes, years):
    """Power is back long before the crashed broker, which alone has the end of the log."""
    model = pair(crash, 10.0, 5.0, dark_minutes / 60.0)
    exact = evaluate(PAIR, UNCLEAN, model, QUIET)
    found, _ = sample(PAIR, UNCLEAN, model, QUIET, years=years)
    assert abs(off_by(found.loss_events_per_year, exact.loss_events_per_year)) < FAR


def test_what_an_election_loses_in_any_case_is_not_charged_to_early_power():
    """Slot 0 was away and lacks more: if it is back first, power went early or late all the same.

    Slot 1 has the end of the log, slot 2 lost it. If slot 2 is back first, that is early power's.
    """
    rules = rules_for("3.9", "kraft", False)
    constants = ChainConstants(Policy(2, True, rules), "all", copying=True, page_cache=True)
    table, sequences = PartitionTransitionTable(constants, 3), EventSequences()
    transitions = PartitionTransitions(table, sequences)
    state = 0
    for slot in (0, 1):
        state, _ = table.step(state, red.CRASH, (slot,))
    spread = fault_processes.FaultEnvironment((0, 1, 2), frozenset())
    failures = FlushWindowFailures(table, sequences, transitions, Symmetry(table, spread), spread)
    dark = np.array([sequences.number(((red.POWER, (2,)),))])
    own, racks = [conditions.CRASHED, conditions.CRASHED, conditions.DARK], [0, 1, 2]
    here, brokers = np.array([state]), (np.array([own]), np.array([racks]))
    (end,) = failures.ends(here, dark, failures.early(dark), *brokers).tolist()
    rates = {"repair broker.crash": 0.5, "repair broker.power": 3.0}
    odds, renamed = failures.outages.odds([end], {name: i for i, name in enumerate(rates)})
    assert odds.of(renamed, np.array(list(rates.values()))) == pytest.approx([3.0 / 4.0])
