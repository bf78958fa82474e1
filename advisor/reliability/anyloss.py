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
from advisor.reliability.placement import Placement, Replicas
from advisor.reliability.ranges import Interval
from advisor.reliability.solve import FirstLoss

Sites = tuple[Hashable, ...]


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
    sets: Mapping[Replicas, SetLosses],
    strikes_per_year: Callable[[str], float],
    where: Placement,
    tails: Tails | None,
) -> AnyLoss:
    """Chance in a year and mean years until at least one partition loses something.

    Parameters
    ----------
    sets : mapping of replicas to SetLosses
        Every distinct set. With ``tails`` the replicas are in the order of the assignment.
    strikes_per_year : callable
        How often a mechanism strikes one broker, one rack or the cluster.
    where : Placement
    tails : Tails, optional
        None if no record is acknowledged by a leader alone.
    """
    # Partitions on the same replicas lose together, but for their tails.
    counts = dict(where.sets) if tails else dict.fromkeys(sets, 1)
    if sum(counts.values()) == 1:
        only = next(iter(sets.values())).first
        mean_years = only.mean_hours / HOURS_PER_YEAR
        return AnyLoss(only.probability, mean_years, (only.probability,) * 2)
    total = math.fsum(flux for found in sets.values() for flux in found.per_year.values())
    if total == 0:
        return AnyLoss(0.0, math.inf, (0.0, 0.0))
    rate = _rate_of_any_loss(sets, strikes_per_year, where, tails, counts)
    if not tails:
        # Losses come in clumps; the chains know how much rarer the first of them is.
        firsts = math.fsum(HOURS_PER_YEAR / found.first.mean_hours for found in sets.values())
        rate *= min(firsts / total, 1.0)
    chances = [(found.first.probability, counts[replicas]) for replicas, found in sets.items()]
    least = max(chance for chance, _ in chances)
    most = min(math.fsum(chance * count for chance, count in chances), 1.0)
    return AnyLoss(min(max(-math.expm1(-rate), least), most), 1.0 / rate, (least, most))


def _rate_of_any_loss(
    sets: Mapping[Replicas, SetLosses],
    strikes_per_year: Callable[[str], float],
    where: Placement,
    tails: Tails | None,
    counts: Mapping[Replicas, int],
) -> float:
    """How often, per year, at least one set loses something.

    Between the largest set's rate and the sum of all.
    """
    mechanisms = {mechanism for found in sets.values() for mechanism in found.per_year}
    struck_per_year = {mechanism: strikes_per_year(mechanism) for mechanism in mechanisms}
    chances = tails.each_change if tails else 1
    nobody: dict[tuple[str, Hashable], float] = defaultdict(float)
    alone = 0.0
    for replicas, found in sets.items():
        # A tail is lost with its leader.
        struck = replicas[: tails.leaders] if tails else replicas
        for mechanism, flux in found.per_year.items():
            strikes = struck_per_year[mechanism]
            if strikes == 0:
                # Set off by the end of a spell that something else began: nothing is shared.
                alone += flux
                continue
            sites = _sites(mechanism, struck, where)
            share = flux / len(sites) / strikes / chances
            unhurt = chances * counts[replicas] * math.log1p(-min(share, 1.0 - 1e-12))
            for site in sites:
                nobody[mechanism, site] += unhurt
    return alone + math.fsum(
        -math.expm1(logarithm) * struck_per_year[mechanism]
        for (mechanism, _), logarithm in nobody.items()
    )


def _sites(mechanism: str, replicas: Replicas, where: Placement) -> Sites:
    """The brokers or racks whose failures can strike a set; one site if all fail together."""
    scope = mechanism.split(".")[0]
    if scope == "broker":
        return replicas
    if scope == "rack":
        return tuple(dict.fromkeys(where.rack_of[broker] for broker in replicas))
    return ("cluster",)
