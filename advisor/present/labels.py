"""Labels of numbers: "once in 1.2 million years", "99.98 %", "1.8 h/year".

Two significant digits throughout: the inputs are not known better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal

from advisor import formatting as words_of
from advisor.advice.phrases import years_between
from advisor.formatting import significant, span, years

HOURS_PER_YEAR = 8760.0
_ONCE = "once in "
_LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_SPANS = (
    (48.0, 24.0, "days"),
    (1.0, 1.0, "h"),
    (1.0 / 60.0, 1.0 / 60.0, "min"),
    (1.0 / 3600.0, 1.0 / 3600.0, "s"),
    (1.0 / 3.6e6, 1.0 / 3.6e6, "ms"),
)


def per_year(probability: float) -> str:
    """Return a probability per year: "3.2 % / year", "4.1e-7 / year"; "none modelled" for 0."""
    if probability == 0:
        return "none modelled"
    if probability >= 0.9995e-3:
        return f"{_percent_below(probability)} % / year"
    return f"{_scientific(probability)} / year"


def once_in(probability: float) -> str:
    """Return the mean time between Poisson events: "once in 8 million years".

    `probability` is that of at least one event in a year. Short for 0 and 1, to fit beside an axis;
    a probability of 1 does not determine the rate.
    """
    if probability == 0:
        return "never, as modelled"
    if probability >= 1:
        return "many times a year"
    return once_in_years(years_between(probability))


def once_in_years(mean_years: float) -> str:
    """Return the mean time between events: "once in 8 million years", "once in 5.6 days"."""
    if math.isinf(mean_years):
        return "never, as modelled"
    # Rounded first: 999,999.5 years are a million.
    between = float(f"{mean_years:.1e}")
    return f"{_ONCE}{_scientific(between) + ' years' if between >= 1e15 else years(between)}"


def availability(unavailability: float) -> str:
    """Return the availability, given the unavailability: "99.98 %"; "9.52 nines" near 1."""
    if unavailability == 0:
        return "100 %, as modelled"
    if unavailability < 0.995e-9:
        return f"{significant(-math.log10(unavailability), 3)} nines"
    digits = 2 if unavailability < 0.9 else 4
    percent = Context(prec=digits).create_decimal(repr(float(unavailability))) * 100
    text = f"{Decimal(100) - percent:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def time_per_year(unavailability: float, digits: int = 2) -> str:
    """Return an unavailability as time per year: "8.8 h/year"; "none modelled" for 0."""
    if unavailability == 0:
        return "none modelled"
    if unavailability >= 0.995:
        return "all year"
    hours = unavailability * HOURS_PER_YEAR
    for least, unit_hours, unit in _SPANS:
        # 59.7 s would round to 60 s: use the larger unit.
        text = significant(hours / unit_hours, digits)
        if float(text.replace(",", "")) * unit_hours >= least:
            return f"{text} {unit}/year"
    return "under 1 ms/year"


def interval(low: float, high: float, say: Callable[[float], str]) -> str:
    """Return "95 %: a to b", each end worded by `say`.

    A common start or end is written once: "once in 3 months to 2 years", "5 to 39 s/year".
    """
    first, second = say(low), say(high)
    if first.startswith(_ONCE):
        return f"95 %: {first} to {second.removeprefix(_ONCE)}"
    return f"95 %: {span(first, second)}"


def between(least: str, most: str) -> str:
    """Return "once in 3 to 12 years", "5 to 39 s/year"; one of them if both are the same."""
    if least == most:
        return least
    if least.startswith(_ONCE) and most.startswith(_ONCE):
        return f"{_ONCE}{span(least.removeprefix(_ONCE), most.removeprefix(_ONCE))}"
    return span(least, most)


def short(value: float, digits: int = 2) -> str:
    """Return a number with few digits: "8.8e-6", "0.0034", "1,200", "5.7 million"."""
    for size, word in _LARGE:
        # Rounded first: 999,999.5 is a million.
        if float(f"{value:.{digits - 1}e}") >= size:
            return f"{significant(value / size, digits)} {word}"
    text = significant(value, digits)
    return _scientific(value, digits) if "e" in text else text


def as_given(value: float) -> str:
    """Return a number of a card with the digits that it was given: "0.0136", "50 million"."""
    given = float(f"{value:g}")
    for size, word in _LARGE:
        if given >= size:
            return f"{words_of.as_given(given / size)} {word}"
    return words_of.as_given(given).replace("e-0", "e-")


def _scientific(value: float, digits: int = 2) -> str:
    rounded = Context(prec=digits).create_decimal(repr(float(value)))
    mantissa = f"{rounded.scaleb(-rounded.adjusted()):f}"
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{rounded.adjusted()}"


def _percent_below(probability: float) -> str:
    """Return percent with two digits; "over 99", not 100, for a probability close to 1."""
    if 0.995 <= probability < 1:
        return "over 99"
    return significant(probability * 100)
