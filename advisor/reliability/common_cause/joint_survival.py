"""Whether any set survives a strike: the sets of each struck broker, racks or cluster together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from advisor.reliability.common_cause.struck_racks import StruckRacks
from advisor.reliability.solver.generator import IntArray, Vector, sums
from advisor.reliability.statespace.state_index import codes_of_rows

LARGEST_PROBABILITY = 1.0 - 1e-12
"""Larger ones count as this one, so that ``log(1 - probability)`` is finite."""


class JointSurvival:
    """Log-probability, per mechanism and site, that no set loses when the site is struck.

    A site is a broker, the cluster, or a home: racks that are struck at once. Where a set loses
    more often than its site is struck, the excess was triggered later, by something that is not
    shared. So more sets, or more losses, never make the first loss rarer.

    strikes_per_year: how often a mechanism strikes one broker, one rack or the cluster.
    racks: of the whole cluster.
    spreads: probability that a mechanism that strikes a rack takes each other one along.
    """

    def __init__(
        self,
        strikes_per_year: Callable[[str], float],
        racks: int = 1,
        spreads: Callable[[str], float] = lambda _mechanism: 0.0,
    ) -> None:
        self._strikes = lru_cache(maxsize=None)(strikes_per_year)
        self._racks, self._spreads = racks, spreads
        self._at_sites: dict[tuple[str, str], list[tuple[IntArray, Vector]]] = defaultdict(list)
        self._at_homes: dict[str, list[tuple[IntArray, Vector]]] = defaultdict(list)
        self._independent: dict[str, float] = defaultdict(float)

    def strikes(self, mechanism: str) -> float:
        """Rate of the mechanism; 0 if it ends an outage that another began."""
        return self._strikes(mechanism)

    def struck_racks(self, mechanism: str) -> StruckRacks:
        """Which racks one event of a mechanism strikes."""
        return StruckRacks(self._racks, self._spreads(mechanism))

    def add_independent(self, mechanism: str, per_year: float) -> None:
        """Add losses that no other set shares."""
        self._independent[mechanism] += per_year

    def add_at_sites(
        self,
        mechanism: str,
        scope: str,
        sites: IntArray,
        per_year: Vector | float,
        counts: IntArray | int = 1,
        trials: int = 1,
    ) -> None:
        """Add ``counts`` sets at each site that lose independently given a strike there.

        sites (sites,): they may repeat.
        per_year (sites,) or a number: losses of one set.
        trials: independent chances of each set to lose per strike.
        """
        often = np.full(len(sites), self._strikes(mechanism))
        logs = self._log_survival(mechanism, often, per_year, counts, trials)
        self._at_sites[mechanism, scope].append((sites, logs))

    def add_at_homes(
        self,
        mechanism: str,
        homes: IntArray,
        per_year: Vector | float,
        counts: IntArray | int = 1,
        trials: int = 1,
    ) -> None:
        """The same for losses when all racks of a home are struck.

        homes (homes, widest): racks in rows, padded with -1.
        """
        often = self._strikes(mechanism) * self.struck_racks(mechanism).all_of_each(homes)
        logs = self._log_survival(mechanism, often, per_year, counts, trials)
        self._at_homes[mechanism].append((homes, logs))

    def add_log_survival_at_homes(self, mechanism: str, homes: IntArray, logs: Vector) -> None:
        """Add the logarithm of the probability of no loss when all racks of a home are struck."""
        self._at_homes[mechanism].append((homes, logs))

    def _log_survival(
        self,
        mechanism: str,
        often: Vector,
        per_year: Vector | float,
        counts: IntArray | int,
        trials: int,
    ) -> Vector:
        shares = per_year / np.where(often > 0.0, often, np.inf) / trials
        later = np.maximum(per_year - np.minimum(shares, 1.0) * often * trials, 0.0) * counts
        excess = float(later.sum())
        if excess > 0.0:
            self.add_independent(mechanism, excess)
        found: Vector = np.log1p(-np.minimum(shares, LARGEST_PROBABILITY)) * (counts * trials)
        return found

    def at_least(self) -> float:
        """Lower bound of the rate at which at least one set loses, which is quick to compute."""
        found = math.fsum(self._independent.values())
        for (mechanism, _), added in self._at_sites.items():
            found += self._strikes(mechanism) * max(
                float(-np.expm1(logs.min())) for _, logs in added
            )
        for mechanism, at_homes in self._at_homes.items():
            racks = self.struck_racks(mechanism)
            found += self._strikes(mechanism) * max(
                float((racks.all_of_each(homes) * -np.expm1(logs)).max())
                for homes, logs in at_homes
            )
        return found

    def losses_per_year(self) -> tuple[dict[str, float], float]:
        """Rate per year at which at least one set loses, by mechanism; and the sum's error."""
        parts: dict[str, list[float]] = defaultdict(list)
        for mechanism, often in self._independent.items():
            parts[mechanism].append(often)
        for (mechanism, _), added in self._at_sites.items():
            sites, logs = (np.concatenate(columns) for columns in zip(*added, strict=True))
            lost = -np.expm1(np.bincount(sites - sites.min(), logs))
            parts[mechanism].append(float(lost.sum()) * self._strikes(mechanism))
        off = 0.0
        for mechanism, at_homes in self._at_homes.items():
            homes, which = distinct_homes([homes for homes, _ in at_homes])
            logs = sums(which, np.concatenate([logs for _, logs in at_homes]), len(homes))
            struck = self.struck_racks(mechanism).any_loss(homes, logs)
            parts[mechanism].append(struck.rate * self._strikes(mechanism))
            off += struck.error * self._strikes(mechanism)
        return {mechanism: math.fsum(amounts) for mechanism, amounts in parts.items()}, off


def distinct_homes(parts: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """The distinct rows of several tables of homes, and which of these each row is."""
    widest = max(homes.shape[1] for homes in parts)
    rows = np.concatenate([_padded(homes, widest) for homes in parts])
    rows = rows[:, (rows >= 0).any(axis=0)]
    _, first, which = np.unique(codes_of_rows((rows + 1).T), return_index=True, return_inverse=True)
    return rows[first], which.ravel()


def _padded(homes: IntArray, width: int) -> IntArray:
    """Rows of sorted racks, -1 first, of this width."""
    more = width - homes.shape[1]
    return np.concatenate([np.full((len(homes), more), -1), homes], axis=1) if more else homes
