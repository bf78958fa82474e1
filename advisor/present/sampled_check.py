"""The exact answer beside a sampled one: two ways to every number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.present.wording import interval, once_in, per_year, time_per_year
from advisor.reliability.result import Reliability
from advisor.reliability.sampled import Sampled

_MEASURES: tuple[tuple[str, str, Callable[[float], str], Callable[[float], str]], ...] = (
    ("loss_probability_per_year", "Acknowledged records lost", per_year, once_in),
    ("write_unavailability", "Writes refused", time_per_year, time_per_year),
    ("read_unavailability", "Reads not served", time_per_year, time_per_year),
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
        "caption", and "rows" with "title", "exact", "sampled" and "agrees": whether the exact
        value lies in the sample's 95 % interval.
    """
    rows = []
    for measure, title, say, say_end in _MEASURES:
        value, found = float(getattr(exact, measure)), sampled.estimate(measure)
        if found.seen:
            said = f"{say(found.value)} ({interval(found.low, found.high, say_end)})"
        else:
            said = f"not seen; at most {say(found.high)}"
        agrees = found.low <= value <= found.high
        rows.append({"title": title, "exact": say(value), "sampled": said, "agrees": agrees})
    caption = (
        f"The same setting sampled: {sampled.years:,} years of faults on the whole cluster, seed "
        f"{sampled.seed}, replayed through the same rules. One interval in twenty misses by chance."
    )
    return {"caption": caption, "rows": rows}
