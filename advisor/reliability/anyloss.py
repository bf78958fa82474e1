"""From the losses of each replica set to the chance that any of them loses.

Sets do not fail independently: one broker, rack or power feed holds replicas of many. So a loss is
counted at its site, the broker, rack or cluster whose failure sets it off: given such a failure,
each set there loses with its own share, independently of the others. For power lost everywhere at
once this is the copyset formula, ``1 - (1 - q)^K`` (Cidon et al., USENIX ATC 2013).

Partitions on the same replicas lose together, with one exception: what only a leader had. Such a
tail belongs to its partition alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from advisor.reliability.model import HOURS_PER_YEAR
from advisor.reliability.placement import Alike
from advisor.reliability.ranges import Interval
from advisor.reliability.solve import FirstLoss


class SetLosses(NamedTuple):
    """When one partition on one replica set loses something.

    Attributes
    ----------
    first : FirstLoss
        From healthy, over a year.
    per_year : mapping of mechanism to float
        Loss events a year, by the mechanism that sets them off.
    """

    first: FirstLoss
    per_year: Mapping[str, float]


class Tails(NamedTuple):
    """Whose records are lost that only a leader had, and how often.

    Attributes
    ----------
    each_change : int
        Tails that a failure of the leader may drop. Kafka moves the leader back afterwards, which
        makes two.
    leaders : int
        The leader is one of so many of a set's replicas, from the first: with Kafka it is the
        preferred one nearly all the time.
    """

    each_change: int
    leaders: int


KAFKA_TAILS = Tails(each_change=2, leaders=1)


class AnyLoss(NamedTuple):
    """When the first of all sets loses something.

    Attributes
    ----------
    probability : float
        Of a loss within a year that starts healthy.
    mean_years : float
        Infinite if nothing can be lost.
    bounds : (float, float)
        What the probability lies between, whatever the dependence between the sets.
    """

    probability: float
    mean_years: float
    bounds: Interval


def any_loss(
    losses: Mapping[tuple[int, ...], SetLosses],
    strikes_per_year: Callable[[str], float],
    sets: Mapping[tuple[int, ...], Alike],
    tails: Tails | None,
) -> AnyLoss:
    """Chance in a year and mean years until at least one partition loses something.

    Parameters
    ----------
    losses : mapping of pattern to SetLosses
        What one partition on sets of a rack pattern loses.
    strikes_per_year : callable
        How often a mechanism strikes one broker, one rack or the cluster.
    sets : mapping of pattern to Alike
        Which sets there are, by `Placement.alike`; with ``tails`` for their ``leaders``.
    tails : Tails, optional
        None if no record is acknowledged by a leader alone.
    """
    # Partitions on the same replicas lose together, but for their tails.
    counts = {pattern: alike.partitions if tails else alike.sets for pattern, alike in sets.items()}
    if sum(counts.values()) == 1:
        only = next(iter(losses.values())).first
        mean_years = only.mean_hours / HOURS_PER_YEAR
        return AnyLoss(only.probability, mean_years, (only.probability,) * 2)
    firsts = {pattern: losses[pattern].first for pattern in sets}
    known = {pattern: HOURS_PER_YEAR / first.mean_hours for pattern, first in firsts.items()}
    most_often = math.fsum(known[pattern] * count for pattern, count in counts.items())
    if most_often == 0:
        return AnyLoss(0.0, math.inf, (0.0, 0.0))
    fluxes = {pattern: _of_first_losses(losses[pattern], known[pattern], tails) for pattern in sets}
    rate = _rate_of_any_loss(fluxes, strikes_per_year, sets, tails)
    rate = min(max(rate, *known.values()), most_often)
    least = max(first.probability for first in firsts.values())
    most = math.fsum(firsts[pattern].probability * count for pattern, count in counts.items())
    most = min(most, 1.0)
    return AnyLoss(min(max(-math.expm1(-rate), least), most), 1.0 / rate, (least, most))


def _of_first_losses(
    found: SetLosses, known_per_year: float, tails: Tails | None
) -> Mapping[str, float]:
    """What a set loses a year by each mechanism, without what soon follows another loss.

    Losses come in clumps; the chain knows how much rarer the first of them is. Tails come in pairs
    at most, which `Tails.each_change` counts.
    """
    if tails:
        return found.per_year
    total = math.fsum(found.per_year.values())
    share = min(known_per_year / total, 1.0) if total else 0.0
    return {mechanism: flux * share for mechanism, flux in found.per_year.items()}


def _rate_of_any_loss(
    fluxes: Mapping[tuple[int, ...], Mapping[str, float]],
    strikes_per_year: Callable[[str], float],
    sets: Mapping[tuple[int, ...], Alike],
    tails: Tails | None,
) -> float:
    """How often, per year, at least one set loses something.

    Where a set loses more often than a mechanism strikes its sites, what exceeds that was set off
    later, by what is not shared. So more sets, or more losses, never make a loss rarer.
    """
    mechanisms = {mechanism for found in fluxes.values() for mechanism in found}
    struck_per_year = {mechanism: strikes_per_year(mechanism) for mechanism in mechanisms}
    chances = tails.each_change if tails else 1
    nobody: dict[tuple[str, Hashable], float] = defaultdict(float)
    alone = 0.0
    for pattern, alike in sets.items():
        for mechanism, flux in fluxes[pattern].items():
            strikes = struck_per_year[mechanism]
            if strikes == 0:
                # Set off by the end of a spell that something else began: nothing is shared.
                alone += flux * alike.sets
                continue
            scope = mechanism.split(".")[0]
            for (struck, sites), partitions in alike.struck.items():
                if struck != (scope if scope in ("broker", "rack") else "cluster"):
                    continue
                share = flux / sites / strikes / chances
                unhurt = chances * math.log1p(-min(share, 1.0 - 1e-12))
                for site, count in partitions.items():
                    nobody[mechanism, site] += unhurt * count
                if share > 1.0:
                    alone += (share - 1.0) * strikes * chances * sum(partitions.values())
    return alone + math.fsum(
        -math.expm1(logarithm) * struck_per_year[mechanism]
        for (mechanism, _), logarithm in nobody.items()
    )
