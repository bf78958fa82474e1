"""Numbers in words: two digits, the small side, and never more certainty than there is."""

from __future__ import annotations

import math

_YEAR_MINUTES = 8760.0 * 60.0


def digits(value: float, significant: int = 2) -> str:
    """A number with few digits: ``1,200``, ``3.4``, ``0.00012``, ``4.2e-09``."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    exponent = math.floor(math.log10(abs(value)))
    rounded = round(value, significant - 1 - exponent)
    if -4 <= exponent < 7:
        places = max(significant - 1 - exponent, 0)
        return f"{rounded:,.{places}f}"
    return f"{value:.{significant - 1}e}"


def years(value: float) -> str:
    """A span of years: ``4 months``, ``12 years``, ``3.4 million years``."""
    if math.isinf(value):
        return "never"
    for least, unit, size in (
        (1e15, "", 0.0),
        (1e12, "trillion years", 1e12),
        (1e9, "billion years", 1e9),
        (1e6, "million years", 1e6),
        (1.0, "years", 1.0),
        (1 / 12, "months", 1 / 12),
        (1 / 365, "days", 1 / 365),
    ):
        if value >= least and size:
            return f"{digits(value / size)} {unit}"
        if value >= least:
            return f"{value:.0e} years"
    return f"{digits(value * 8760)} hours"


def time_per_year(fraction: float) -> str:
    """A fraction of time as its yearly total: ``8.8 hours a year``, ``32 seconds a year``."""
    minutes = fraction * _YEAR_MINUTES
    if fraction > 0.995:
        return "all the time"
    if minutes >= 48 * 60:
        return f"{digits(minutes / 1440)} days a year"
    if minutes >= 120:
        return f"{digits(minutes / 60)} hours a year"
    if minutes >= 1:
        return f"{digits(minutes)} minutes a year"
    if minutes * 60 >= 1:
        return f"{digits(minutes * 60)} seconds a year"
    return "less than a second a year"


MECHANISM_WORDS = {
    "broker.crash": "broker processes crashing",
    "broker.power": "hosts losing power or panicking",
    "broker.destroyed": "disks or instances destroyed",
    "broker.lag": "followers falling behind",
    "broker.restart": "planned restarts",
    "rack.network": "racks unreachable",
    "rack.power": "racks losing power",
    "rack.destroyed": "racks destroyed",
    "cluster.power": "the whole site losing power",
    "configuration": "the configuration itself",
}


def mechanism(name: str) -> str:
    """What a card's mechanism is called in a sentence."""
    return MECHANISM_WORDS.get(name, name)
