"""The pilot: a few short runs that find out which failures lead to losses.

The first one makes all mechanisms equally likely (balanced failure biasing). Each run then makes
those likelier that stood before its losses (the cross-entropy method, Rubinstein and Kroese,
2004), and begins more cycles with what the means depend on (Neyman's allocation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.sampler.cycles.block import sample
from advisor.reliability.sampler.cycles.memory import LOST_BEYOND, LOST_BY_SETTINGS, RECORDS, Cycles
from advisor.reliability.sampler.initial_state import new_state
from advisor.reliability.sampler.plan import Bias, Block, Plan

# Random numbers of the pilot are those of blocks that no run has.
_FIRST_BLOCK = 2**63
_RUNS = 4
_CYCLES = 20_000
# A cycle is biased until as many failures more have come as there are replicas, and one.
_MORE_FAILURES = 1
_BOOST, _LEAST_BOOST = 0.6, 0.05
_PLAIN = 0.2
# With fewer effective losses in its last run, the pilot may have missed how most losses happen:
# measured, intervals of such runs held the exact number in 10 to 60 % of all seeds instead of 95.
_ENOUGH_EFFECTIVE = 20.0
# Where these aims are never reached, losses that settings do not decide take their place.
_RARE = (LOST_BY_SETTINGS, RECORDS)
# Of each probability: as it is, the same for all, and the rest as the last run has it.
_NATURAL, _EVEN = 0.25, 0.15


class Found(NamedTuple):
    """What the pilot found.

    Attributes
    ----------
    bias : Bias
    losses_per_year : float
        Of the rarest kind of loss that it saw; 0 if it saw none.
    """

    bias: Bias
    losses_per_year: float


def find_bias(plan: Plan, seed: int) -> Found:
    """Find a bias for a plan.

    Returns
    -------
    Found
        The same for the same plan and seed.
    """
    rates = new_state(plan).strikes["per_hour"]
    natural = rates / rates.sum()
    positions = plan.replicas + _MORE_FAILURES
    first = _mixed(natural, natural)
    bias = _bias(first, [first] * positions, [_BOOST] * positions, 1.0, False)
    for number in range(_RUNS):
        done, _ = sample(plan, bias, _CYCLES, Block(seed, _FIRST_BLOCK + number, 1))
        aims = [aim for aim in _RARE if done.means[aim] > 0.0] or [LOST_BEYOND]
        shares = [_Before(done, aim) for aim in aims if done.means[aim] > 0.0]
        bias = _bias(
            _beginning(natural, bias, done),
            [_following(natural, bias, shares, place) for place in range(positions)],
            [_boost(bias, shares, place) for place in range(positions)],
            min(float(done.cycle[0]["overlaps"] / done.cycle[0]["done"]), 1.0),
            _effective_losses(done) >= _ENOUGH_EFFECTIVE,
        )
    seen = [done.means[aim] for aim in (LOST_BY_SETTINGS, LOST_BEYOND) if done.means[aim] > 0.0]
    per_cycle = min(seen, default=0.0) / float(done.cycle[0]["done"])
    return Found(bias, per_cycle * plan.strikes_per_year)


def _effective_losses(done: Cycles) -> float:
    """How many losses of equal weight say as much, of the rarest kind that was seen."""
    for aim in (LOST_BY_SETTINGS, LOST_BEYOND):
        if done.means[aim] > 0.0:
            return float(done.means[aim] ** 2 / (done.seconds[aim] @ done.base**2))
    return 0.0


class _Before:
    """What came before an aim was reached.

    Attributes
    ----------
    share : array of float, shape (positions,)
        Of what was reached after so many failures, by weight, how much needed one more.
    courses : array of float, shape (positions, courses)
        Which that was; sums to 1 where there was any.
    """

    def __init__(self, done: Cycles, aim: int) -> None:
        scores = done.scores[aim]
        weights = scores.sum(axis=1)
        before = np.array([done.means[aim], *weights[:-1]])
        self.share = np.divide(weights, before, out=np.zeros_like(before), where=before > 0.0)
        whole = weights[:, None]
        self.courses = np.divide(scores, whole, out=np.zeros_like(scores), where=whole > 0.0)


def _bias(
    beginning: NDArray[np.float64],
    following: Sequence[NDArray[np.float64]],
    boost: Sequence[float],
    overlaps: float,
    finds_losses: bool,
) -> Bias:
    rows = tuple(tuple(row.tolist()) for row in following)
    return Bias(tuple(beginning.tolist()), rows, tuple(boost), _PLAIN, overlaps, finds_losses)


def _mixed(natural: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mix what is wanted with what is natural, and with the same for all that happen."""
    even = (natural > 0.0) / np.count_nonzero(natural)
    return _NATURAL * natural + _EVEN * even + (1.0 - _NATURAL - _EVEN) * wanted


def _beginning(natural: NDArray[np.float64], bias: Bias, done: Cycles) -> NDArray[np.float64]:
    """Share the cycles so that the means of all aims are known equally well."""
    begun = np.maximum(np.array(bias.beginning) * done.cycle[0]["done"], 1.0)
    wanted = np.zeros(len(natural))
    for squares, mean in zip(done.seconds, done.means / done.cycle[0]["done"], strict=True):
        if mean > 0.0:
            wanted += squares / begun / mean**2
    wanted = natural * np.sqrt(wanted)
    total = math.fsum(wanted)
    return _mixed(natural, wanted / total if total > 0.0 else natural)


def _following(
    natural: NDArray[np.float64], bias: Bias, aims: Sequence[_Before], place: int
) -> NDArray[np.float64]:
    """Make likelier what came before the aims were reached."""
    found = [aim.courses[place] for aim in aims if aim.courses[place].any()]
    if not found:
        return np.array(bias.following[place])
    return _mixed(natural, np.mean(found, axis=0))


def _boost(bias: Bias, aims: Sequence[_Before], place: int) -> float:
    """Make one more failure likelier where the aims need it."""
    if not aims:
        return bias.boost[place]
    return float(min(max(_LEAST_BOOST, *(aim.share[place] for aim in aims)), _BOOST))
