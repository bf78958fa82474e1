"""Destroyed brokers that later failures find not yet replaced.

An event that destroys several brokers exposes several sets, and one later failure makes all of them
lose: so the exposures of sets are not added up.
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

# Smaller shares of all losses are taken to be distinct, and their sum counts as an error.
_RARE = 2e-4

Pattern = tuple[int, ...]
Exposed = tuple[Pattern, OutageClass]


class Exposure(NamedTuple):
    """Losses of the sets of one pattern in one outage class.

    per_year: of one set.
    events: number of distinct events in which these sets can lose.
    """

    pattern: Pattern
    outage_class: OutageClass
    per_year: float
    events: float


class Destruction(NamedTuple):
    """Rates at which brokers are destroyed, and the time to replace them.

    hours: mean time until one is replaced.
    broker, rack: rates per year for one broker, and for all brokers of a rack at once.
    picked: rate per year of an event that picks brokers of the whole cluster, and the share picked.
    again: mean number of further destructions, of any broker or rack, until all are replaced.
    within_racks: some set has all its brokers in one rack: destroying one rack loses records.
    """

    hours: float = 0.0
    broker: float = 0.0
    rack: float = 0.0
    picked: tuple[tuple[float, float], ...] = ()
    again: float = 0.0
    within_racks: bool = False

    def after_picking(self, outage_class: OutageClass) -> float:
        """In how many outages of a class an event picked the destroyed brokers, at the most."""
        if not self.picked:
            return 0.0
        weights = _weights(self, outage_class)
        picked = math.fsum(weight for (_, share, _), weight in weights.items() if share > 0.0)
        return picked / math.fsum(weights.values()) if picked else 0.0

    def exposed_once(
        self, sets: CoincidentSets, scope: str, losses: Sequence[Exposure], whole: float
    ) -> list[tuple[float, float]]:
        """Rate at which any set of a class is exposed, as a share of the sum over distinct outages.

        Part of the error is that not all of these losses are the first of their outage.

        whole: approximate rate per year at which any set loses, by any event.
        Returns the share and its error, for each of the classes.
        """
        once, off = np.ones(len(losses)), np.zeros(len(losses))
        if not strikes(scope) or not self.hours or not (self.rack or self.picked):
            return list(zip(once.tolist(), off.tolist(), strict=True))
        # For each kind of destruction: number of the class, the class with racks marked, rate.
        kinds: dict[tuple[int, float], list[tuple[int, Exposed, float]]] = defaultdict(list)
        for number, (pattern, outage_class, often, events) in enumerate(losses):
            weights = _weights(self, outage_class)
            total = math.fsum(weights.values())
            for (destroyed_racks, share, marked), weight in weights.items():
                if not any(rack.destroyed for rack in marked):
                    continue
                if often * weight * events > _RARE * total * whole:
                    exposed = pattern, marked
                    kinds[destroyed_racks, share].append((number, exposed, often * weight / total))
                else:
                    off[number] += weight / total
        for (destroyed_racks, share), members in kinds.items():
            exposures = tuple(exposed for _, exposed, _ in members)
            found = sets.staggered_replacement(scope, exposures, by_rack=destroyed_racks > 0)
            rates = np.array([often / sets.ways(*each, scope)[0] for _, each, often in members])
            sizes = [_sizes(outage_class) for _, outage_class in exposures]
            if destroyed_racks:
                products = np.array([math.prod(each) for each in sizes])
                kept, error = found.after_rack_destructions(rates, products)
            else:
                totals = np.array([sum(each) for each in sizes])
                kept, error = found.after_random_destructions(rates, totals, share)
            # Twice: two kinds of outages may expose other sets before the rack is replaced.
            lost = 2.0 * (self.again + self.within_racks) if destroyed_racks else 1.0
            for number, _, often in members:
                part = often / losses[number].per_year
                once[number] -= (1.0 - kept) * part
                off[number] += (2.0 * error + kept * lost) * part
        return list(zip(once.tolist(), off.tolist(), strict=True))


@lru_cache(maxsize=4096)
def _weights(
    destruction: Destruction, outage_class: OutageClass
) -> Mapping[tuple[int, float, OutageClass], float]:
    """Weights of the ways in which the destroyed brokers of a class can be out together.

    By number of destroyed racks, share picked by an event, and class with the destroyed racks
    marked.
    """
    years = destruction.hours / HOURS_PER_YEAR
    out = {n: rack.brokers_out for n, rack in enumerate(outage_class) if rack.destroyed}
    ways: dict[tuple[int, float, OutageClass], float] = defaultdict(float)
    for destroyed_racks in range(len(out) + 1):
        for racks in combinations(out, destroyed_racks):
            weight = math.prod(
                destruction.rack * years / count
                if rack in racks
                else (destruction.broker * years) ** count
                for rack, count in out.items()
            )
            ways[destroyed_racks, 0.0, _marked(outage_class, racks)] += weight
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
