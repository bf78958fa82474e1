"""Labels of numbers: "once in 480 years", "99.98 %", "1.8 h/year".

Two significant digits throughout: the inputs are not known better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal

from advisor.advice.phrases import years_between
from advisor.formatting import (
    ONCE,
    RARER,
    RAREST_YEARS,
    as_given,
    brief_time_per_year,
    once_in,
    one_in,
    significant,
    span,
)

_LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def per_year(probability: float) -> str:
    """Return a probability per year: "3.2 % / year"; "under 0.05 % / year" below that."""
    if 0 < probability < 1 / RAREST_YEARS:
        return f"under {significant(100 / RAREST_YEARS)} % / year"
    return on_axis(probability)


def on_axis(probability: float) -> str:
    """Return a probability per year: "1 in 2.4 million a year"; "none modelled" for 0."""
    if probability == 0:
        return "none modelled"
    if probability >= 0.9995e-3:
        return f"{_percent_below(probability)} % / year"
    return f"{one_in(probability)} a year"


def once_in_from_probability(probability: float) -> str:
    """Return the mean time between Poisson events of which a year has one with a probability."""
    if probability == 0:
        return "never, as modelled"
    if probability >= 1:
        return "many times a year"
    return once_in_years(years_between(probability))


def once_in_years(mean_years: float) -> str:
    """Return the mean time between events: "once in 480 years", "once in 5.6 days"."""
    return "never, as modelled" if math.isinf(mean_years) else once_in(mean_years)


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


def time_per_year_label(unavailability: float, digits: int = 2) -> str:
    """Return an unavailability as time per year: "8.8 h/year"; "none modelled" for 0."""
    return "none modelled" if unavailability == 0 else brief_time_per_year(unavailability, digits)


def interval_label(low: float, high: float, say: Callable[[float], str]) -> str:
    """Return "95 %: a to b", each end worded by `say`; a common start or end is written once."""
    first, second = say(low), say(high)
    if RARER in (first, second):
        return "" if first == second else f"95 %: {second if first == RARER else first} or rarer"
    if first.startswith(ONCE):
        return f"95 %: {first} to {second.removeprefix(ONCE)}"
    return f"95 %: {span(first, second)}"


def bracketed_interval(low: float, high: float, say: Callable[[float], str]) -> str:
    """Return " (95 %: a to b)" to follow a value; nothing where the ends say no more than it."""
    ends = interval_label(low, high, say) if low < high else ""
    return f" ({ends})" if ends else ""


def between(lowest: str, highest: str) -> str:
    """Return "once in 3 to 12 years", "5 to 39 s/year"; one of them if both are the same."""
    if lowest == highest:
        return lowest
    if RARER in (lowest, highest):
        return f"{highest if lowest == RARER else lowest} or rarer"
    if lowest.startswith(ONCE) and highest.startswith(ONCE):
        return f"{ONCE}{span(lowest.removeprefix(ONCE), highest.removeprefix(ONCE))}"
    return span(lowest, highest)


def short(value: float, digits: int = 2) -> str:
    """Return a number with few digits: "8.8e-6", "0.0034", "1,200", "5.7 million"."""
    for size, word in _LARGE:
        # Rounded first: 999,999.5 is a million.
        if float(f"{value:.{digits - 1}e}") >= size:
            return f"{significant(value / size, digits)} {word}"
    text = significant(value, digits)
    return _scientific(value, digits) if "e" in text else text


def as_given_in_words(value: float) -> str:
    """Return a number of a card with the digits that it was given: "0.0136", "50 million"."""
    number = float(f"{value:g}")
    for size, word in _LARGE:
        if number >= size:
            return f"{as_given(number / size)} {word}"
    return as_given(number)


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
