"""Which racks one failure strikes: given them, sets lose independently of each other.

One rack fails first and takes each other one along with the same probability. A set loses if all
racks of its *home* are struck. Racks are enumerated (up to 2 ** 16 choices) or, in larger clusters,
drawn: always the same ones, by how often they lose sets.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.solver.generator import IntArray, Vector

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
    found: Vector = factors[(homes >= 0).sum(axis=1) - 1]
    return found


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
            found = self.racks * (any_lost - slope * whole) + slope * total
            # Failures that lose nothing may be so rare that none was drawn.
            error = math.hypot(float(found.std(ddof=1)) / math.sqrt(choices), self.racks / choices)
            return AnyStruck(min(max(float(found.mean()), 0.0), total), error)
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
        found = -np.expm1(logs) / whole
        error = rest * float(found.std(ddof=1)) / math.sqrt(choices)
        return AnyStruck(exact + rest * float(found.mean()), error)

    def _as_they_fail(self, choices: int, racks: int, draw: np.random.Generator) -> BoolArray:
        """Struck racks of failures, shape (choices, racks + 1); the last column is padding."""
        struck = draw.random((choices, racks + 1), dtype=np.float32) < self.spreads
        first = draw.integers(self.racks, size=choices)
        # Other first racks have no homes.
        seen = np.flatnonzero(first < racks)
        struck[seen, first[seen]] = True
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
        found: Vector = inside.astype(np.float64) @ amounts
        return found
