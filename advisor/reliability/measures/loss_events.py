"""Probability that a loss loses a record: a loss event counts only if a record was at risk.

Records arrive as a Poisson process while the partition is writable. A transition that loses H hours
of writes loses a record with probability ``1 - E[exp(-rate * H)]``: of a log gap by its newest
record, of a page cache by the flush time, of a whole log by the time since the last total loss, and
of tails twice, as leadership moves away and back. Neglected is that the paths to successive losses
depend on each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.measures import records_lost
from advisor.reliability.measures.newest_record import GapSets, gap_sets, some_record
from advisor.reliability.measures.records_lost import LogGaps, Within, on_one_card
from advisor.reliability.partition.log_levels import GAP_LOST
from advisor.reliability.solver.generator import IntArray, Vector

# With smaller arguments the series has more digits than the quotient.
_FEW, _TERMS = 0.5, 14


class LossChances(NamedTuple):
    """Probabilities that a record is lost, each of shape (transitions,).

    at_once: by the transition itself, tails excepted.
    tails: mean number of tails with a record that are dropped.
    any_tail: probability that one of them has a record.
    window: by a power failure within the flush window that begins with the transition.
    """

    at_once: Vector
    tails: Vector
    any_tail: Vector
    window: Vector

    @property
    def events(self) -> Vector:
        """Mean number of loss events."""
        return self.at_once + self.tails + self.window

    @property
    def probability(self) -> Vector:
        """Probability of any loss event."""
        later = self.any_tail + (1.0 - self.any_tail) * self.window
        return self.at_once + (1.0 - self.at_once) * later


class LostGaps(NamedTuple):
    """The transitions that lose gaps; none of them loses the whole log.

    move (lossy,); gaps (lossy, max gaps); number (lossy,): of the state and set among ``sets``.
    """

    move: IntArray
    gaps: NDArray[np.bool_]
    sets: GapSets
    number: IntArray


@lru_cache(maxsize=16)
def lost_gaps(chain: Any) -> LostGaps:
    """The gaps that the transitions of a chain, of Kafka or another scheme, lose."""
    hit = chain.gap_map == GAP_LOST
    hit[chain.total] = False
    lost = hit @ (1 << np.arange(hit.shape[1]))
    sets = gap_sets(chain.source, chain.target, chain.gap_map, chain.gaps, lost)
    move = np.flatnonzero(lost)
    return LostGaps(move, hit[move], sets, sets.number[chain.source[move], lost[move]])


@dataclass(frozen=True, eq=False)
class RecordsAtRisk:
    """What the losses of a solved chain would lose, in hours of writes.

    losses, dropping (transitions,): probability that anything but tails, and that tails, are lost.
    gap_hours (states, max gaps): see :meth:`LogGaps.mean_hours`.
    flush_window_failures_per_hour, out (transitions,): power failures that would lose the last
        writes, and changes of any kind, in the state that the transition leads to.
    window_hours (transitions,): until the last writes before the transition are on disk.
    totals_per_hour, written: total losses, and the fraction of time that is writable.
    """

    chain: Any
    losses: Vector
    dropping: Vector
    tails: int
    gaps: LogGaps
    pi: Vector
    gap_hours: Vector
    flush_window_failures_per_hour: Vector
    out: Vector
    window_hours: Vector
    unflushed_hours: float
    retention_hours: float
    totals_per_hour: float
    written: float
    rough: bool

    def chances(self, records_per_hour: float, tail_records: float) -> LossChances:
        """Probability of a loss event at each transition, by arrivals while it is writable."""
        cached = -math.expm1(-records_per_hour * self.unflushed_hours)
        chance: Vector = np.full(len(self.losses), cached)
        if len(self.lost.move) and records_per_hour > 0.0:
            lost, source = self.lost, self.chain.source[self.lost.move]
            hours = (self.gap_hours[source] * lost.gaps).sum(axis=1)
            chance[lost.move] = chance_in_gaps(
                *(self.gaps, lost, self.pi[:, None], hours[:, None], records_per_hour),
                np.array([self.unflushed_hours]),
                on_one_card(self.retention_hours, self.rough),
            )[:, 0]
        chance[self.chain.total] = records_lost.whole_log_chance(
            records_per_hour, self.totals_per_hour, self.written, self.retention_hours
        )
        return LossChances(
            self.losses * chance,
            self.dropping * (-self.tails * math.expm1(-tail_records)),
            self.dropping * -math.expm1(-self.tails * tail_records),
            window_chance(
                *(self.window_hours, self.flush_window_failures_per_hour, self.out),
                records_per_hour,
            ),
        )

    @property
    def lost(self) -> LostGaps:
        """The gaps that transitions lose."""
        return lost_gaps(self.chain)


def chance_in_gaps(
    gaps: LogGaps,
    lost: LostGaps,
    pi: Vector,
    lost_hours: Vector,
    records_per_hour: float,
    unflushed_hours: Vector,
    within: Within,
) -> Vector:
    """Probability that the lost gaps hold a retained record, by lossy transition and draw.

    lost_hours (lossy, draws): hours of writes in them, times the probability of the state before.
    """
    record = some_record(gaps, lost.sets, pi, records_per_hour, unflushed_hours, within)
    with_record = record[lost.number]
    probability = pi[gaps.source[lost.move]]
    with np.errstate(divide="ignore", invalid="ignore"):
        chance, mean = with_record / probability, records_per_hour * lost_hours / probability
    # Jensen: no mixture of Poisson variables with this mean is positive more often. So the
    # error of an inversion never makes more losses than records.
    return np.where(probability > 0.0, np.minimum(chance, -np.expm1(-mean)), 0.0)


def window_chance(hours: Vector, failures: Vector, out: Vector, records_per_hour: float) -> Vector:
    """Probability that power fails within the flush window, and a record is lost with it.

    With power failures at rate c, other changes at rate o and T hours until all is on disk:
    ``integral of c exp(-o t) (1 - exp(-rate (T - t)))`` from 0 to T.
    """
    chance = np.zeros(hours.shape)
    can_lose = (hours > 0.0) & (failures > 0.0)
    window, arriving = hours[can_lose], records_per_hour * hours[can_lose]
    share = arriving * second_difference(out[can_lose] * window, arriving)
    chance[can_lose] = failures[can_lose] * window * share
    return chance


def second_difference(one: Vector, other: Vector) -> Vector:
    """Second divided difference of exp at 0, ``-one`` and ``-other``.

    The integral of ``exp(-one * x - other * y)`` over all positive x and y with ``x + y < 1``.
    """
    smaller, larger = np.minimum(one, other), np.maximum(one, other)
    difference = np.zeros(len(larger))
    series = larger < _FEW
    small, large = -smaller[series], -larger[series]
    # Taylor's series: complete homogeneous polynomials of the two, over (degree + 2)!.
    polynomial = power = np.ones(len(small))
    for degree in range(_TERMS):
        difference[series] += polynomial / math.factorial(degree + 2)
        power = power * small
        polynomial = polynomial * large + power
    smaller, larger = smaller[~series], larger[~series]
    difference[~series] = (
        _mean_decay(smaller) - np.exp(-smaller) * _mean_decay(larger - smaller)
    ) / larger
    return difference


def _mean_decay(exponent: Vector) -> Vector:
    """Mean of ``exp(-exponent * x)`` for x from 0 to 1."""
    safe = np.where(exponent > 0.0, exponent, 1.0)
    decay: Vector = np.where(exponent > 0.0, -np.expm1(-safe) / safe, 1.0)
    return decay
