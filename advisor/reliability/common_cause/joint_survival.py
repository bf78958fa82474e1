"""Whether any set survives a strike: the sets of each struck broker, racks or cluster together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.common_cause.struck_racks import StruckRacks, struck_together
from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.solver.generator import IntArray, Vector, sums
from advisor.reliability.statespace.state_index import codes_of_rows

LARGEST_PROBABILITY = 1.0 - 1e-12
"""Larger ones count as this one, so that ``log(1 - probability)`` is finite."""


class StrikeRates(NamedTuple):
    """What strikes a cluster, in each draw of a card.

    per_year (draws,): how often a mechanism strikes one broker, one rack or the cluster; 0 if it
        ends outages that others began.
    along (draws,): probability that what strikes a rack takes each other one along, or a restart
        another one.
    picks: how its events pick brokers by chance, in each draw.
    """

    per_year: Mapping[str, Vector]
    along: Mapping[str, Vector]
    picks: Mapping[str, Sequence[Pick]]

    @classmethod
    def of(
        cls,
        per_year: Sequence[Mapping[str, float]],
        along: Sequence[Mapping[str, float]] = ({},),
        picks: Sequence[Mapping[str, Pick]] = ({},),
    ) -> StrikeRates:
        """The strikes of some draws, each with the same mechanisms."""
        return cls(
            {name: np.array([drawn[name] for drawn in per_year]) for name in per_year[0]},
            {name: np.array([drawn[name] for drawn in along]) for name in along[0]},
            {name: [drawn[name] for drawn in picks] for name in picks[0]},
        )

    @property
    def same_events(self) -> NDArray[np.bool_]:
        """Draws in which the same can happen as in the first."""
        same = np.bool_(True)
        for amounts in (*self.per_year.values(), *self.along.values()):
            same = same & ((amounts > 0.0) == (amounts[0] > 0.0))
        return np.asarray(same)


class JointSurvival:
    """Log-probability, per mechanism and site, that no set loses when the site is struck.

    A site is a broker, the cluster, or a home: racks that are struck at once. Where a set loses
    more often than its site is struck, the excess was triggered later, by something that is not
    shared. So more sets, or more losses, never make the first loss rarer.

    racks: of the whole cluster.
    """

    def __init__(self, struck: StrikeRates, racks: int, draws: int) -> None:
        self._struck, self._racks, self.nothing = struck, racks, np.zeros(draws)
        self._at_sites: dict[tuple[str, str], list[tuple[IntArray, Vector]]] = defaultdict(list)
        self._at_homes: dict[str, list[tuple[IntArray, Vector]]] = defaultdict(list)
        self._independent: dict[str, Vector] = {}

    def strikes(self, mechanism: str) -> Vector:
        """Rate of the mechanism; 0 if it ends an outage that another began."""
        return self._struck.per_year.get(mechanism, self.nothing)

    def along(self, mechanism: str) -> Vector:
        """Probability that it takes others along."""
        return self._struck.along.get(mechanism, self.nothing)

    def elsewhere_spared(self, mechanism: str, homes: IntArray) -> Vector:
        """Probability that no further rack is struck with those of a home: (homes, draws)."""
        further = np.maximum(self._racks - (homes >= 0).sum(axis=1), 0)
        spared: Vector = (1.0 - self.along(mechanism)) ** further[:, None]
        return spared

    def all_of_each(self, mechanism: str, homes: IntArray) -> Vector:
        """How often all racks of each home are struck, in units of its strikes: (homes, draws)."""
        return struck_together(self._racks, self.along(mechanism), homes)

    def add_independent(self, mechanism: str, per_year: Vector) -> None:
        """Add losses that no other set shares."""
        self._independent[mechanism] = self._independent.get(mechanism, self.nothing) + per_year

    def add_at_sites(
        self,
        mechanism: str,
        scope: str,
        sites: IntArray,
        per_year: Vector,
        counts: IntArray | int = 1,
        trials: int = 1,
    ) -> None:
        """Add ``counts`` sets at each site that lose independently given a strike there.

        sites (sites,): they may repeat.
        per_year (draws,) or (sites, draws): losses of one set.
        trials: independent chances of each set to lose per strike.
        """
        often = np.broadcast_to(self.strikes(mechanism), (len(sites), len(self.nothing)))
        logs = self._log_survival(mechanism, often, per_year, counts, trials)
        self._at_sites[mechanism, scope].append((sites, logs))

    def add_at_homes(
        self,
        mechanism: str,
        homes: IntArray,
        per_year: Vector,
        counts: IntArray | int = 1,
        trials: int = 1,
    ) -> None:
        """The same for losses when all racks of a home are struck.

        homes (homes, widest): racks in rows, padded with -1.
        """
        often = self.strikes(mechanism) * self.all_of_each(mechanism, homes)
        logs = self._log_survival(mechanism, often, per_year, counts, trials)
        self._at_homes[mechanism].append((homes, logs))

    def add_log_survival_at_homes(self, mechanism: str, homes: IntArray, logs: Vector) -> None:
        """Add the logarithm of the probability of no loss when all racks of a home are struck."""
        self._at_homes[mechanism].append((homes, logs))

    def _log_survival(
        self,
        mechanism: str,
        often: Vector,
        per_year: Vector,
        counts: IntArray | int,
        trials: int,
    ) -> Vector:
        many = np.broadcast_to(counts, len(often))[:, None]
        shares = per_year / np.where(often > 0.0, often, np.inf) / trials
        later = np.maximum(per_year - np.minimum(shares, 1.0) * often * trials, 0.0) * many
        excess = later.sum(axis=0)
        if (excess > 0.0).any():
            self.add_independent(mechanism, excess)
        found: Vector = np.log1p(-np.minimum(shares, LARGEST_PROBABILITY)) * (many * trials)
        return found

    def at_least(self) -> Vector:
        """Lower bound of the rate at which at least one set loses, which is quick to compute."""
        found = self.nothing + sum(self._independent.values())
        for (mechanism, _), added in self._at_sites.items():
            least = np.min([logs.min(axis=0) for _, logs in added], axis=0)
            found = found + self.strikes(mechanism) * -np.expm1(least)
        for mechanism, at_homes in self._at_homes.items():
            most = [
                (self.all_of_each(mechanism, homes) * -np.expm1(logs)).max(axis=0)
                for homes, logs in at_homes
            ]
            found = found + self.strikes(mechanism) * np.max(most, axis=0)
        return found

    def losses_per_year(self) -> tuple[dict[str, Vector], Vector]:
        """Rate per year at which at least one set loses, by mechanism; and the sum's error."""
        rates = dict(self._independent)
        for (mechanism, _), added in self._at_sites.items():
            sites, logs = (np.concatenate(columns) for columns in zip(*added, strict=True))
            first = int(sites.min())
            lost = -np.expm1(sums(sites - first, logs, int(sites.max()) - first + 1))
            often = lost.sum(axis=0) * self.strikes(mechanism)
            rates[mechanism] = rates.get(mechanism, self.nothing) + often
        off = self.nothing
        for mechanism, at_homes in self._at_homes.items():
            homes, which = distinct_homes([homes for homes, _ in at_homes])
            logs = sums(which, np.concatenate([logs for _, logs in at_homes]), len(homes))
            struck = [
                StruckRacks(self._racks, along).any_loss(homes, column)
                for along, column in zip(self.along(mechanism).tolist(), logs.T, strict=True)
            ]
            rate, error = np.array(struck).T * self.strikes(mechanism)
            rates[mechanism] = rates.get(mechanism, self.nothing) + rate
            off = off + error
        return rates, off


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
