"""Which states are worth keeping: those through which losses and outages flow.

A chain of all states has hundreds of thousands at replication factor 5, nearly all of which are
never seen. Starting from the healthy state, the states are added that could carry most of what
is still missing of any measure, until what is missing is within a tolerance. What a state left
out could carry is bounded in :mod:`advisor.reliability.chain.drift_bound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.chain.drift_bound import TruncatedStates, alike, groups, reward_bound
from advisor.reliability.chain.loss_bound import Limits, times
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.transition_table import READABLE, WRITABLE
from advisor.reliability.solver.generator import Generator, sums
from advisor.reliability.solver.regenerative import RegenerativeCycles
from advisor.reliability.statespace import state_graph as moves
from advisor.reliability.statespace.state_graph import Graph, IntArray
from advisor.reliability.statespace.state_index import met_in_order

Vector = NDArray[np.float64]

# A chain of no more states is kept whole.
_SMALL = 600
# Adding stops here, and what is missing is reported.
_MOST = 12_000
# Each round adds what carries all but this share of what is missing: a few states too many take
# less time than more rounds. Where there are many already, they would be too many.
_REST, _MANY, _REST_OF_MANY = 1e-4, 4000, 0.01
_PRECISION = 1e-2
# Up to this many replicas every loss is looked for, however rare.
_FEW = 3
# How much of each measure may be missing: loss events, records, not writable, not readable; ...
_SHARE_OF_FEW = np.array([1e-4, 1e-3, 1e-5, 1e-5])
_SHARE = np.array([1e-2, 1e-2, 1e-4, 1e-4])
# From five replicas on: what is then bounded is three digits of an unavailability; a fourth would
# double the states.
_SHARE_OF_MANY = np.array([1e-2, 1e-2, 3e-3, 3e-3])
# ... or of this, if the measure is smaller: a loss in ten billion years, 3 s away in a year; ten
# times as much for each replica beyond the fourth.
_FLOOR = np.array([1e-10 / 8760.0, 1e-9 / 8760.0, 1e-7, 1e-7])
_NO_FLOOR = np.array([1e-18, 1e-18, 1e-18, 1e-18])
# Rates that are rounded up may outrun repairs where the card's do not.
_SLACK = 10.0
# What losses cost, in hours of records; it only decides which states are looked at first.
_GAP_HOURS, _RETAINED_HOURS = 1.0 / 60.0, 168.0


class NominalRates(NamedTuple):
    """What the choice of states goes by, in powers of two, so that like cards share it.

    Attributes
    ----------
    rates : tuple of (str, float)
        Of everything that can happen, per hour.
    failover_hours : float
        Without a leader, after one that failed.
    """

    rates: tuple[tuple[str, float], ...]
    failover_hours: float


@dataclass(frozen=True)
class Part:
    """The moves out of the kept states.

    Attributes
    ----------
    source, target : arrays of int, shape (moves,)
        Positions among the kept states; the target is -1 if it is left out.
    into : array of int, shape (moves,)
        The target's number in the graph.
    rate, effects, gaps : arrays of int, shape (moves,)
        Columns of :meth:`Graph.moves`.
    times : array of float, shape (moves,)
    """

    source: IntArray
    target: IntArray
    into: IntArray
    rate: IntArray
    effects: IntArray
    gaps: IntArray
    times: Vector


def part_of(graph: Graph, kept: IntArray, setup: ChainConstants) -> Part:
    """Put the moves of some states in order, by the place of the states in ``kept``.

    Without tails where nothing is acknowledged by a leader alone.
    """
    source, rows = graph.moves(kept)
    if setup.acks == "all":
        rows[:, moves.EFFECTS] &= ~Effect.TAIL
        matters = (rows[:, moves.TARGET] != kept[source]) | (rows[:, moves.EFFECTS] > 0)
        if not matters.all():
            source, rows = source[matters], rows.compress(matters, axis=0)
    place = np.full(len(graph), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    # Each column by itself, for all that is done with it.
    columns = np.ascontiguousarray(rows.T)
    return Part(
        source=source,
        target=place[columns[moves.TARGET]],
        into=columns[moves.TARGET],
        rate=columns[moves.RATE],
        effects=columns[moves.EFFECTS],
        gaps=columns[moves.GAPS],
        times=columns[moves.TIMES] / columns[moves.WAYS],
    )


def left_states(part: Part) -> tuple[IntArray, IntArray]:
    """Graph numbers of the left-out states in the order in which moves meet them; move to place."""
    into = part.into[part.target < 0]
    return met_in_order(into, int(into.max(initial=-1)) + 1)


def select_states(graph: Graph, guide: NominalRates, setup: ChainConstants) -> IntArray:
    """States to keep, the healthy one first.

    Parameters
    ----------
    graph : Graph
    guide : Guide
    setup : Setup
        One of those that the graph serves.
    """
    return _Search(graph, guide, setup).kept()


class _Search:
    """Adds states round by round."""

    def __init__(self, graph: Graph, guide: NominalRates, setup: ChainConstants) -> None:
        self._graph, self._guide, self._setup = graph, guide, setup
        self._rates = dict(guide.rates)
        self._limits = Limits(self._rates, graph.setting.racks, setup, _SLACK)
        self._alike = alike(self._rates)
        few = len(graph.setting.racks) <= _FEW
        beyond = max(len(graph.setting.racks) - _FEW - 1, 0)
        more = 10.0**beyond
        many = _SHARE_OF_MANY if beyond else _SHARE
        self._share: Vector = _SHARE_OF_FEW if few else many
        self._floor: Vector = _NO_FLOOR if few else _FLOOR * more

    def kept(self) -> IntArray:
        """States to keep."""
        kept = np.zeros(1, dtype=np.int64)
        while True:
            part = part_of(self._graph, kept, self._setup)
            table = np.array([self._rates[name] for name in self._graph.rate_names])
            rate = table[part.rate] * part.times
            states, place = left_states(part)
            if not len(states) or len(kept) > _MOST:
                return kept
            wanted = np.arange(len(states))
            if len(kept) > 1 and len(kept) + len(states) > _SMALL:
                every = np.concatenate([kept, states])
                symmetry_class, outage_profile = (
                    self._graph.symmetry_class(every),
                    self._graph.outage_profile(every),
                )
                group = groups(symmetry_class, outage_profile, self._alike)
                limit = self._limit(self._graph.waits(states), self._graph.election_risks(states))
                out = part.target < 0
                left = TruncatedStates(
                    part.source[out], place, rate[out], group[len(kept) :], limit
                )
                missing = self._missing(kept, part, rate, group[: len(kept)], left)
                wanted = _worth_adding(missing, left, group[: len(kept)])
                if not len(wanted):
                    return kept
            kept = np.concatenate([kept, states[wanted]])

    def _limit(self, waits: IntArray, election_risks: Vector) -> Vector:
        most = self._limits.until_well(waits, election_risks)
        away = most.hours + times(self._guide.failover_hours, most.events)
        # Other losses cost little beside a whole log, and have a column of their own.
        return np.stack([most.losses, most.totals * _RETAINED_HOURS, away, away], axis=1)

    def _missing(
        self, kept: IntArray, part: Part, rate: Vector, group: IntArray, left: TruncatedStates
    ) -> Vector:
        """What each left-out state could add, at most, in shares of what may be missing."""
        size = len(kept)
        inner = (part.target >= 0) & (part.target != part.source)
        absorbed = np.bincount(left.source, left.rate, size).astype(np.float64)
        flow = Generator.of(part.source[inner], part.target[inner], rate[inner], absorbed)
        hours = RegenerativeCycles(flow, _PRECISION)
        visits = hours.forward(hours.start)
        visits[0] = 1.0
        gain = self._gain(kept, part, rate)
        entered = sums(left.state, visits[left.source] * left.rate, len(left.group))
        worth = reward_bound(hours, gain, group, left, entered, rounds=2)
        allowed = self._share * np.maximum(visits @ gain, self._floor)
        shares: Vector = entered[:, None] * worth / allowed
        return shares

    def _gain(self, kept: IntArray, part: Part, rate: Vector) -> Vector:
        """Losses, hours of records lost, and hours without service, per hour in each state."""
        facts = self._graph.table.facts(self._graph.partition[kept])
        events = (part.effects & Effect.LOSS > 0) + 2.0 * (part.effects & Effect.TAIL > 0)
        records = (part.effects & Effect.LOSS > 0) * _GAP_HOURS
        records = records + (part.effects & Effect.TOTAL > 0) * _RETAINED_HOURS
        changes = (part.effects & Effect.FAILOVER > 0) * self._guide.failover_hours
        away = np.bincount(part.source, rate * changes, len(kept))
        return np.stack(
            [
                np.bincount(part.source, rate * events, len(kept)),
                np.bincount(part.source, rate * records, len(kept)),
                away + (facts[WRITABLE] == 0),
                away + (facts[READABLE] == 0),
            ],
            axis=1,
        )


def _worth_adding(missing: Vector, left: TruncatedStates, group: IntArray) -> IntArray:
    """The left-out states that carry nearly all of what is missing; none if it may be missing."""
    if np.all(missing.sum(axis=0) <= 1.0):
        return np.zeros(0, dtype=np.int64)
    share = missing.max(axis=1)
    order = np.argsort(-share, kind="stable")
    rest = share.sum() - np.cumsum(share[order])
    left_for_later = _REST if len(group) <= _MANY else _REST_OF_MANY
    enough = int(np.argmax(rest <= max(left_for_later * share.sum(), 0.5))) + 1
    wanted = order[:enough]
    known = left.known(group)[wanted]
    # Of a group without a kept state one is enough to learn what the others are worth.
    _, first = np.unique(left.group[wanted[~known]], return_index=True)
    return np.sort(np.concatenate([wanted[known], wanted[~known][first]]))
