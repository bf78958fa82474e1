"""Whether any set survives a strike: the sets of each struck broker, rack or cluster together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import lru_cache

import numpy as np

from advisor.reliability.solver.generator import IntArray, Vector

LARGEST_PROBABILITY = 1.0 - 1e-12
"""Larger ones count as this one, so that ``log(1 - probability)`` is finite."""


class JointSurvival:
    """Log-probability, per mechanism and site, that no set loses when the site is struck.

    Where a set loses more often than its site is struck, the excess was triggered later, by
    something that is not shared. So more sets, or more losses, never make the first loss rarer.

    Parameters
    ----------
    strikes_per_year : callable
        How often a mechanism strikes one broker, one rack or the cluster.
    """

    def __init__(self, strikes_per_year: Callable[[str], float]) -> None:
        self._strikes = lru_cache(maxsize=None)(strikes_per_year)
        self._log_survival: dict[tuple[str, str, Hashable], float] = defaultdict(float)
        self._independent: dict[str, float] = defaultdict(float)

    def strikes(self, mechanism: str) -> float:
        """Rate of the mechanism; 0 if it ends an outage that another began."""
        return self._strikes(mechanism)

    def add_independent(self, mechanism: str, per_year: float) -> None:
        """Add losses that no other set shares."""
        self._independent[mechanism] += per_year

    def add_at_site(
        self,
        mechanism: str,
        scope: str,
        site: Hashable,
        per_year: float,
        count: int,
        trials: int = 1,
    ) -> None:
        """Add ``count`` sets at a site that lose independently given a strike, at this rate each.

        Each set has ``trials`` independent chances to lose per strike.
        """
        strikes = self._strikes(mechanism)
        share = per_year / strikes / trials
        log_survival = trials * math.log1p(-min(share, LARGEST_PROBABILITY))
        self._log_survival[mechanism, scope, site] += log_survival * count
        if share > 1.0:
            self.add_independent(mechanism, (share - 1.0) * strikes * trials * count)

    def add_at_sites(self, mechanism: str, scope: str, sites: IntArray, per_year: Vector) -> None:
        """Add one loss at each of several sites, which may repeat."""
        strikes = self._strikes(mechanism)
        shares = per_year / strikes
        log_survival = np.log1p(-np.minimum(shares, LARGEST_PROBABILITY))
        first = int(sites.min())
        totals = np.bincount(sites - first, log_survival)
        for site in np.flatnonzero(totals).tolist():
            self._log_survival[mechanism, scope, site + first] += float(totals[site])
        excess = float(np.maximum(shares - 1.0, 0.0).sum()) * strikes
        self.add_independent(mechanism, excess)

    def losses_per_year(self) -> dict[str, float]:
        """Rate per year at which at least one set loses, by mechanism."""
        parts = defaultdict(list)
        for mechanism, often in self._independent.items():
            parts[mechanism].append(often)
        for (mechanism, _, _), log_survival in self._log_survival.items():
            parts[mechanism].append(-math.expm1(log_survival) * self._strikes(mechanism))
        return {mechanism: math.fsum(amounts) for mechanism, amounts in parts.items()}
