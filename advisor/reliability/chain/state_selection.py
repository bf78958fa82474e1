"""The truncation rule and its stated bound: which states of a replica set's CTMC are kept.

A CTMC of all states has hundreds of thousands at replication factor 5, nearly all of them never
seen in a million years.

*Rule.* Start from the healthy state. The harm that a truncated state can do to a measure is the
flux into it times what one visit can cost at most, until every replica is healthy again. Add the
states with the largest harm until what all others together can do is below a stated share of
every measure, or of `_FLOOR` if the measure is smaller.

*Skipping the rules.* For a transition whose worst case changes no measure noticeably, the protocol
rules are not evaluated: it leads to a placeholder state (unexpanded partition), and is expanded
later if it matters. Losses before a flush are likewise not computed where writes rarely stop.

*Bound.* The cost of a visit is bounded by drift (`drift_bound`) and by what can lose records at all
(`loss_bound`). With the rates of the card, the same sum states the error of every result
(`truncation_error`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.formatting import HOURS_PER_YEAR
from advisor.reliability.chain.loss_bound import Limits, power_per_hour, times
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.transition_table import READABLE, WRITABLE
from advisor.reliability.solver.generator import Generator, IntArray, Vector, sums
from advisor.reliability.solver.regenerative import RegenerativeCycles
from advisor.reliability.statespace import state_graph as moves
from advisor.reliability.statespace.state_graph import Graph, NextTransitions
from advisor.reliability.statespace.state_index import met_in_order

# A chain of no more states is kept whole.
_SMALL = 600
# The search stops here; the stated bound says what is missing.
_MOST = 16_000
# Each round adds what carries all but this share of the harm.
_REST = 0.01
# Largest share of the allowed error for the transitions that a round does not expand, and for
# losses before a flush where writes rarely stop; and the time until a flush, used in no bound.
_UNEXPANDED_SHARE, _FLUSH_HOURS = 0.01, 1.0 / 60.0
# Relative precision of the fluxes.
PRECISION = 1e-2
_FEW = 3
# Of loss events, records lost, write unavailability, read unavailability.
_SHARE_OF_FEW = np.array([5e-3, 1e-2, 2e-3, 2e-3])
_SHARE = np.array([3e-2, 3e-2, 3e-3, 3e-3])
# Results state a bound of a quarter of this or less; the error itself is less again.
_SHARE_OF_MANY = np.array([5e-2, 5e-2, 2e-2, 2e-2])
# For each further guide so many times as much: a draw that is far from its card misses less than
# two hundredths then, and all such draws together need hardly twice the states.
_FURTHER = 8.0
# One loss in 10^10 years, 3 s of outage a year; ten times as much for each replica beyond four.
_FLOOR = np.array([1e-10 / HOURS_PER_YEAR, 1e-9 / HOURS_PER_YEAR, 1e-7, 1e-7])
_NO_FLOOR = np.array([1e-18, 1e-18, 1e-18, 1e-18])
# The nominal rates are rounded up and may exceed repairs where the card's do not.
_SLACK = 10.0
# What losses cost, in hours of records; it only decides which states are added first.
_GAP_HOURS, _RETAINED_HOURS = 1.0 / 60.0, 168.0


class NominalRates(NamedTuple):
    """Rates rounded to powers of two, so that similar cards share a truncated chain.

    failover_hours: without a leader, after one that failed.
    """

    rates: tuple[tuple[str, float], ...]
    failover_hours: float


@dataclass(frozen=True)
class KeptMoves:
    """The moves out of the kept states, whose numbers in the graph are ``kept``.

    source, target (moves,): positions among the kept states; the target is -1 if it is truncated.
    into (moves,): the target's number in the graph.
    rate, effects, gaps (moves,): columns of :meth:`Graph.moves`.
    """

    kept: IntArray
    source: IntArray
    target: IntArray
    into: IntArray
    rate: IntArray
    effects: IntArray
    gaps: IntArray
    times: Vector


class Moves(NamedTuple):
    """Transitions out of states: which of them, ascending, and the columns of `Graph.moves`."""

    source: IntArray
    rows: IntArray

    @classmethod
    def of(
        cls,
        graph: Graph,
        states: IntArray,
        constants: ChainConstants,
        upcoming: NextTransitions | None = None,
        unexpanded: IntArray = moves.NOTHING,
    ) -> Moves:
        """Transitions of `Graph.moves`, without tails if every acknowledgement takes the ISR."""
        source, rows = graph.moves(states, upcoming, unexpanded)
        if constants.acks == "all":
            rows[:, moves.EFFECTS] &= ~Effect.TAIL
            matters = (rows[:, moves.TARGET] != states[source]) | (rows[:, moves.EFFECTS] > 0)
            source, rows = source[matters], rows.compress(matters, axis=0)
        return cls(source, rows)

    def and_then(self, more: Moves, sources: IntArray) -> Moves:
        """Replace the transitions out of ``sources`` by others, numbered among all sources."""
        stay = ~np.isin(self.source, sources)
        source = np.concatenate([self.source[stay], sources[more.source]])
        rows = np.concatenate([self.rows.compress(stay, axis=0), more.rows])
        order = np.argsort(source, kind="stable")
        return Moves(source[order], rows.take(order, axis=0))

    def among(self, graph: Graph, kept: IntArray) -> KeptMoves:
        """Put the transitions of kept states in order, by the place of the states in ``kept``."""
        place = np.full(len(graph), -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        # Columns are contiguous for what follows.
        columns = np.ascontiguousarray(self.rows.T)
        return KeptMoves(
            kept=kept,
            source=self.source,
            target=place[columns[moves.TARGET]],
            into=columns[moves.TARGET],
            rate=columns[moves.RATE],
            effects=columns[moves.EFFECTS],
            gaps=columns[moves.GAPS],
            times=columns[moves.TIMES] / columns[moves.WAYS],
        )


def truncated_states(kept_moves: KeptMoves) -> tuple[IntArray, IntArray]:
    """Graph numbers of the truncated states; for each truncated transition, which it enters."""
    into = kept_moves.into[kept_moves.target < 0]
    return met_in_order(into, int(into.max(initial=-1)) + 1)


class Selection(NamedTuple):
    """States to keep, with their moves, the healthy one first.

    writes_rarely_stop (states,): where losses before a flush are not computed.
    """

    moves: KeptMoves
    writes_rarely_stop: NDArray[np.bool_]


def select_states(
    graph: Graph, guides: Sequence[NominalRates], constants: ChainConstants
) -> Selection:
    """Choose the states to keep: those that matter at the rates of any guide.

    The search of each guide begins with the states of those before it; all but the first one's is
    coarser.
    """
    search = _Search(graph, guides[0], constants)
    selection = search.kept()
    for guide in guides[1:]:
        before, search = selection, _Search(graph, guide, constants, search)
        selection = search.kept()
        # What is not rare at the rates of every guide is computed.
        rarely = selection.writes_rarely_stop
        rarely[len(before.writes_rarely_stop) :] = False
        rarely[: len(before.writes_rarely_stop)] &= before.writes_rarely_stop
    return selection


class _Harm(NamedTuple):
    """What truncated states can add to the measures.

    shares (states, 4): in units of what may be missing, ``allowed`` (4,).
    entered (states,), flux (moves,): entries, and how often the moves of the kept states happen,
        per healthy hour.
    """

    shares: Vector
    entered: Vector
    flux: Vector
    allowed: Vector


class _Search:
    """Adds states round by round, to the healthy one or to those of another search."""

    def __init__(
        self,
        graph: Graph,
        guide: NominalRates,
        constants: ChainConstants,
        before: _Search | None = None,
    ) -> None:
        self._graph, self._guide, self._constants = graph, guide, constants
        self._kept: IntArray = np.zeros(1, dtype=np.int64)
        self._moves: Moves
        if before is None:
            self._moves = Moves.of(graph, self._kept, constants)
        else:
            self._kept, self._moves = before._kept, before._moves
        self._rates = dict(guide.rates)
        replicas = len(graph.environment.racks)
        voters = bool(graph.environment.voters)
        self._limits = Limits(self._rates, graph.environment.racks, constants, _SLACK, voters)
        further_replicas = max(replicas - _FEW - 1, 0)
        larger = _SHARE_OF_MANY if further_replicas else _SHARE
        self._share: Vector = _SHARE_OF_FEW if replicas <= _FEW else larger
        if before is not None:
            self._share = self._share * _FURTHER
        self._floor: Vector = _NO_FLOOR if replicas <= _FEW else _FLOOR * 10.0**further_replicas

    def kept(self) -> Selection:
        """States to keep, and their moves."""
        while (selection := self._next_round()) is None:
            pass
        return selection

    def _next_round(self) -> Selection | None:
        """Add states; or what is kept, if nothing is to be added."""
        states_kept, reached = self._kept, self._moves
        inner = reached.among(self._graph, states_kept)
        states, place = truncated_states(inner)
        if not len(states):
            return Selection(inner, np.zeros(len(states_kept), dtype=bool))
        chosen, upcoming, unexpanded = np.arange(len(states)), None, moves.NOTHING
        small = len(states_kept) == 1 or len(states_kept) + len(states) <= _SMALL
        if not small:
            harm = self._harm(inner, states, place)
            chosen = _most_harmful(harm.shares)
            if not len(chosen) or len(states_kept) > _MOST:
                return Selection(inner, self._writes_rarely_stop(inner, harm))
        vague = self._graph.is_unexpanded(states[chosen])
        again = np.unique(inner.source[inner.target < 0][np.isin(place, chosen[vague])])
        added = states[chosen[~vague]]
        if not small:
            upcoming, unexpanded = self._unexpanded(
                added, harm.entered[chosen[~vague]], harm.allowed
            )
        added_moves = Moves.of(self._graph, added, self._constants, upcoming, unexpanded)
        reached = reached.and_then(added_moves, len(states_kept) + np.arange(len(added)))
        if len(again):
            reached = reached.and_then(
                Moves.of(self._graph, states_kept[again], self._constants), again
            )
        self._kept, self._moves = np.concatenate([states_kept, added]), reached
        return None

    def _unexpanded(
        self, states: IntArray, entered: Vector, allowed: Vector
    ) -> tuple[NextTransitions, IntArray]:
        """Next transitions of new states, and those that matter to no measure at their worst."""
        upcoming = self._graph.next_transitions(states)
        rate = self._rate_table()[upcoming.rate]
        hours = entered / sums(upcoming.owner, rate, len(states))
        into, kind = np.unique(upcoming.unexpanded, return_inverse=True)
        cost = self._cost(self._graph.waits(into), self._graph.election_risks(into)) / allowed
        harm = hours[upcoming.owner] * rate * cost.max(axis=1)[kind]
        return upcoming, _least(harm)

    def _writes_rarely_stop(self, kept_moves: KeptMoves, harm: _Harm) -> NDArray[np.bool_]:
        """Where writes stop so rarely that a power failure before the flush may count as a loss."""
        takes_writes = self._graph.table.facts(self._graph.partition[kept_moves.kept])[WRITABLE] > 0
        stops = (
            (kept_moves.target >= 0)
            & takes_writes[kept_moves.source]
            & ~takes_writes[kept_moves.target]
        )
        rare = np.zeros(len(kept_moves.kept), dtype=bool)
        waits = self._graph.waits(kept_moves.kept)
        power = power_per_hour(self._rates, self._graph.environment.racks, waits)
        stopped = sums(kept_moves.target[stops], harm.flux[stops], len(rare))
        rare[_least(stopped * power * _FLUSH_HOURS / harm.allowed[0])] = True
        return rare & (stopped > 0)

    def _rate_table(self) -> Vector:
        return np.array([self._rates[name] for name in self._graph.rate_names])

    def _harm(self, kept_moves: KeptMoves, states: IntArray, place: IntArray) -> _Harm:
        """What each truncated state can add to the measures."""
        rate = self._rate_table()[kept_moves.rate] * kept_moves.times
        gain = self._gain(kept_moves, rate)
        sizes = len(kept_moves.kept), len(states)
        visits, entered = truncated_flux(kept_moves.source, kept_moves.target, rate, place, sizes)
        cost = self._cost(self._graph.waits(states), self._graph.election_risks(states))
        allowed = self._share * np.maximum(visits @ gain, self._floor)
        flux = visits[kept_moves.source] * rate
        return _Harm(entered[:, None] * cost / allowed, entered, flux, allowed)

    def _cost(self, waits: IntArray, election_risks: Vector) -> Vector:
        bound = self._limits.until_well(waits, election_risks)
        unserved_hours = bound.hours + times(self._guide.failover_hours, bound.events)
        # Other losses cost little beside a whole log, and have a column of their own.
        return np.stack(
            [bound.losses, bound.totals * _RETAINED_HOURS, unserved_hours, unserved_hours], axis=1
        )

    def _gain(self, kept_moves: KeptMoves, rate: Vector) -> Vector:
        """Losses, hours of records lost, and hours without service, per hour in each state."""
        size = len(kept_moves.kept)
        facts = self._graph.table.facts(self._graph.partition[kept_moves.kept])
        events = (kept_moves.effects & Effect.LOSS > 0) + 2.0 * (
            kept_moves.effects & Effect.TAIL > 0
        )
        records = (kept_moves.effects & Effect.LOSS > 0) * _GAP_HOURS
        records = records + (kept_moves.effects & Effect.TOTAL > 0) * _RETAINED_HOURS
        changes = (kept_moves.effects & Effect.FAILOVER > 0) * self._guide.failover_hours
        unserved = np.bincount(kept_moves.source, rate * changes, size)
        return np.stack(
            [
                np.bincount(kept_moves.source, rate * events, size),
                np.bincount(kept_moves.source, rate * records, size),
                unserved + (facts[WRITABLE] == 0),
                unserved + (facts[READABLE] == 0),
            ],
            axis=1,
        )


def truncated_flux(
    source: IntArray, target: IntArray, rate: Vector, place: IntArray, sizes: tuple[int, int]
) -> tuple[Vector, Vector]:
    """Visits to the kept states and entries into the truncated ones, per healthy hour.

    source, target (transitions,): kept states, the sources ascending; the target is -1 where it is
        truncated.
    place: which truncated state each transition with target -1 leads to.
    sizes: numbers of kept and of truncated states.
    """
    out, (size, truncated) = target < 0, sizes
    inner = ~out & (target != source)
    absorbed = sums(source[out], rate[out], size)
    generator = Generator.of(source[inner], target[inner], rate[inner], absorbed)
    cycles = RegenerativeCycles(generator, PRECISION)
    visits = cycles.forward(cycles.start)
    visits[0] = 1.0
    return visits, sums(place, visits[source[out]] * rate[out], truncated)


def _least(harm: Vector) -> IntArray:
    """The least harmful entries, as many as can be neglected together."""
    order = np.argsort(harm, kind="stable")
    return order[: int(np.searchsorted(np.cumsum(harm[order]), _UNEXPANDED_SHARE))]


def _most_harmful(harm: Vector) -> IntArray:
    """The truncated states that do nearly all the harm; none if the harm is within the bound."""
    if np.all(harm.sum(axis=0) <= 1.0):
        return np.zeros(0, dtype=np.int64)
    worst = harm.max(axis=1)
    order = np.argsort(-worst, kind="stable")
    rest = worst.sum() - np.cumsum(worst[order])
    enough = int(np.argmax(rest <= max(_REST * worst.sum(), 0.5))) + 1
    return np.sort(order[:enough])
