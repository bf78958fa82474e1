"""Brokers that one event destroyed and that later failures find still out.

A set is exposed by some of its brokers being destroyed, each on its own, with its whole rack, or
picked by chance with others of the cluster. Where they were destroyed with others, so are other
sets' brokers, and one later failure loses all: so the exposure of sets is not added up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.outage_class import OutageClass, strikes
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR

# Smaller shares of all losses count as each on its own, and as an error.
_RARE = 2e-4

Pattern = tuple[int, ...]
Exposed = tuple[Pattern, OutageClass]


class Exposure(NamedTuple):
    """Losses of the sets of one pattern in one outage class.

    Attributes
    ----------
    pattern : tuple of int
    outage_class : OutageClass
    per_year : float
        Of one set.
    events : float
        How many times that all sets lose if each distinct event counts once.
    """

    pattern: Pattern
    outage_class: OutageClass
    per_year: float
    events: float


class Destruction(NamedTuple):
    """How brokers come to be destroyed.

    Attributes
    ----------
    hours : float
        Mean time until one is replaced.
    broker, rack : float
        How often a year one broker is, and all of a rack at once.
    picked : tuple of (float, float)
        How often a year an event picks brokers of the whole cluster, and the share that it picks.
    again : float
        Mean number of further destructions, of any broker or rack, until all are replaced.
    within_racks : bool
        Some set has all its brokers in one rack, so that the fire itself loses.
    """

    hours: float = 0.0
    broker: float = 0.0
    rack: float = 0.0
    picked: tuple[tuple[float, float], ...] = ()
    again: float = 0.0
    within_racks: bool = False

    def exposed_once(
        self, sets: CoincidentSets, scope: str, losses: Sequence[Exposure], whole: float
    ) -> list[tuple[float, float]]:
        """How often any set of a class is exposed, as a share of the sum over distinct outages.

        Not all of these losses are the first of their outage: the destruction may have lost some
        set at once, or the next failure another one. That is part of the error.

        Parameters
        ----------
        scope : str
            Of the event that loses.
        losses : sequence of Exposure
        whole : float
            About how often a year any set loses, by whatever event.

        Returns
        -------
        list of (float, float)
            Share and its error, for each of the classes.
        """
        once, off = np.ones(len(losses)), np.zeros(len(losses))
        if not strikes(scope) or not self.hours or not (self.rack or self.picked):
            return list(zip(once.tolist(), off.tolist(), strict=True))
        # Per kind of destruction: number of the class, the class with its racks marked, rate.
        kinds: dict[tuple[int, float], list[tuple[int, Exposed, float]]] = defaultdict(list)
        for number, (pattern, outage_class, often, events) in enumerate(losses):
            weights = _weights(self, outage_class)
            total = math.fsum(weights.values())
            for (fires, share, marked), weight in weights.items():
                if not any(rack.destroyed for rack in marked):
                    continue
                if often * weight * events > _RARE * total * whole:
                    exposed = pattern, marked
                    kinds[fires, share].append((number, exposed, often * weight / total))
                else:
                    off[number] += weight / total
        for (fires, share), members in kinds.items():
            exposures = tuple(exposed for _, exposed, _ in members)
            found = sets.alternatives(scope, exposures, by_rack=fires > 0)
            rates = np.array([often / sets.ways(*each, scope)[0] for _, each, often in members])
            sizes = [_sizes(outage_class) for _, outage_class in exposures]
            if fires:
                products = np.array([math.prod(each) for each in sizes])
                kept, error = found.after_fires(rates, products)
            else:
                totals = np.array([sum(each) for each in sizes])
                kept, error = found.after_picks(rates, totals, share)
            # Twice, as two kinds of outages may expose other sets before the fire is over.
            lost = 2.0 * (self.again + self.within_racks) if fires else 1.0
            for number, _, often in members:
                part = often / losses[number].per_year
                once[number] -= (1.0 - kept) * part
                off[number] += (2.0 * error + kept * lost) * part
        return list(zip(once.tolist(), off.tolist(), strict=True))


@lru_cache(maxsize=4096)
def _weights(
    destruction: Destruction, outage_class: OutageClass
) -> Mapping[tuple[int, float, OutageClass], float]:
    """Ways in which the destroyed brokers of a class came to be out together.

    Returns
    -------
    dict of (int, float, outage class) to float
        Relative frequency by number of fires, share picked by an event, and class with those
        racks marked in which brokers were destroyed together.
    """
    years = destruction.hours / HOURS_PER_YEAR
    out = {n: rack.brokers_out for n, rack in enumerate(outage_class) if rack.destroyed}
    ways: dict[tuple[int, float, OutageClass], float] = defaultdict(float)
    for fires in range(len(out) + 1):
        for racks in combinations(out, fires):
            weight = math.prod(
                destruction.rack * years / count
                if rack in racks
                else (destruction.broker * years) ** count
                for rack, count in out.items()
            )
            ways[fires, 0.0, _marked(outage_class, racks)] += weight
    needed = sum(out.values())
    if needed:
        for often, share in destruction.picked:
            key = 0, share, _marked(outage_class, tuple(out))
            ways[key] += often * years * share**needed / needed
    return ways


@lru_cache(maxsize=4096)
def _marked(outage_class: OutageClass, racks: tuple[int, ...]) -> OutageClass:
    """The class with only these racks marked as destroyed."""
    marked = (rack._replace(destroyed=n in racks) for n, rack in enumerate(outage_class))
    return tuple(sorted(marked))


@lru_cache(maxsize=4096)
def _sizes(outage_class: OutageClass) -> tuple[int, ...]:
    return tuple(rack.brokers_out for rack in outage_class if rack.destroyed)
