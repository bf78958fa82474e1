"""The exact answer beside a sampled one: two ways to every number."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from advisor.formatting import significant
from advisor.present.labels import interval, once_in_years, per_year, time_per_year
from advisor.present.outcome import BETWEEN, LOST
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Estimate, Sampled

_MEASURES = (
    (LOST, "Acknowledged records lost"),
    ("write_unavailability", "Writes refused"),
    ("read_unavailability", "Reads not served"),
)


def sampled_check(exact: Reliability, sampled: Sampled) -> dict[str, Any]:
    """What the report says of a sampled run of the recommended setting.

    Parameters
    ----------
    exact
        What was computed.
    sampled
        The same configuration, card and load, sampled.

    Returns
    -------
    dict
        "caption", and "rows" with "title", "exact", "sampled", "agrees": whether the exact value
        lies in the sample's 95 % interval, and "words": the same, with what is but just outside.
    """
    rows = []
    for measure, title in _MEASURES:
        value, found = float(getattr(exact, measure)), sampled.estimate(measure)
        say, say_end = _words(measure, found)
        if found.seen:
            ends = found if measure != LOST else sampled.estimate(BETWEEN)
            said = f"{say(found.value)} ({interval(ends.low, ends.high, say_end)})"
        else:
            said = f"not seen; at most {say(found.high)}"
        agrees = found.low <= value <= found.high
        rows.append(
            {
                "title": title,
                "exact": say(value),
                "sampled": said,
                "agrees": agrees,
                "words": "yes" if agrees else _how_far(value, found),
            }
        )
    caption = (
        f"The same setting sampled: {sampled.years:,} years of faults on the whole cluster, seed "
        f"{sampled.seed}, replayed through the same rules. One interval in twenty misses by chance."
    )
    return {"caption": caption, "rows": rows}


def _words(measure: str, found: Estimate) -> tuple[Callable[[float], str], Callable[[float], str]]:
    """How to say a value and the ends of its interval: with digits enough to tell them apart.

    A time that the sample knows to a per cent has three digits: with two, both ends and the exact
    value could read alike where they disagree.
    """
    if measure == LOST:
        return per_year, once_in_years
    width = found.high / found.low - 1.0 if found.seen else 1.0
    digits = max(2, 1 + math.ceil(-math.log10(width))) if width > 0 else 2
    say = partial(time_per_year, digits=digits)
    return say, say


def _how_far(value: float, found: Estimate) -> str:
    """Say how a value lies outside a sample's interval: at most twice as wide is chance enough.

    Half an interval is two standard errors, on the logarithm; four of them are not chance.
    """
    if not found.seen or value <= 0:
        return "no"
    end = found.low if value < found.value else found.high
    steps = abs(math.log(value / found.value)) / abs(math.log(end / found.value))
    share = abs(found.value / value - 1.0)
    where = "more" if found.value > value else "less"
    off = f"the sample has {significant(100 * share)} % {where}"
    return f"just outside: {off}" if steps <= 2.0 else f"no: {off}"
