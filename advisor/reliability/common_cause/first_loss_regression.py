"""First losses of many topics of a cluster: some computed, those of similar topics by regression.

How often any set of a topic loses depends on which brokers and racks its sets share. Computing that
takes some hundredths of a second, and topics with the same settings, whose replicas are spread over
the same brokers, differ little. So once enough of them have been computed, the logarithm of the
rate is fitted by least squares, through the nearest of them, to how many sets there are, how often
one loses and how they are spread. A topic is fitted only if it lies among these, and if the error
stated for it is below two hundredths; that comes from how well the fit predicts each of them, left
out in turn (Allen, Technometrics 1974). Any other topic is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np

from advisor.reliability.common_cause.first_loss import AnyLoss, SetsAlone
from advisor.reliability.common_cause.placement import Placement
from advisor.reliability.failures.fault_environment import Exchangeable
from advisor.reliability.solver.generator import Vector

Pair = tuple[AnyLoss, AnyLoss]
"""A first loss as counted, and the one with the upper estimate of its mean time."""

_PRECISION = 0.02
# The stated error is this many times the root mean square of the leave-one-out residuals.
_STATED = 4.0
# A fit uses the nearest _NEAREST topics, and at least _MORE more than it has directions.
_NEAREST, _MORE = 24, 5
# A topic is among those computed if its leverage is at most this, and it hardly differs from them
# in any other direction.
_FAR, _ASIDE = 2.0, 1e-3
_SAME = 1e-9


@dataclass
class FirstLossRegression:
    """First losses of topics, by kind; topics of a kind differ in how their sets are spread.

    Attributes
    ----------
    computed, fitted : int
        Number of first losses that were computed, and that were fitted.
    """

    computed: int = 0
    fitted: int = 0
    _kinds: dict[Hashable, _Kind] = field(default_factory=dict, repr=False)

    def first_losses(
        self,
        kind: Hashable,
        alone: tuple[SetsAlone, SetsAlone],
        placement: Placement,
        exchangeable: Exchangeable,
        compute: Callable[[], Pair],
    ) -> Pair:
        """Return the first losses of a topic.

        Parameters
        ----------
        kind : hashable
            What topics must have in common to be compared: rules, mechanisms and their rates.
        alone : (SetsAlone, SetsAlone)
            The topic's sets, each by itself, for either of the two losses.
        placement : Placement
        exchangeable : Exchangeable
        compute : callable
            Computes both.
        """
        if min(each.per_year for each in alone) == 0 or alone[0].sets == 1:
            self.computed += 1
            return compute()
        # Sets in racks of other kinds lose for other reasons.
        kind = kind, frozenset(alone[0].counts)
        known = self._kinds.setdefault(kind, _Kind())
        where = _spread(alone[0], placement, exchangeable)
        found = known.predict(where, alone)
        if found is None:
            self.computed += 1
            found = compute()
            known.learn(where, found)
        else:
            self.fitted += 1
        return found


class _Kind:
    """First losses of one kind of topics."""

    def __init__(self) -> None:
        self._where: list[Vector] = []
        self._found: list[Pair] = []

    def learn(self, where: Vector, found: Pair) -> None:
        """Add a topic whose first losses were computed."""
        self._where.append(where)
        self._found.append(found)

    def predict(self, where: Vector, alone: tuple[SetsAlone, SetsAlone]) -> Pair | None:
        """First losses of a topic; None if it must be computed."""
        if len(self._where) <= _MORE:
            return None
        every = np.array(self._where)
        apart = (every - where) / np.maximum(every.std(axis=0), _SAME)
        nearest = (apart**2).sum(axis=1).argsort(kind="stable")[:_NEAREST]
        near = [self._found[number] for number in nearest.tolist()]
        rates = np.array([[-math.log(each.mean_years) for each in pair] for pair in near])
        fit = _Fit(every[nearest], rates)
        off = fit.error_at(where)
        if off > _PRECISION:
            return None
        off += max(each.error for pair in near for each in pair)
        found = [
            sets.together(sets.possible(math.exp(rate)), like.shares, off)
            for sets, rate, like in zip(alone, fit.at(where).tolist(), near[0], strict=True)
        ]
        return found[0], max(found, key=lambda each: each.mean_years)


class _Fit:
    """Least squares through some topics, in the directions in which they differ.

    Parameters
    ----------
    where : array, shape (topics, features)
    rates : array, shape (topics, 2)
        Logarithms of rates.
    """

    def __init__(self, where: Vector, rates: Vector) -> None:
        self._mean = where.mean(axis=0)
        self._scale = np.maximum(where.std(axis=0), _SAME)
        left, sizes, self._directions = np.linalg.svd(
            (where - self._mean) / self._scale, full_matrices=False
        )
        kept = sizes > 1e-6 * max(sizes[0], 1.0)
        self._directions = self._directions[kept]
        self._sizes, left = sizes[kept], left[:, kept]
        self._level = rates.mean(axis=0)
        self._slopes = left.T @ (rates - self._level)
        topics, known = len(where), 1 + int(kept.sum())
        residuals = rates - self._level - left @ self._slopes
        leverage = 1.0 / topics + (left**2).sum(axis=1)
        alone = residuals / np.maximum(1.0 - leverage, _SAME)[:, None]
        self._off = float(np.sqrt((alone**2).mean(axis=0)).max())
        self._enough = topics >= known + _MORE
        self._topics = topics

    def error_at(self, where: Vector) -> float:
        """Relative error of the rate at a topic; infinite if it lies beyond those computed."""
        apart = (where - self._mean) / self._scale
        along = self._directions @ apart
        beyond = apart - along @ self._directions
        leverage = 1.0 / self._topics + float(((along / self._sizes) ** 2).sum())
        if not self._enough or leverage > _FAR or float(np.abs(beyond).max()) > _ASIDE:
            return math.inf
        return _STATED * self._off * math.sqrt(1.0 + leverage)

    def at(self, where: Vector) -> Vector:
        """Logarithms of the rates at a topic, shape (2,)."""
        along = self._directions @ ((where - self._mean) / self._scale) / self._sizes
        level: Vector = self._level + along @ self._slopes
        return level


def _spread(alone: SetsAlone, placement: Placement, exchangeable: Exchangeable) -> Vector:
    """What decides how often any set of a topic loses, as logarithms and shares.

    How many sets there are, how often one loses, what share has each rack pattern and on how many
    racks, how many brokers hold them and how many of these lead.
    """
    sets = alone.sets
    many = math.log(sets)
    features = [many, many * many, math.log(alone.per_year / sets)]
    brokers: set[int] = set()
    leaders = {replicas[0] for replicas, _ in placement.sets}
    for pattern, found in sorted(placement.replica_set_classes(exchangeable).items()):
        racks = {
            frozenset(map(placement.rack_of.__getitem__, members)) for members in found.members
        }
        features += [alone.counts[pattern] / sets, math.log(max(len(racks), 1))]
        for members in found.members:
            brokers.update(members)
    return np.array([*features, math.log(len(brokers)), math.log(len(leaders))])
