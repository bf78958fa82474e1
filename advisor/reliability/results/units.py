"""Sampled values of the measures that `simulate` returns: estimates, and shares by mechanism.

Also the methods of sampling, the weights of sampled losses, and sentences about both.
"""

from __future__ import annotations

import copyreg
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from advisor import formatting


def _read_only(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(items)


# Results hold read-only mappings, which Python cannot copy or pickle by itself.
copyreg.pickle(MappingProxyType, lambda found: (_read_only, (dict(found),)))

CRUDE, IMPORTANCE, SPLITTING = "crude", "importance", "splitting"
"""Methods: unweighted years, cycles with more frequent failures, and years whose paths are split as
more replicas go down."""
_METHOD_NAMES = {
    CRUDE: "Plain simulation",
    IMPORTANCE: "Importance sampling",
    SPLITTING: "Splitting",
}


class Share(NamedTuple):
    """Contribution of a mechanism to a measure."""

    measure: str
    mechanism: str
    value: float


@dataclass(frozen=True)
class Breakdown:
    """The sampled measures by mechanism.

    shares: those of a measure sum up to its value.
    replica_sets: classes of replica sets: how many racks one spans, how many there are, and how
        many partitions are on them.
    span_years: the simulated years, with the time until everything was healthy again after each.
    """

    shares: tuple[Share, ...]
    replica_sets: tuple[tuple[int, int, int], ...]
    span_years: float

    @property
    def racks(self) -> int | None:
        """Number of racks that every replica set spans; None if they differ."""
        classes = [racks for racks, _, _ in self.replica_sets]
        return classes[0] if len(classes) == 1 else None


@dataclass(frozen=True)
class Estimate:
    """One measure as sampled, with its 95 % interval.

    Parameters
    ----------
    value : float
        The estimate, in the unit of its measure. If no event was seen, the bound: the upper one
        of a rate, the lower one of ``mean_years_to_loss``; it is 0 only for what cannot happen.
    low, high : float
        Ends of the interval, in the same unit.
    n : float
        Years simulated.
    method : str
        How the interval was computed, and whether anything was seen.

    See Also
    --------
    advisor.simulate : Returns an estimate for every measure.

    Examples
    --------
    >>> from advisor.reliability.results.sampled import Estimate
    >>> found = Estimate(0.02, 0.01, 0.04, 1000, "20 of 1,000 years, Clopper-Pearson")
    >>> print(found)
    0.02 (95 %: 0.01 to 0.04)
    >>> found.seen, float(found)
    (True, 0.02)
    >>> Estimate(0.003, 0.0, 0.003, 1000, "not seen in 1,000 years").seen
    False
    """

    value: float
    low: float
    high: float
    n: float
    method: str

    @property
    def seen(self) -> bool:
        """Whether any event was seen; if not, only a bound is known."""
        return self.high != math.inf and (self.low > 0.0 or self.value < self.high)

    def __str__(self) -> str:
        low, high = formatting.significant(self.low), formatting.significant(self.high)
        if self.seen:
            return f"{formatting.significant(self.value)} (95 %: {low} to {high})"
        if self.high == 0.0 or math.isinf(self.low):
            # Impossible with this setting, such as records dropped with acks=all.
            return "none" if self.high == 0.0 else "never"
        return f"below {high}" if self.low == 0.0 else f"above {low}"

    def __float__(self) -> float:
        return self.value


def refused_words(stopped: Estimate) -> str:
    """Time without writes with its interval."""
    if stopped.high == 0.0:
        return "none modelled"
    if not stopped.seen:
        return f"none seen, so less than {formatting.time_per_year(stopped.high)} (95 %)"
    ends = formatting.interval(*map(formatting.time_per_year, (stopped.low, stopped.high)))
    return f"{formatting.time_per_year(stopped.value)}{ends}"


def loss_words(first: Estimate, years: int) -> str:
    """Frequency of data loss, from the time until the first loss in ``years`` sampled years."""
    if math.isinf(first.low):
        return "nothing in this card loses an acknowledged record"
    if not first.seen:
        once = formatting.once_at_most(first.low)
        return f"none in {years:,} simulated years, so {once} (95 %)"
    ends = formatting.once_interval(first.low, first.high)
    return f"{formatting.once_in(first.value)}{ends}"


FEWEST_EFFECTIVE = 30.0
"""Effective losses from which on the interval of weighted losses holds."""


@dataclass(frozen=True)
class Weights:
    """Number and weights of the sampled losses, which say how far the estimate can be trusted.

    losses: cycles or paths with a loss that were drawn.
    effective: effective sample size of the weighted losses: (sum of weights)^2 over the variance of
        this sum, which is the sum of their squares if they are independent (Kish, Survey Sampling,
        1965); at most as many as were drawn.
    largest_share: share of the heaviest loss in the total weight. Much more than 1 / ``effective``
        means that a rare loss with a large weight may be missing.
    """

    losses: int
    effective: float
    largest_share: float

    @classmethod
    def of(cls, losses: int, total: float, variance: float, largest: float) -> Weights:
        """From the sum of the weights, the variance of this sum, and the largest weight."""
        if not total > 0.0:
            return cls(losses, 0.0, 0.0)
        return cls(losses, min(total * total / variance, losses), largest / total)

    @property
    def in_words(self) -> str:
        """Number, effective number, and the largest weight."""
        effective = formatting.significant(self.effective)
        heaviest = formatting.significant(100 * self.largest_share)
        return (
            f"{self.losses:,} weighted losses, as good as {effective} unweighted ones; "
            f"the largest weight is {heaviest} % of the total"
        )


def method_lines(method: str, why: str, weights: Weights | None) -> list[str]:
    """Sentences on the sampling method, with the reason if the user did not choose it."""
    name = _METHOD_NAMES[method]
    lines = [f"{name}, because {why}."] if why else []
    if weights is None:
        return lines
    basis = "no loss was drawn"
    if weights.losses:
        basis, fewest = weights.in_words, weights.effective
        if fewest < FEWEST_EFFECTIVE:
            basis += (
                ". These are too few: a rare kind of loss with a large weight may be missing, and "
                "the interval may be an order of magnitude off; sample more years"
            )
    return [*lines, f"{name}: {basis}."]
