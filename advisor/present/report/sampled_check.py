"""The sampled result beside the exact one, for the report."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from advisor.formatting import significant
from advisor.present.labels import interval_label, once_in_years, per_year, time_per_year_label
from advisor.present.outcome import BETWEEN, LOST, compared_measures
from advisor.reliability import measure_table
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Estimate, Sampled


def sampled_check(exact: Reliability, sampled: Sampled) -> dict[str, Any]:
    """Return the table that compares a sampled run of a setting with the exact result.

    sampled: for the same configuration, card and load.
    Returns "caption", and "rows" with "title", "exact", "sampled", "agrees" (whether the exact
        value is in the 95 % interval of the sample) and "words" (the same in words, with the
        deviation).
    """
    rows = []
    for measure in compared_measures():
        entry = measure_table.measure(measure)
        value, estimate = float(entry.of(exact)), sampled.estimate(measure)
        say, say_end = _words(measure, estimate)
        if estimate.seen:
            ends = estimate if measure != LOST else sampled.estimate(BETWEEN)
            text = f"{say(estimate.value)} ({interval_label(ends.low, ends.high, say_end)})"
        else:
            text = f"not seen; at most {say(estimate.high)}"
        agrees = estimate.low <= value <= estimate.high
        rows.append(
            {
                "title": entry.title,
                "exact": say(value),
                "sampled": text,
                "agrees": agrees,
                "words": "yes" if agrees else _how_far(value, estimate),
            }
        )
    caption = (
        f"The same setting sampled: {sampled.years:,} years of faults on the whole cluster, seed "
        f"{sampled.seed}, replayed through the same rules. One interval in twenty misses by chance."
    )
    return {"caption": caption, "rows": rows}


def _words(
    measure: str, estimate: Estimate
) -> tuple[Callable[[float], str], Callable[[float], str]]:
    """Return the wording of a value and of its interval ends, with digits enough to differ.

    A time sampled to a per cent has three digits: with two, the ends and the exact value could
    read the same although they differ.
    """
    if measure == LOST:
        return per_year, once_in_years
    width = estimate.high / estimate.low - 1.0 if estimate.seen else 1.0
    digits = max(2, 1 + math.ceil(-math.log10(width))) if width > 0 else 2
    say = partial(time_per_year_label, digits=digits)
    return say, say


def _how_far(value: float, estimate: Estimate) -> str:
    """Return how far a value is outside the interval of a sample.

    Half an interval is about two standard errors of the logarithm. Up to four of them count as
    "just outside", which chance can explain; more as a disagreement.
    """
    if not estimate.seen or value <= 0:
        return "no"
    end = estimate.low if value < estimate.value else estimate.high
    half_widths = abs(math.log(value / estimate.value)) / abs(math.log(end / estimate.value))
    share = abs(estimate.value / value - 1.0)
    where = "more" if estimate.value > value else "less"
    off = f"the sample has {significant(100 * share)} % {where}"
    return f"just outside: {off}" if half_widths <= 2.0 else f"no: {off}"
