"""A log axis of a small side, better upwards, with a lane of its own for zero.

A position on it is the number of nines, -log10(q). Zero has no logarithm: settings that no
modelled mechanism can hurt stand in a lane beyond the best positive value, set off by a line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from advisor.present.labels import (
    availability,
    once_in,
    once_in_years,
    per_year,
    time_per_year,
)
from advisor.present.points import Estimated

_LANE = 0.15  # height of the lane of zero, in parts of the axis
_PAD = 0.05
_LEAST_DECADES = 1.0
_STEPS = (1, 2, 3, 4, 5, 10, 20, 50)
# Up to here years with a loss and losses are the same to two digits, or nearly: one year in 20.
_RARE = 0.05


@dataclass(frozen=True)
class NinesAxis:
    """Positions and labels of one axis.

    Attributes
    ----------
    bottom, top
        The limits, in nines.
    zero
        Where a zero stands; None when there is none to show.
    ticks
        Position and label of each, ascending.
    """

    bottom: float
    top: float
    zero: float | None
    ticks: tuple[tuple[float, str], ...]

    def at(self, small_side: float) -> float:
        """Return the position of a probability or a fraction of time, cut at the limits."""
        if small_side <= 0:
            return self.top if self.zero is None else self.zero
        return min(max(-math.log10(small_side), self.bottom), self.top)

    @property
    def border(self) -> float | None:
        """Where the lane of zero begins; None without one."""
        return None if self.zero is None else self.zero - (self.top - self.zero)


def loss_label(small_side: float) -> str:
    """Return the two lines of a tick of durability."""
    if small_side == 0:
        return "no loss\nmodelled"
    between = once_in_years(1 / small_side) if small_side <= _RARE else once_in(small_side)
    return f"{per_year(small_side)}\n{between}"


def refused_label(small_side: float) -> str:
    """Return the two lines of a tick of write availability."""
    if small_side == 0:
        return "no refusal\nmodelled"
    return f"{availability(small_side)}\n{time_per_year(small_side)}"


def nines_axis(
    estimates: Iterable[Estimated], label: Callable[[float], str], most_ticks: int = 6
) -> NinesAxis:
    """Return an axis that shows all values and their intervals.

    Parameters
    ----------
    estimates
        What must fit on it.
    label
        Words for a small side; called with 0 for the lane of zero.
    most_ticks
        At most so many, the lane's aside.
    """
    known = tuple(estimates)
    shown = [q for e in known for q in (e.value, e.low, e.high) if q > 0]
    zero = any(e.value == 0 for e in known)
    if not shown:
        return NinesAxis(0.0, 1.0, 0.5, ((0.5, label(0.0)),))
    low, high = -math.log10(max(shown)), -math.log10(min(shown))
    spare = max(0.0, _LEAST_DECADES - (high - low)) / 2
    low, high = low - spare, high + spare
    # A probability above one would be nonsense on a tick.
    low = max(low, 0.0)
    pad = _PAD * (high - low)
    bottom, top = low - pad, high + pad
    most = max(2, most_ticks - 1) if zero else most_ticks
    ticks = [(-math.log10(q), label(q)) for q in _round_values(bottom, top, most)]
    if not zero:
        return NinesAxis(bottom, top, None, tuple(sorted(ticks)))
    lane = _LANE * (top - bottom) / (1 - _LANE)
    # A tick just below the lane would run into the lane's own label.
    ticks = [(at, words) for at, words in ticks if at < top - lane]
    ticks.append((top + lane / 2, label(0.0)))
    return NinesAxis(bottom, top + lane, top + lane / 2, tuple(sorted(ticks)))


def _round_values(low: float, high: float, most: int) -> list[float]:
    """Return round small sides between two numbers of nines: decades, or finer within few.

    A label is two lines high. Where `most` of them fit below each other, neighbours must stand
    that part of the axis apart; finer ones than decades a fifth at least.
    """
    for mantissas, narrowest in (((1, 2, 5), math.log10(2)), ((1, 3), math.log10(3))):
        powers = range(math.floor(low), math.ceil(high) + 2)
        fine = [mantissa * 10.0**-power for power in powers for mantissa in mantissas]
        inside = [q for q in fine if low <= -math.log10(q) <= high and q <= 1]
        if narrowest >= (high - low) / min(most, 5) and 0 < len(inside) <= most:
            return inside
    first, last = max(0, math.ceil(low)), math.floor(high)
    for step in _STEPS:
        decades = [e for e in range(first, last + 1) if e % step == 0]
        if 0 < len(decades) <= most and step >= (high - low) / most:
            return [10.0**-e for e in decades]
    return [10.0**-first, 10.0**-last]
