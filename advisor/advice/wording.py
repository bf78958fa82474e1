"""Parts of sentences: small numbers with two digits, counts, lists, how often something happens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from advisor.reliability.wording import mechanism

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


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
        if size <= float(f"{value:.1e}") < 1e15:
            return f"{significant(value / size)} {word} years"
    return f"{significant(value)} year" + ("" if significant(value) == "1" else "s")


def years_between(probability: float) -> float:
    """Return the mean years between random events of which a year has one with `probability`."""
    if probability >= 1:
        return 0.0
    return math.inf if probability == 0 else -1.0 / math.log1p(-probability)


def how_often(probability: float) -> str:
    """Return "once in N years" or "N times a year" for a probability per year."""
    return every(years_between(probability))


def every(mean_years: float) -> str:
    """Return "once in N years" or "N times a year" for the mean years between events."""
    if math.isinf(mean_years):
        return "never"
    if mean_years >= 1:
        return f"once in {years(mean_years)}"
    return f"{significant(1 / mean_years)} times a year" if mean_years > 0 else "all the time"


def count(number: int, noun: str) -> str:
    """Return "one broker", "six brokers", "40 brokers"."""
    word = _SMALL[number] if 0 <= number < len(_SMALL) else f"{number:,}"
    return f"{word} {noun}{'' if number == 1 else 's'}"


def listed(items: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def dominant(causes: Mapping[str, float]) -> str:
    """Return what a measure is mostly made of: "most of it from planned restarts"."""
    total = math.fsum(causes.values())
    if total <= 0:
        return ""
    name, amount = max(causes.items(), key=lambda item: item[1])
    if amount > 0.5 * total:
        return f"most of it from {mechanism(name)}"
    return f"the largest part, {amount / total:.0%}, from {mechanism(name)}"
