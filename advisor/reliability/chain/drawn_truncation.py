"""The truncation errors that draws are judged by, for many draws at once.

As :mod:`advisor.reliability.chain.truncation_error` states them. States that are left out in the
same outages, at the same risk of an election, have the same bound: it is computed once for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.drift_bound import deaths_per_hour
from advisor.reliability.chain.loss_bound import Limits, strikes_per_hour, times
from advisor.reliability.chain.state_selection import PRECISION
from advisor.reliability.chain.truncation_error import left_out_of
from advisor.reliability.failures.mechanisms import table
from advisor.reliability.solver.generator import IntArray, Vector
from advisor.reliability.solver.many_draws import gather
from advisor.reliability.solver.once_per_chain import once_per_chain
from advisor.reliability.statespace.state_index import codes_of_rows


class _Kinds(NamedTuple):
    """States that are left out, by what their bound depends on; and all states, by outages.

    waits (kinds, waits).
    election_risks (kinds, ...).
    of_left_out (truncated states,).
    every_wait (outages, waits).
    of_state (states + truncated states,).
    """

    waits: sparse.csr_array
    election_risks: Vector
    of_left_out: IntArray
    every_wait: IntArray
    of_state: IntArray


@once_per_chain
def _kinds(chain: Structure) -> _Kinds:
    _, first, of_state = np.unique(
        codes_of_rows(chain.waits.T.astype(np.int64)), return_index=True, return_inverse=True
    )
    every, of_state = chain.waits[first].astype(np.int64), of_state.ravel()
    left_out = np.arange(chain.states, len(of_state))
    risks = (np.unique(column, return_inverse=True)[1] for column in chain.election_risks.T)
    columns = [of_state, *(codes.ravel() for codes in risks)]
    _, kinds, which = np.unique(
        codes_of_rows([column[left_out] for column in columns]),
        return_index=True,
        return_inverse=True,
    )
    kinds = left_out[kinds]
    waits = sparse.csr_array(chain.waits[kinds], dtype=np.float64)
    return _Kinds(waits, chain.election_risks[kinds], which.ravel(), every, of_state)


class DrawnTruncation(NamedTuple):
    """What excursions into truncated states add at most, per hour; each of shape (draws,).

    losses, totals, hours, events: loss events; total losses; hours; and failures and ends of
        outages.
    """

    losses: Vector
    totals: Vector
    hours: Vector
    events: Vector

    def unwritable(self, outage_hours: Vector) -> Vector:
        """Hours not writable, with so many hours without service at a change of leader."""
        return self.hours + times(outage_hours, self.events)


def truncation_of_draws(
    chain: Structure,
    rates: Sequence[Mapping[str, float]],
    name_rates: Vector,
    pi: Vector,
    unflushed_hours: Vector,
    stops: IntArray,
    often: Vector,
) -> DrawnTruncation:
    """Bound what the states add in each draw that are left out.

    chain: not condensed.
    rates: of everything that can happen in each draw, per hour.
    name_rates (names, draws).
    pi (states, draws).
    unflushed_hours (draws,): until what is written is on disk.
    stops (stops,): states that transitions lead to which stop writes.
    often (stops, draws): as for `third_failures`.
    """
    left_out, kinds = left_out_of(chain), _kinds(chain)
    power = np.array([strikes_per_hour(drawn, chain.environment.racks, True) for drawn in rates])
    power = power + kinds.every_wait @ _dying_hosts(rates)
    entered, stopping = np.zeros((len(kinds.election_risks), len(rates))), np.zeros_like(power)
    kind, after = kinds.of_left_out[chain.truncated_target], kinds.of_state[chain.states :]
    _gathered(chain, left_out.moves, kind, pi, name_rates, entered)
    stops_writes = np.flatnonzero(chain.stops_writes)
    place = after[chain.truncated_target[stops_writes]]
    _gathered(chain, left_out.moves[stops_writes], place, pi, name_rates, stopping)
    rare = left_out.rare
    _gathered(chain, rare, kinds.of_state[chain.target[rare]], pi, name_rates, stopping)
    soon = unflushed_hours * (stopping * power).sum(axis=0)
    losses, totals, hours, events = (
        times(entered, bound).sum(axis=0) / (1.0 - PRECISION)
        for bound in _bounds(chain, kinds, rates, unflushed_hours)
    )
    third = _third_failures(chain, power, name_rates, stops, often)
    return DrawnTruncation(losses + soon / (1.0 - PRECISION) + third, totals, hours, events)


def _third_failures(
    chain: Structure, power: Vector, name_rates: Vector, stops: IntArray, often: Vector
) -> Vector:
    """`third_failures` of each draw; ``power`` by kind of outages."""
    left_out, kinds = left_out_of(chain), _kinds(chain)
    onward, between = np.zeros((chain.states, power.shape[1])), left_out.between
    rate, weight = chain.rate[between], chain.weight[between]
    place = kinds.of_state[left_out.after]
    gather(chain.source[between], place, rate, weight, power, name_rates, onward)
    found: Vector = (often * onward[stops]).sum(axis=0) / 2.0
    return found


def _gathered(
    chain: Structure,
    moves: IntArray,
    place: IntArray,
    pi: Vector,
    name_rates: Vector,
    found: Vector,
) -> None:
    """How often some transitions happen, summed at a place for each."""
    gather(
        place, chain.source[moves], chain.rate[moves], chain.weight[moves], pi, name_rates, found
    )


def _bounds(
    chain: Structure,
    kinds: _Kinds,
    rates: Sequence[Mapping[str, float]],
    unflushed_hours: Vector,
) -> tuple[Vector, ...]:
    """Losses, totals, hours and events of an excursion, by kind; shape (kinds, draws)."""
    racks, voters = chain.environment.racks, bool(chain.environment.voters)
    found = []
    for drawn, unflushed in zip(rates, unflushed_hours, strict=True):
        limits = Limits(drawn, racks, chain.constants, voters=voters)
        most = limits.until_well(kinds.waits, kinds.election_risks)
        strikes = strikes_per_hour(drawn, racks)
        early = unflushed * strikes_per_hour(drawn, racks, power=True)
        stops = times(strikes, most.hours) + most.deaths
        losses = most.losses + times(early, stops) + unflushed * strikes * most.deaths
        found.append((losses, most.totals, most.hours, most.events))
    return tuple(np.stack(bound, axis=1) for bound in zip(*found, strict=True))


def _dying_hosts(rates: Sequence[Mapping[str, float]]) -> Vector:
    """Rate at which a broker in each outage dies with its host, shape (waits, draws)."""
    dies = np.zeros((table().waits, len(rates)))
    for condition, entry in table().outages.items():
        if entry.deaths:
            dies[condition] = [deaths_per_hour(entry, drawn, of_hosts=True) for drawn in rates]
    return dies
