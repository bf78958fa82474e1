"""A logarithmic axis for loss probability or unavailability, better upwards.

The position is the number of nines, -log10(q). Zero has no logarithm: it has a lane of its own
beyond the best positive value, separated by a line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from advisor.formatting import RARER
from advisor.present.labels import (
    availability,
    on_axis,
    once_in_from_probability,
    once_in_years,
    time_per_year_label,
)
from advisor.present.points import Estimated

_LANE = 0.15  # height of the lane for zero, as a fraction of the axis
_PAD = 0.05
_LEAST_DECADES = 1.0
_STEPS = (1, 2, 3, 4, 5, 10, 20, 50)
# Up to one year in 20, the probability per year equals the rate to about two digits.
_RARE = 0.05


@dataclass(frozen=True)
class NinesAxis:
    """Positions, in nines, and labels of one axis; `zero` is None if no value is zero."""

    bottom: float
    top: float
    zero: float | None
    ticks: tuple[tuple[float, str], ...]

    def at(self, value: float) -> float:
        """Return the position of a probability or an unavailability, clipped to the limits."""
        if value <= 0:
            return self.top if self.zero is None else self.zero
        return min(max(-math.log10(value), self.bottom), self.top)

    @property
    def border(self) -> float | None:
        """Where the lane for zero begins; None without one."""
        return None if self.zero is None else self.zero - (self.top - self.zero)


def loss_label(probability: float) -> str:
    """Return the two-line tick label of a loss probability per year."""
    if probability == 0:
        return "no loss\nmodelled"
    between = (
        once_in_years(1 / probability)
        if probability <= _RARE
        else once_in_from_probability(probability)
    )
    # On the axis a rare probability is a position, not a promise: it gets no years.
    if between == RARER:
        return on_axis(probability).replace(" a year", "\na year")
    return f"{on_axis(probability)}\n{between}"


def refused_label(unavailability: float) -> str:
    """Return the two-line tick label of a write unavailability."""
    if unavailability == 0:
        return "no refusal\nmodelled"
    return f"{availability(unavailability)}\n{time_per_year_label(unavailability)}"


def nines_axis(
    estimates: Iterable[Estimated], label: Callable[[float], str], most_ticks: int = 6
) -> NinesAxis:
    """Return an axis that covers all values and their intervals; `label` words a tick."""
    estimates = tuple(estimates)
    ends = [q for e in estimates for q in (e.value, e.low, e.high)]
    positive = [q for q in ends if q > 0]
    zero = any(e.value == 0 for e in estimates)
    if not positive:
        return NinesAxis(0.0, 1.0, 0.5, ((0.5, label(0.0)),))
    low, high = -math.log10(max(positive)), -math.log10(min(positive))
    spare = max(0.0, _LEAST_DECADES - (high - low)) / 2
    low, high = low - spare, high + spare
    # No tick above a probability of 1.
    low = max(low, 0.0)
    pad = _PAD * (high - low)
    bottom, top = low - pad, high + pad
    round_ticks = max(2, most_ticks - 1) if zero else most_ticks
    ticks = [(-math.log10(q), label(q)) for q in _round_values(bottom, top, round_ticks)]
    if not zero:
        return NinesAxis(bottom, top, None, tuple(sorted(ticks)))
    lane = _LANE * (top - bottom) / (1 - _LANE)
    # A tick just below the lane would overlap the label of the lane.
    ticks = [(at, words) for at, words in ticks if at < top - lane]
    ticks.append((top + lane / 2, label(0.0)))
    return NinesAxis(bottom, top + lane, top + lane / 2, tuple(sorted(ticks)))


def _round_values(low: float, high: float, most_ticks: int) -> list[float]:
    """Return round values between two numbers of nines, far enough apart for two-line labels."""
    for mantissas, narrowest in (((1, 2, 5), math.log10(2)), ((1, 3), math.log10(3))):
        powers = range(math.floor(low), math.ceil(high) + 2)
        fine = [mantissa * 10.0**-power for power in powers for mantissa in mantissas]
        inside = [q for q in fine if low <= -math.log10(q) <= high and q <= 1]
        if narrowest >= (high - low) / min(most_ticks, 5) and 0 < len(inside) <= most_ticks:
            return inside
    first, last = max(0, math.ceil(low)), math.floor(high)
    for step in _STEPS:
        decades = [e for e in range(first, last + 1) if e % step == 0]
        if 0 < len(decades) <= most_ticks and step >= (high - low) / most_ticks:
            return [10.0**-e for e in decades]
    return [10.0**-first, 10.0**-last]
