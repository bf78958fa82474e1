"""Distributions of the time between failures and of outages, by their mean and one number.

The mean is the card's, so that a rate can be changed whatever the distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from advisor.formatting import as_given

EXPONENTIAL, WEIBULL, LOGNORMAL, GAMMA, FIXED, EMPIRICAL = range(6)
"""The kinds of distribution, as the sampler numbers them."""


class Kind(NamedTuple):
    """What a card writes for a kind of distribution.

    least, most: of its number. Beyond, a sample of any length would not show the mean.
    """

    name: str
    number: str = ""
    least: float = 0.0
    most: float = math.inf


KINDS = (
    Kind("exponential"),
    Kind("weibull", "shape", 0.2, 1000.0),
    Kind("lognormal", "sigma", 0.001, 2.5),
    Kind("gamma", "shape", 0.01, 100_000.0),
    Kind("fixed"),
    Kind("empirical"),
)
"""Names of distributions by number: EXPONENTIAL first."""

HOURS_PER_UNIT: Mapping[str, float] = MappingProxyType(
    {"minutes": 1.0 / 60.0, "hours": 1.0, "days": 24.0}
)
"""The units in which a card may list observed times."""


@dataclass(frozen=True)
class TimeDistribution:
    """How a time with a known mean varies.

    kind: WEIBULL, LOGNORMAL, GAMMA, FIXED or EMPIRICAL; EXPONENTIAL is what a card has without one.
    parameter: the shape of a Weibull or gamma distribution, the sigma of a lognormal one (the
        standard deviation of its logarithm); 1 for others.
    values: observed times, from which an empirical distribution draws with equal probability.
    unit: of the values: "minutes", "hours" or "days"; "" without values.

    >>> wears_out = TimeDistribution(WEIBULL, 2.0)
    >>> print(wears_out)
    weibull, shape 2
    >>> round(wears_out.variation, 3)
    0.273
    """

    kind: int
    parameter: float = 1.0
    values: tuple[float, ...] = ()
    unit: str = ""
    evidence: str = ""

    @property
    def name(self) -> str:
        """The kind, as a card writes it."""
        return KINDS[self.kind].name

    @property
    def values_mean_hours(self) -> float:
        """Mean of the observed times, in hours; 0 without any."""
        if not self.values:
            return 0.0
        return math.fsum(self.values) / len(self.values) * HOURS_PER_UNIT[self.unit]

    @property
    def variation(self) -> float:
        """Variance in units of the squared mean: 1 for an exponential time, 0 for a fixed one."""
        if self.kind == WEIBULL:
            first, second = (math.lgamma(1.0 + n / self.parameter) for n in (1.0, 2.0))
            return math.expm1(second - 2.0 * first)
        if self.kind == LOGNORMAL:
            return math.expm1(self.parameter**2)
        if self.kind == GAMMA:
            return 1.0 / self.parameter
        if self.kind == EMPIRICAL:
            mean = math.fsum(self.values) / len(self.values)
            squares = math.fsum((value / mean - 1.0) ** 2 for value in self.values)
            return squares / len(self.values)
        return 0.0 if self.kind == FIXED else 1.0

    def scale(self, mean: float) -> float:
        """What a draw of the kind's standard form is multiplied with, for this mean.

        The standard forms are E, E^(1/shape), exp(sigma N), G(shape), 1 and a value over the mean
        of all, of a standard exponential E, normal N and gamma variable G.
        """
        if self.kind == WEIBULL:
            return mean / math.gamma(1.0 + 1.0 / self.parameter)
        if self.kind == LOGNORMAL:
            return mean * math.exp(-0.5 * self.parameter**2)
        return mean / self.parameter if self.kind == GAMMA else mean

    def to_dict(self) -> dict[str, Any]:
        """Return what a card would write."""
        written: dict[str, Any] = {"distribution": self.name}
        if KINDS[self.kind].number:
            written[KINDS[self.kind].number] = self.parameter
        if self.values:
            written[self.unit] = list(self.values)
        return written | {"evidence": self.evidence}

    def __str__(self) -> str:
        if self.values:
            least, most = as_given(min(self.values)), as_given(max(self.values))
            return f"{self.name}, {len(self.values)} times of {least} to {most} {self.unit}"
        number = KINDS[self.kind].number
        return f"{self.name}, {number} {as_given(self.parameter)}" if number else self.name
