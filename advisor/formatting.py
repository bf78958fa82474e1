"""Numbers, durations and intervals as text, mostly with two significant digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

HOURS_PER_YEAR = 8760.0

# Enough for numbers that people write, and hides binary rounding.
_INPUT_DIGITS = 6
# Larger numbers are written with an exponent.
_EXPONENT_FROM = 1e15
_MINUTES_PER_YEAR = HOURS_PER_YEAR * 60.0
# Smallest number of years, years in one unit, unit.
_LONG_UNITS = (
    (1e12, 1e12, "trillion years"),
    (1e9, 1e9, "billion years"),
    (1e6, 1e6, "million years"),
    (1.0, 1.0, "years"),
    (1 / 12, 1 / 12, "months"),
    (0.0, 1 / 365, "days"),
)

# Smallest number of minutes, minutes in one unit, unit.
_SHORT_UNITS = (
    (48 * 60.0, 1440.0, "days"),
    (120.0, 60.0, "hours"),
    (1.0, 1.0, "minutes"),
    (1 / 60, 1 / 60, "seconds"),
)

# The same for narrow columns: smallest number of hours, hours in one unit, unit.
_BRIEF_UNITS = (
    (48.0, 24.0, "days"),
    (1.0, 1.0, "h"),
    (1.0 / 60.0, 1.0 / 60.0, "min"),
    (1.0 / 3600.0, 1.0 / 3600.0, "s"),
    (1.0 / 3.6e6, 1.0 / 3.6e6, "ms"),
)

RAREST_YEARS = 2_000.0
"""Losses rarer than once in this many years are shown as "rarer than", without a number.

People or automation wipe brokers more often: the low end of ``cluster-wiped`` in
``data/failure_rates.csv`` is 1 / 0.0005 a year. Data (`to_dict`, `to_frame`, JSON) keep all digits.
"""

ONCE = "once in "
RARER = f"rarer than once in {RAREST_YEARS:,.0f} years"
"""How often something happens that is rarer than `RAREST_YEARS`."""


def significant(value: float, digits: int = 2) -> str:
    """Round to significant digits; no exponent from 0.001 to 1e15."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits - 1}e}")
    if 1e-3 <= abs(rounded) < _EXPONENT_FROM:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
        text = f"{rounded:,.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return _short_exponent(f"{rounded:.{digits - 1}e}")


def as_given(value: float) -> str:
    """Format an input value: its own digits, up to six, with thousands separators."""
    text = f"{value:,.{_INPUT_DIGITS}g}"
    rounded = float(f"{value:.{_INPUT_DIGITS}g}")
    if "e+" in text and abs(rounded) < _EXPONENT_FROM:
        return f"{rounded:,.0f}"
    return _short_exponent(text)


def in_few_digits(value: float, as_written: Callable[[float], str] = as_given) -> str:
    """As given; of more than three digits, which nobody gives for a range, the first two.

    >>> in_few_digits(0.125), in_few_digits(0.0173913), in_few_digits(1500.0)
    ('0.125', '0.017', '1,500')
    """
    is_short = value == float(f"{value:.2e}")
    return as_written(value) if is_short else significant(value)


def _short_exponent(text: str) -> str:
    """Return "1e-6" for Python's "1e-06", as charts write it."""
    return text.replace("e-0", "e-").replace("e+0", "e+")


def years(value: float) -> str:
    """Format a number of years: ``4 months``, ``12 years``, ``3.4 million years``."""
    if math.isinf(value):
        return "never"
    if value < 1 / 365:
        return f"{significant(value * HOURS_PER_YEAR)} hours"
    for least, size, unit in _LONG_UNITS:
        # Round first: 999,999.5 years are a million.
        if least <= float(f"{value:.1e}") < 1e15:
            number = significant(value / size)
            single = number == "1" and " " not in unit
            return f"{number} {unit.removesuffix('s') if single else unit}"
    return f"{significant(value)} years"


def time_per_year(fraction: float) -> str:
    """Format a fraction of time as time per year: ``8.8 hours a year``."""
    if fraction > 0.995:
        return "all the time"
    # Round first: 119.9 minutes are two hours.
    minutes = float(f"{fraction * _MINUTES_PER_YEAR:.1e}")
    for least, size, unit in _SHORT_UNITS:
        if minutes >= least:
            number = significant(fraction * _MINUTES_PER_YEAR / size)
            return f"{number} {unit if number != '1' else unit.removesuffix('s')} a year"
    return "less than a second a year"


def brief_time_per_year(fraction: float, digits: int = 2) -> str:
    """Format a fraction of time for narrow columns: ``8.8 h/year``.

    >>> brief_time_per_year(1e-3), brief_time_per_year(1.0)
    ('8.8 h/year', 'all year')
    """
    if fraction >= 0.995:
        return "all year"
    hours = fraction * HOURS_PER_YEAR
    for least, unit_hours, unit in _BRIEF_UNITS:
        # 59.7 s would round to 60 s: use the larger unit.
        text = significant(hours / unit_hours, digits)
        if float(text.replace(",", "")) * unit_hours >= least:
            return f"{text} {unit}/year"
    return "under 1 ms/year"


def is_rare(mean_years: float) -> bool:
    """Return whether an event is rarer than once in `RAREST_YEARS`."""
    return mean_years > RAREST_YEARS


def once_in(mean_years: float) -> str:
    """Format the mean years between events.

    >>> once_in(480.0), once_in(5.5e8), once_in(math.inf)
    ('once in 480 years', 'rarer than once in 2,000 years', 'never')
    """
    if math.isinf(mean_years):
        return "never"
    if is_rare(mean_years):
        return RARER
    return f"{ONCE}{years(mean_years)}" if mean_years > 0 else "all the time"


def once_at_most(mean_years: float) -> str:
    """Format the fewest mean years between events: ``less than once in 12 years``."""
    often = once_in(mean_years)
    return often if is_rare(mean_years) or mean_years <= 0 else f"less than {often}"


def once_interval(low: float, high: float) -> str:
    """Format the 95 % interval of mean years between events, in brackets.

    "" where both ends are too rare for a number, or the same.

    >>> once_interval(35.0, 1800.0), once_interval(35.0, 7.5e7), once_interval(3e3, 7.5e7)
    (' (95 %: 35 to 1,800 years)', ' (95 %: once in 35 years or rarer)', '')
    """
    if is_rare(low):
        return ""
    if is_rare(high):
        return f" (95 %: {once_in(low)} or rarer)"
    return interval(years(low), years(high))


def interval(low: str, high: str) -> str:
    """Format a 95 % interval in brackets; "" if both ends are the same text.

    >>> interval("3 hours", "5 hours"), interval("4 hours", "4 hours")
    (' (95 %: 3 to 5 hours)', '')
    """
    return f" (95 %: {span(low, high)})" if low != high else ""


def span(first: str, second: str) -> str:
    """Format a range; a unit that both ends share is written once.

    >>> span("5 s/year", "39 s/year"), span("5 s/year", "2 min/year")
    ('5 to 39 s/year', '5 s/year to 2 min/year')
    """
    number, _, unit = first.partition(" ")
    # Identical units only: in "440,000 to 110 million years" both would read as millions.
    same_unit = unit and number[0].isdigit() and second.partition(" ")[2] == unit
    return f"{number if same_unit else first} to {second}"


def dependence(low: float, high: float) -> str:
    """Format the bounds of P(loss) over all assumptions on simultaneous losses.

    >>> dependence(0.0952, 0.761), dependence(1e-9, 1e-9)
    (' However many partitions lose at once, the chance of a loss in a year is 0.095 to 0.76.', '')
    """
    least, most = significant(low), significant(high)
    if least == most:
        return ""
    chance = f"{least} to {most}" if high < 1.0 else f"{least} at least"
    return f" However many partitions lose at once, the chance of a loss in a year is {chance}."


def counted(number: int, noun: str) -> str:
    """Format a number with its noun, in the plural if needed.

    >>> counted(1, "broker"), counted(1200, "partition")
    ('1 broker', '1,200 partitions')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def capital(text: str) -> str:
    """Return the text with its first letter capitalised."""
    return f"{text[:1].upper()}{text[1:]}"


def percent(share: float) -> str:
    """Format a share in whole percent (``61 %``); 0 and 100 only if exact."""
    if share < 0.005:
        return "under 1 %"
    return f"{100 * share:.0f} %" if share < 0.995 or share == 1 else "over 99 %"


def one_in(probability: float) -> str:
    """Format a small probability as operators say it.

    >>> one_in(1e-6), one_in(4.1e-7), one_in(1e-4), one_in(1e-25)
    ('1 in 1 million', '1 in 2.4 million', '1 in 10,000', '1 in 10^25')
    """
    if probability < 1 / _EXPONENT_FROM:
        return f"1 in 10^{-math.log10(probability):.0f}"
    many = float(f"{1 / probability:.1e}")
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if many >= size:
            return f"1 in {significant(many / size)} {word}"
    return f"1 in {significant(many)}"


def percents(shares: Sequence[float]) -> list[str]:
    """Format the parts of a whole as `percent`, so that whole percents add up to 100.

    >>> percents([0.531, 0.182, 0.106, 0.056, 0.125])
    ['53 %', '18 %', '11 %', '6 %', '12 %']
    """
    words = [percent(share) for share in shares]
    if abs(sum(shares) - 1.0) > 1e-9 or any(not each[0].isdigit() for each in words):
        return words
    whole = [math.floor(100 * share) for share in shares]
    rest = sorted(range(len(shares)), key=lambda at: whole[at] - 100 * shares[at])
    for at in rest[: 100 - sum(whole)]:
        whole[at] += 1
    return [f"{number} %" for number in whole]


def unacknowledged(records_per_year: str) -> str:
    """Return what acks=0 loses, the same on every screen; "" for no records at all.

    >>> unacknowledged("1,200")
    'nothing acknowledged, 1,200 records lost a year'
    """
    if not records_per_year:
        return "nothing acknowledged, no record lost"
    return f"nothing acknowledged, {records_per_year} records lost a year"
