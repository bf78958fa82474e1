"""Small numbers in words, two digits each: the assumptions behind them carry no more."""

from __future__ import annotations

import math
from collections.abc import Sequence

MINUTES_PER_YEAR = 525_600.0

MECHANISM_WORDS = {
    "broker.crash": "broker crashes",
    "broker.power": "hosts losing power",
    "broker.destroyed": "brokers destroyed",
    "broker.lag": "replicas lagging behind",
    "broker.restart": "planned restarts (patching)",
    "rack.network": "racks cut off",
    "rack.power": "racks losing power",
    "rack.destroyed": "racks destroyed",
    "cluster.power": "power lost everywhere at once",
}

_SMALL_NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)


def significant(value: float, digits: int = 2) -> str:
    """Return a number with so many significant digits, without an exponent where it is readable.

    >>> significant(178487.06), significant(5.591e-6), significant(3.0)
    ('180,000', '5.6e-06', '3')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits - 1}e}")
    if 1e-3 <= abs(rounded) < 1e15:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
        text = f"{rounded:,.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{rounded:.{digits - 1}e}"


def years(value: float) -> str:
    """Return a span of years: "0.5 years", "12,000 years", "3.4 million years", "2.1e+16 years"."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if size <= value < 1e15:
            return f"{significant(value / size)} {word} years"
    return f"{significant(value)} year" + ("" if significant(value) == "1" else "s")


def years_between(probability: float) -> float:
    """Return the mean years between random events of which a year has one with `probability`."""
    if probability >= 1:
        return 0.0
    return math.inf if probability == 0 else -1.0 / math.log1p(-probability)


def how_often(probability: float) -> str:
    """Return "once in N years" or "N times a year" for a probability per year."""
    between = years_between(probability)
    if math.isinf(between):
        return "never"
    if between >= 1:
        return f"once in {years(between)}"
    return f"{significant(1 / between)} times a year" if between > 0 else "all the time"


def loss_words(probability: float, low: float, high: float) -> str:
    """Return "you lose an acknowledged record about once in N years (95 %: a to b)"."""
    if probability == 0:
        return "no modelled mechanism loses an acknowledged record"
    text = f"you lose an acknowledged record about {how_often(probability)}"
    if low >= high:
        return text
    if low > 0 and years_between(high) >= 1:
        span = f"{years(years_between(high))} to {years(years_between(low))}"
    else:
        span = f"{how_often(high)} to {how_often(low)}"
    return f"{text} (95 %: {span})"


def refused_words(unavailability: float, low: float, high: float) -> str:
    """Return "writes are refused M minutes a year (95 %: a to b)"."""
    if unavailability == 0:
        return "no modelled mechanism refuses writes"
    text = f"writes are refused {time_a_year(unavailability)} a year"
    return text + (f" (95 %: {time_a_year(low)} to {time_a_year(high)})" if low < high else "")


def time_a_year(fraction: float) -> str:
    """Return a fraction of a year as "12 seconds", "53 minutes", "8.8 hours" or "27 days"."""
    minutes = fraction * MINUTES_PER_YEAR
    for least, unit, word in ((2880.0, 1440.0, "day"), (120.0, 60.0, "hour"), (1.0, 1.0, "minute")):
        if minutes >= least:
            return _counted(minutes / unit, word)
    return _counted(minutes * 60.0, "second")


def count(number: int, noun: str) -> str:
    """Return "one broker", "six brokers", "40 brokers"."""
    word = _SMALL_NUMBERS[number] if 0 <= number < len(_SMALL_NUMBERS) else f"{number:,}"
    return f"{word} {noun}{'' if number == 1 else 's'}"


def listed(items: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def _counted(value: float, word: str) -> str:
    text = significant(value)
    return f"{text} {word}{'' if text == '1' else 's'}"
