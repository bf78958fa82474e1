"""Outcome of an outage by the first broker to return, and the rates that decide it."""

from itertools import permutations

import numpy as np
import pytest

import conditions
from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import BrokerEvent
from advisor.reliability.statespace.flush_window import CERTAIN_LOSS, NO_LOSS, Outages

NAMES = ("repair broker.crash", "repair broker.power", "repair broker.lag")
PLACE = {name: number for number, name in enumerate(NAMES)}
RATES = np.array([0.3, 7.0, 1.1])


def last_of_three(left):
    """Spells by number; a loss if 0 outlasts both others and 1 goes before 2."""
    for spell in left:
        rest = tuple(other for other in left if other != spell)
        if spell == 0 or (spell == 2 and 1 in rest):
            yield NAMES[spell], NO_LOSS
        elif rest == (0,):
            yield NAMES[spell], CERTAIN_LOSS
        else:
            yield NAMES[spell], (rest,)


def chance_of(outages, ends, rates=RATES):
    odds, renamed = outages.odds(ends, PLACE)
    return odds.of(renamed, rates).tolist()


def test_each_order_of_return_has_the_chance_of_its_rates():
    """Only 1, 2, 0 loses: the first of three at its rate, then the first of two."""
    outages = Outages()
    end = outages.end((0, 1, 2), last_of_three)
    by_hand = {}
    for order in permutations(range(3)):
        left, chance = RATES.sum(), 1.0
        for spell in order:
            chance *= RATES[spell] / left
            left -= RATES[spell]
        by_hand[order] = chance
    assert sum(by_hand.values()) == pytest.approx(1.0)
    assert chance_of(outages, [end]) == pytest.approx([by_hand[1, 2, 0]], rel=1e-14)
    assert set(outages.names([end])) == set(NAMES)


def test_what_the_order_does_not_change_needs_no_rates():
    """If any first return loses the same, nothing or everything, no outage is kept."""
    outages = Outages()
    assert outages.end("spared", lambda _: [(NAMES[0], NO_LOSS), (NAMES[1], NO_LOSS)]) == NO_LOSS
    assert (
        outages.end("lost", lambda _: [(NAMES[0], CERTAIN_LOSS), (NAMES[1], CERTAIN_LOSS)])
        == CERTAIN_LOSS
    )
    assert outages.end("for ever", lambda _: []) == NO_LOSS
    assert outages.names([CERTAIN_LOSS, NO_LOSS]) == []
    assert chance_of(outages, [CERTAIN_LOSS, NO_LOSS, CERTAIN_LOSS]) == [1.0, 0.0, 1.0]


def test_only_outages_that_are_asked_for_are_taken_along():
    """Each under a number of its own there, whatever was met before it."""
    outages = Outages()
    ends = [
        outages.end(
            (first, second), lambda key: [(NAMES[key[0]], CERTAIN_LOSS), (NAMES[key[1]], NO_LOSS)]
        )
        for first, second in ((0, 1), (1, 2), (2, 0))
    ]
    odds, renamed = outages.odds([ends[2], CERTAIN_LOSS, ends[1], ends[2]], PLACE)
    assert odds.outages == 2
    fast, slow, mid = RATES[1], RATES[0], RATES[2]
    expected = [mid / (mid + slow), 1.0, fast / (fast + mid), mid / (mid + slow)]
    assert odds.of(renamed, RATES) == pytest.approx(expected, rel=1e-14)
    assert set(outages.names([ends[2]])) == {NAMES[2], NAMES[0]}


def test_what_can_end_is_what_can_happen_without_failures():
    """Spells of brokers end one by one, a rack's brokers come back together."""
    mechanisms = frozenset({"broker.crash", "rack.network", "rack.power"})
    brokers = fault_processes.BrokerStates(
        (
            conditions.CRASHED,
            conditions.ISOLATED,
            conditions.ISOLATED,
            conditions.RACK_DARK,
            conditions.GONE,
        ),
        (0, 1, 1, 2, 2),
    )
    environment = fault_processes.FaultEnvironment(brokers.racks, mechanisms)
    everything = fault_processes.changes(brokers, environment)
    ends = list(fault_processes.ends(brokers, environment))
    assert sorted(ends) == sorted(c for c in everything if c.rate.startswith("repair "))
    assert ((BrokerEvent.BACK, (1, 2)),) in [end.events for end in ends]
    assert len(ends) == 4
