"""What the years of a sample may be too few to show: rare outages, and the loss of whole logs.

The card says how often they come and how long they last, so that upper ends can allow for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanism import HANGING, Mechanism
from advisor.reliability.failures.mechanisms import BrokerEvent, Scope
from advisor.reliability.results.sampled import Estimate
from advisor.reliability.sampler.intervals.rates import NONE_SEEN
from advisor.reliability.sampler.plan import Plan

# What is expected so often is missed by one run in 150.
_SURELY_SEEN = 5.0


class OutageShares(NamedTuple):
    """Shares of all time with an outage of a partition's brokers, at the most.

    unseen: by those expected less than five times in the sampled years.
    """

    all: float
    unseen: float


def outage_shares(plan: Plan, years: int) -> OutageShares:
    """Shares of time with an outage, by all mechanisms and by those too rare to be surely seen.

    A mechanism with rate r and mean duration d, which strikes n replicas of a partition at once,
    has one of them out for r d (1 + 1/2 + ... + 1/n) of the time at most. Whatever d is, each of
    them may take the leader along, and let acknowledgements wait for a follower.

    years: that are sampled. Cycles begin with every mechanism: for them nothing is unseen.
    """
    harmonic = sum(1.0 / n for n in range(1, plan.replicas + 1))
    # Restarts by a calendar, repairs that wait and operators add to what the card's numbers say.
    adds = plan.rolling is not None or plan.crews > 0 or plan.decisions_per_hour > 0.0
    every = unseen = 0.0
    for kind in plan.table.kinds:
        per_hour = plan.parameters_of(kind).per_hour * plan.targets(kind.scope)
        if per_hour == 0.0:
            continue
        struck = 1 if kind.scope is Scope.BROKER else plan.replicas
        hours = _hours(plan, kind) * harmonic + struck * _waits(plan, kind)
        share = per_hour * hours
        if kind.scope is Scope.BROKER:
            # Of those brokers that a partition has.
            share *= plan.replicas / len(plan.racks)
        every += share
        if plan.bias is None and per_hour * HOURS_PER_YEAR * years < _SURELY_SEEN:
            unseen += share
    return OutageShares(1.0 if adds else min(every, 1.0), min(unseen, 1.0))


def _hours(plan: Plan, entry: Mechanism) -> float:
    """Mean hours until a struck broker is back and has its logs."""
    mechanism_table = plan.table
    hours = plan.parameters_of(mechanism_table.begun[mechanism_table.condition_of(entry)]).hours
    if entry.effect is BrokerEvent.DESTROY and plan.copies_per_hour > 0.0:
        hours += 1.0 / plan.copies_per_hour
    for chance, turned in _turns(plan, entry):
        hours += chance * _hours(plan, mechanism_table[turned])
    return hours


def _turns(plan: Plan, entry: Mechanism) -> Iterator[tuple[float, str]]:
    """The outages that one may turn into, each with its probability, more than 0."""
    here = plan.parameters_of(entry)
    turns = [(here.share, entry.turns_into)]
    turns += [(here.death_chance(death), death.outage) for death in entry.deaths]
    yield from ((chance, turned) for chance, turned in turns if turned and chance > 0.0)


def _waits(plan: Plan, entry: Mechanism) -> float:
    """Hours without a leader, and of waiting for a follower, however short the outage is."""
    moved, mechanism_table = plan.failovers, plan.table
    dead, hung = plan.stall_hours
    hours = moved.broker if entry.scope is Scope.BROKER else max(moved.broker, moved.rack)
    hours += moved.move if entry.effect is BrokerEvent.STOP else 0.0
    hours += hung if entry.effect in HANGING else dead
    # What an outage turns into may change the leader again.
    for chance, turned in _turns(plan, entry):
        hours += chance * _waits(plan, mechanism_table[turned])
    return hours


def with_unseen_outages(estimate: Estimate, of_outages: float, shares: OutageShares) -> Estimate:
    """Let the upper end allow for outages too rare to occur; cut it at what all can add.

    of_outages: what a year of outage adds.
    """
    if not estimate.seen:
        bound = min(estimate.high, of_outages * shares.all)
        return replace(estimate, value=bound, high=bound)
    if shares.unseen == 0.0:
        return estimate
    why = "the upper end allows for outages too rare to occur in these years"
    high = estimate.high + of_outages * shares.unseen
    return replace(estimate, high=high, method=f"{estimate.method}; {why}")


def most_lost_at_once(plan: Plan) -> float:
    """The most records of one partition that one event can lose."""
    mechanism_table = plan.table

    def destroys(entry: Mechanism) -> bool:
        turned = [entry.turns_into] if entry.turns_into else [d.outage for d in entry.deaths]
        return entry.effect is BrokerEvent.DESTROY or any(
            destroys(mechanism_table[course]) for course in turned
        )

    happens = [entry for entry in mechanism_table.kinds if plan.parameters_of(entry).per_hour > 0.0]
    if plan.constants.policy.unclean or any(map(destroys, happens)):
        return plan.retained_records
    latest = plan.unflushed_hours + plan.tail_hours
    return min(latest * plan.records_per_hour, plan.retained_records)


def unseen_failures(unforced_failures: Sequence[float], years: float) -> float:
    """Failures a year, of those of kinds expected less than five times in these years."""
    return math.fsum(per_year for per_year in unforced_failures if per_year * years < _SURELY_SEEN)


def with_unseen_failures(estimate: Estimate, most: float) -> Estimate:
    """Widen an interval by the most that rare failures add, which nothing makes likelier."""
    if not (estimate.seen and most > 0.0):
        return estimate
    why = "the upper end allows for failures too rare to occur in these years"
    return replace(estimate, high=estimate.high + most, method=f"{estimate.method}; {why}")


def with_the_unseen(estimate: Estimate, most: float) -> Estimate:
    """Widen the interval of a mean that one rare event could dominate.

    The loss of everything that a replica set retains outweighs all smaller losses, and may be too
    rare to have been seen: up to 3 expected in n years.
    """
    if not estimate.seen:
        return estimate
    high = estimate.high + NONE_SEEN / estimate.n * most
    return replace(
        estimate, high=high, method=f"{estimate.method}; up to one unseen loss of a whole set"
    )


def with_a_missing_kind(estimate: Estimate, most: float) -> Estimate:
    """Widen an interval by what the pilot may have missed: 3 of the heaviest cycles, unseen."""
    if not estimate.seen:
        return estimate
    high = estimate.high + NONE_SEEN / estimate.n * most
    why = "few losses in the pilot: most of them may be of a kind that was not drawn"
    return replace(estimate, high=high, method=f"{estimate.method}; {why}")
