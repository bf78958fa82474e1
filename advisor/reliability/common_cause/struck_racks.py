"""Whether any set survives a strike: of a broker, of the cluster, or of racks at once.

One rack fails first and takes each other one along with the same probability. A set loses if all
racks of its *home* are struck. Racks are enumerated (up to 2 ** 16 choices) or, in larger clusters,
drawn: always the same ones, by how often they lose sets.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.solver.generator import IntArray, Vector, sums
from advisor.reliability.statespace.state_index import codes_of_rows

BoolArray = NDArray[np.bool_]

# Up to this number of racks with homes every choice of racks is enumerated.
_ENUMERATED = 16
# With more racks, choices that are drawn; fewer where there are many homes.
_MOST_CHOICES, _FEWEST, _CELLS = 4096, 64, 2_000_000
# In units of the share of losses that are drawn, rather than known.
_MORE_CHOICES = 1.0
# Racks that fit into the bits of a number.
_MOST_BITS = 62
_SEED = 20130626
# Smaller logarithms of probabilities count as this one.
_LEAST_LOG = -30.0


class AnyStruck(NamedTuple):
    """How often any home is struck and loses, in units of how often one rack fails first.

    error: standard error of the rate; 0 where racks are enumerated.
    """

    rate: float
    error: float = 0.0


def struck_together(racks: int, spreads: Vector, homes: IntArray) -> Vector:
    """How often all racks of each home are struck, in units of how often one fails first.

    One of them, or a rack elsewhere, is the first. homes (homes, widest): padded with -1.
    Returns (homes, draws), by the probability for each other rack to be struck at the same moment.
    """
    sizes = np.arange(1, homes.shape[1] + 1)[:, None]
    elsewhere = np.maximum(racks - sizes, 0)
    factors = spreads ** (sizes - 1) * (sizes + elsewhere * spreads)
    rates: Vector = factors[(homes >= 0).sum(axis=1) - 1]
    return rates


class StruckRacks(NamedTuple):
    """How far one failure spreads: racks of the cluster, probability for each other one."""

    racks: int
    spreads: float = 0.0

    def all_of_each(self, homes: IntArray) -> Vector:
        """`struck_together` for the one mechanism, shape (homes,)."""
        return struck_together(self.racks, np.array([self.spreads]), homes)[:, 0]

    def any_loss(self, homes: IntArray, log_survival: Vector) -> AnyStruck:
        """How often any home loses.

        homes (homes, widest): numbers of distinct racks in a row, after a padding of -1.
        log_survival (homes,): of all its sets when all of its racks are struck.
        """
        if not self.spreads or homes.shape[1] == 1:
            # Homes of several racks are never struck whole; a single rack stands last in its row.
            single = (homes >= 0).sum(axis=1) == 1
            return AnyStruck(self._by_single_racks(homes[single, -1], log_survival[single]))
        racks, which = np.unique(homes[homes >= 0], return_inverse=True)
        where = np.full(homes.shape, -1)
        where[homes >= 0] = which
        if len(racks) <= _ENUMERATED:
            return AnyStruck(self._enumerated(where, log_survival, len(racks)))
        return self._drawn(where, log_survival, len(racks))

    def _by_single_racks(self, racks: IntArray, log_survival: Vector) -> float:
        """The same where every home is one rack: these survive independently of each other."""
        alone = np.maximum(np.bincount(racks, log_survival), _LEAST_LOG)
        # That a rack does not lose where another one fails first.
        along = np.log1p(self.spreads * np.expm1(alone))
        elsewhere = max(self.racks - len(alone), 0)
        first = -np.expm1(alone + along.sum() - along)
        return float(first.sum()) - elsewhere * math.expm1(float(along.sum()))

    def _enumerated(self, homes: IntArray, log_survival: Vector, racks: int) -> float:
        """Every choice of racks: sums over the homes within it take one pass for each rack."""
        whole = np.bincount(_bits(homes), log_survival, 1 << racks)
        sizes = np.zeros(1, dtype=np.int64)
        for rack in range(racks):
            halves = whole.reshape(-1, 2, 1 << rack)
            halves[:, 1] += halves[:, 0]
            sizes = np.concatenate([sizes, sizes + 1])
        lost = np.bincount(sizes, -np.expm1(whole), racks + 1)
        struck = np.arange(racks + 1.0)
        elsewhere = max(self.racks - racks, 0)
        alone = (1.0 - self.spreads) ** (racks - struck)
        often = alone[1:] * self.spreads ** (struck[1:] - 1.0)
        return float(lost[1:] @ (often * (struck[1:] + elsewhere * self.spreads)))

    def _drawn(self, homes: IntArray, log_survival: Vector, racks: int) -> AnyStruck:
        """The same from choices drawn as often as they lose homes (Karp and Luby, FOCS 1983).

        The rate is the sum over homes, times the mean of what any loses to what all of them lose at
        such choices. If most failures lose several homes, racks are drawn as they fail.
        """
        lost = -np.expm1(log_survival)
        often = lost * self.all_of_each(homes)
        total = float(often.sum())
        if total <= 0.0:
            return AnyStruck(0.0)
        amounts = np.stack([lost, log_survival], axis=1)
        draw, struck_homes = np.random.default_rng(_SEED), _Within(homes, racks)
        fewest = min(_CELLS // len(homes), _MOST_CHOICES)
        if total >= self.racks:
            choices = max(fewest, _FEWEST)
            struck = self._as_they_fail(choices, racks, draw)
            whole, logs = struck_homes.sums(amounts, struck).T
            any_lost = -np.expm1(logs)
            # How many homes are lost on average is known, and tells part of how often any is.
            off = whole - whole.mean()
            slope = float(off @ any_lost) / max(float(off @ off), 1e-300)
            samples = self.racks * (any_lost - slope * whole) + slope * total
            # Failures that lose nothing may be so rare that none was drawn.
            error = math.hypot(
                float(samples.std(ddof=1)) / math.sqrt(choices), self.racks / choices
            )
            return AnyStruck(min(max(float(samples.mean()), 0.0), total), error)
        size = (homes >= 0).sum(axis=1)
        alone = (1.0 - self.spreads) ** (racks - size)
        # Without a first rack among those that have no home and are not seen.
        elsewhere = (self.racks - size) * self.spreads
        alone *= (size + (self.racks - racks) * self.spreads) / (size + elsewhere)
        only = np.zeros((len(homes), racks + 1), dtype=bool)
        only[np.arange(len(homes))[:, None], homes] = True
        whole, logs = struck_homes.sums(amounts, only).T
        exact = float((often * alone) @ (-np.expm1(logs) / whole))
        more = often * (1.0 - alone)
        rest = float(more.sum())
        choices = max(int(fewest * min(_MORE_CHOICES * rest / total, 1.0)), _FEWEST)
        given = homes[np.searchsorted(np.cumsum(more), draw.random(choices) * rest)]
        struck = self._with_others(given, racks, draw)
        whole, logs = struck_homes.sums(amounts, struck).T
        samples = -np.expm1(logs) / whole
        error = rest * float(samples.std(ddof=1)) / math.sqrt(choices)
        return AnyStruck(exact + rest * float(samples.mean()), error)

    def _as_they_fail(self, choices: int, racks: int, draw: np.random.Generator) -> BoolArray:
        """Struck racks of failures, shape (choices, racks + 1); the last column is padding."""
        struck = draw.random((choices, racks + 1), dtype=np.float32) < self.spreads
        first = draw.integers(self.racks, size=choices)
        # Other first racks have no homes.
        with_homes = np.flatnonzero(first < racks)
        struck[with_homes, first[with_homes]] = True
        struck[:, racks] = True
        return struck

    def _with_others(self, given: IntArray, racks: int, draw: np.random.Generator) -> BoolArray:
        """The same where all of the given racks are struck and at least one other with homes.

        If one of the others is the first, it may be any of them; else the first by number that is
        taken along comes after a geometric number of others that are not.
        """
        choices, rows = len(given), np.arange(len(given))[:, None]
        is_given = np.zeros((choices, racks + 1), dtype=bool)
        is_given[rows, given] = True
        is_given[:, racks] = True
        size = (given >= 0).sum(axis=1)
        others = racks - size
        some_along = -np.expm1(others * self._log_spared)
        other_first = others * self.spreads
        first_elsewhere = (size + (self.racks - racks) * self.spreads) * some_along
        forced = draw.random(choices) * (other_first + first_elsewhere) < other_first
        chance = draw.random(choices)
        passed = np.log1p(-chance * some_along) / self._log_spared
        place = np.where(forced, chance * others, passed).astype(np.int64)
        rank = np.cumsum(~is_given, axis=1) - 1
        along = draw.random((choices, racks + 1), dtype=np.float32) < self.spreads
        along &= forced[:, None] | (rank > place[:, None])
        struck: BoolArray = is_given | along | (rank == place[:, None])
        return struck

    @property
    def _log_spared(self) -> float:
        """Logarithm of the probability that a rack is not taken along."""
        return math.log1p(-min(self.spreads, 1.0 - 1e-12))


def _bits(homes: IntArray) -> IntArray:
    """The racks of each home as bits."""
    bits: IntArray = np.where(homes >= 0, np.int64(1) << np.maximum(homes, 0), 0).sum(axis=1)
    return bits


class _Within:
    """Which homes are struck.

    homes (homes, widest): racks in rows, padded with -1.
    """

    def __init__(self, homes: IntArray, racks: int) -> None:
        self._homes = homes
        self._bits = _bits(homes) if racks < _MOST_BITS else None
        self._places = np.int64(1) << np.arange(min(racks, _MOST_BITS))

    def sums(self, amounts: Vector, struck: BoolArray) -> Vector:
        """Sums of the amounts of the homes whose racks are all struck, shape (choices, columns)."""
        if self._bits is not None:
            codes = struck[:, :-1] @ self._places
            inside = (codes[:, None] & self._bits) == self._bits
        else:
            by_rack = np.ascontiguousarray(struck.T)
            inside = by_rack[self._homes].all(axis=1).T
        summed: Vector = inside.astype(np.float64) @ amounts
        return summed


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
        log_survival: Vector = np.log1p(-np.minimum(shares, LARGEST_PROBABILITY)) * (many * trials)
        return log_survival

    def at_least(self) -> Vector:
        """Lower bound of the rate at which at least one set loses, which is quick to compute."""
        rate = self.nothing + sum(self._independent.values())
        for (mechanism, _), added in self._at_sites.items():
            log_survival = np.min([logs.min(axis=0) for _, logs in added], axis=0)
            rate = rate + self.strikes(mechanism) * -np.expm1(log_survival)
        for mechanism, at_homes in self._at_homes.items():
            least_of_picked = [
                (self.all_of_each(mechanism, homes) * -np.expm1(logs)).max(axis=0)
                for homes, logs in at_homes
            ]
            rate = rate + self.strikes(mechanism) * np.max(least_of_picked, axis=0)
        return rate

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
