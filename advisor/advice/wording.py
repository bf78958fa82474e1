"""Parts of sentences: counts, lists, and how often something happens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from advisor.reliability.result import Reliability
from advisor.reliability.wording import mechanism, time_per_year, years

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def count(number: int, noun: str) -> str:
    """Return "one broker", "six brokers", "40 brokers"."""
    word = _SMALL[number] if 0 <= number < len(_SMALL) else f"{number:,}"
    return f"{word} {noun}{'' if number == 1 else 's'}"


def listed(items: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def how_often(mean_years: float) -> str:
    """Return "once in N years" or "never" for the mean time between events."""
    return "never" if math.isinf(mean_years) else f"once in {years(mean_years)}"


def loses(r: Reliability) -> str:
    """Return "you lose an acknowledged record about once in N years (95 %: a to b)"."""
    if r.loss_events_per_year == 0:
        return "no modelled mechanism loses an acknowledged record"
    text = f"you lose an acknowledged record about {how_often(r.mean_years_to_loss)}"
    low, high = r.interval("mean_years_to_loss")
    return text if low == high else f"{text} (95 %: {years(low)} to {years(high)})"


def refuses(r: Reliability) -> str:
    """Return "writes are refused M minutes a year (95 %: a to b), most of it from X"."""
    if r.write_unavailability == 0:
        return "no modelled mechanism refuses writes"
    text = f"writes are refused {time_per_year(r.write_unavailability)}"
    low, high = r.interval("write_unavailability")
    if low < high:
        least = time_per_year(low).removesuffix(" a year")
        text += f" (95 %: {least} to {time_per_year(high).removesuffix(' a year')})"
    most = dominant(r.causes["write_unavailability"])
    return f"{text}, {most}" if most else text


def dominant(causes: Mapping[str, float]) -> str:
    """Return what a measure is mostly made of: "most of it from planned restarts"."""
    total = math.fsum(causes.values())
    if total <= 0:
        return ""
    name, amount = max(causes.items(), key=lambda item: item[1])
    if amount > 0.5 * total:
        return f"most of it from {mechanism(name)}"
    return f"the largest part, {amount / total:.0%}, from {mechanism(name)}"
