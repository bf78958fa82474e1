"""An exact result in words: its verdict, its causes, its numerical error."""

from __future__ import annotations

import math
from collections.abc import Callable

from advisor import formatting
from advisor.reliability.failures import mechanisms
from advisor.reliability.results.exact_measures import ExactMeasures
from advisor.reliability.results.fault_tolerance import never_writes, tolerance_in_words
from advisor.reliability.results.sensitivity import Tornado
from advisor.reliability.results.settings_split import (
    BEYOND_SETTINGS,
    BY_SETTINGS,
    PARTS,
    Said,
    beyond_in_words,
    in_words,
)
from advisor.reliability.results.units import MEASURES, UNITS

# Rarer than this, what the card leaves out matters more than what it holds.
_BEYOND_BELIEF_YEARS = 1e6
_PARTS_HEADING = "What settings decide + what no setting changes:"
# Smaller shares of the losses are not mentioned.
_SMALLEST_SHARE = 0.01
# A smaller relative numerical error is not mentioned.
_SMALLEST_ERROR = 1e-6


def verdict(result: ExactMeasures) -> str:
    """What is lost, what is refused, what it is mostly due to; what of it settings decide."""
    settings = (
        f"RF {result.config.replication_factor}, min.insync.replicas "
        f"{result.config.min_insync_replicas}, acks={result.config.acks}"
    )
    never = never_writes(result.config)
    if never:
        return f"{settings}: {never}."
    parts = _parts_in_words(result)
    whole = f"{settings}: {_loss_words(result)}; {_refusal_words(result)}."
    return f"{whole} {parts}" if parts else whole


def _loss_words(result: ExactMeasures) -> str:
    if result.config.acks == 0:
        dropped = result.records_dropped_per_year
        return formatting.unacknowledged(formatting.significant(dropped) if dropped else "")
    if result.loss_events_per_year == 0:
        if result.error_bounds["loss_events_per_year"] > 0.0:
            least = formatting.years(result.at_worst("mean_years_to_loss"))
            return f"no loss was found; there is less than one in {least}"
        return "nothing in this failure model loses an acknowledged record"
    low, high = result.interval("mean_years_to_loss")
    if low >= _BEYOND_BELIEF_YEARS:
        least, most = formatting.years(low), formatting.years(high)
        within = formatting.interval(least, most) or f" (about once in {least})"
        return (
            "these failures lose an acknowledged record less than once in "
            f"a million years{within}, so mistakes and bugs, which no card knows, come first"
        )
    about = formatting.years(result.mean_years_to_loss)
    within = formatting.interval(formatting.years(low), formatting.years(high))
    return (
        f"you lose an acknowledged record about once in {about}{within}"
        f"{', an order of magnitude' * result.has_no_digit('mean_years_to_loss')}"
    )


def _refusal_words(result: ExactMeasures) -> str:
    if result.write_unavailability == 0:
        return "writes are never refused"
    low, high = result.interval("write_unavailability")
    causes = result.causes["write_unavailability"]
    first = max(causes, key=lambda name: causes[name])
    share = causes[first] / result.write_unavailability
    about = formatting.time_per_year(result.write_unavailability)
    within = formatting.interval(formatting.time_per_year(low), formatting.time_per_year(high))
    most = f"{formatting.percent(share)} of it from {mechanisms.words(first)}"
    return f"writes stop {about}{within}, {most}"


def _parts_in_words(result: ExactMeasures) -> str:
    """What settings decide and what they do not; "" where the card holds nothing beyond them."""
    if result.decided is result:
        return ""
    stops, losses = "write_unavailability", "loss_events_per_year"
    refused = _time_said(result, BY_SETTINGS), _time_said(result, BEYOND_SETTINGS)
    loses = Said(), Said()
    if result.config.acks != 0:
        loses = _once_said(result, BY_SETTINGS), _once_said(result, BEYOND_SETTINGS)
    why = (beyond_in_words(result.causes, (name,), result.model) for name in (stops, losses))
    return in_words(refused, loses, *why)


def _time_said(result: ExactMeasures, part: str) -> Said:
    """Time a year without writes of one part."""
    measure = "write_unavailability"
    value = result.by_settings(measure) if part == BY_SETTINGS else result.beyond_settings(measure)
    if not value:
        return Said()
    ends = map(formatting.time_per_year, result.interval(measure, part))
    low, high = (end.removesuffix(" a year") for end in ends)
    return Said(formatting.time_per_year(value), formatting.interval(low, high))


def _once_said(result: ExactMeasures, part: str) -> Said:
    """How often one part loses a record."""
    years = result.years_between(part)
    if math.isinf(years):
        return Said()
    low, high = result.years_between_interval(part)
    often = f"once in {formatting.years(years)}"
    if low >= _BEYOND_BELIEF_YEARS:
        often = "less than once in a million years"
    return Said(often, formatting.interval(formatting.years(low), formatting.years(high)))


def parts_table(result: ExactMeasures) -> list[str]:
    """Return a line for each measure of which some is beyond settings, under a heading."""
    say = formatting.significant
    lines = []
    for name in MEASURES:
        parts = result.by_settings(name), result.beyond_settings(name)
        if parts[1] and name != "mean_years_to_loss":
            ends = (formatting.interval(*map(say, result.interval(name, part))) for part in PARTS)
            by, rest = (f"{say(v)}{within}" for v, within in zip(parts, ends, strict=True))
            lines.append(f"  {name}: {by} + {rest} {UNITS[name]}")
    return [_PARTS_HEADING, *lines] if lines else []


def numerical_error(result: ExactMeasures) -> str:
    """Numerical error in words; the uncertainty of the card is another matter."""
    off = [
        f"{name} by {formatting.significant(result.error_bounds[name])}"
        for name in MEASURES
        if result.error_bounds[name] > _SMALLEST_ERROR * getattr(result, name)
    ]
    rest = "no value is off by more than a millionth of itself"
    if off:
        rest = ", ".join([*off, "and any other value by a millionth of itself at most"])
        rest = rest.replace(" by ", " may be off by ", 1)
    left = "no state is left out"
    if result.truncated_entries_per_year:
        entered = formatting.significant(result.truncated_entries_per_year)
        left = f"rare states, entered {entered} times a year, are left out"
    vague = [name for name in MEASURES if result.has_no_digit(name)]
    magnitudes = f" Orders of magnitude, without a certain digit: {', '.join(vague)}."
    between = formatting.dependence(*result.bounds)
    return f"Numerical error: {left}; {rest}.{magnitudes if vague else ''}{between}"


def explain(result: ExactMeasures, tornado: Callable[[str], Tornado]) -> str:
    """Return verdict, tolerated failures, causes, numerical error and assumptions as text."""
    # Where no write ever succeeds there is nothing to divide by causes.
    explained = (
        () if never_writes(result.config) else ("loss_events_per_year", "write_unavailability")
    )
    lines = [
        verdict(result),
        f"{formatting.capital(tolerance_in_words(result.config))}.",
        *([""] if explained else []),
    ]
    for measure in explained:
        parts = sorted(result.causes[measure].items(), key=lambda item: -item[1])
        whole = sum(part for _, part in parts)
        value = formatting.significant(getattr(result, measure))
        # One failure may hit many partitions: their losses come more often than the first.
        each = measure == "loss_events_per_year" and whole and result.load.partitions > 1
        lines.append(
            f"{measure} = {value}{', each partition by itself' if each else ''}"
            f"{', because of:' * bool(parts)}"
        )
        lines += [
            f"  {100 * part / whole:5.1f} %  {mechanisms.words(name)} ({name})"
            for name, part in parts
            if part > 0.0005 * whole
        ]
        if measure == "loss_events_per_year":
            lines += _flush_window_words(result)
        if whole and result.swings_are_quick:
            lines.append(tornado(measure).verdict)
    if result.write_stalled:
        waits = formatting.time_per_year(result.write_stalled)
        lines.append(f"acks=all waits {waits} more for followers that have to leave the ISR.")
    lines += parts_table(result)
    lines += ["", f"Card: {result.model.name}. Method: {result.method}."]
    lines.append(numerical_error(result))
    lines.append(f"Cost: {result.cost}")
    lines += [f"Assumed: {text}." for text in result.assumptions]
    return "\n".join(lines)


def _flush_window_words(result: ExactMeasures) -> list[str]:
    """Share of the losses by a power failure within the flush time after another failure."""
    early, whole = result.flush_window_losses_per_year, result.loss_events_per_year
    if not whole or early < _SMALLEST_SHARE * whole or not early:
        return []
    seconds = formatting.significant(result.model["flush.seconds"])
    return [
        f"{formatting.significant(100.0 * early / whole)} % of them are power lost within "
        f"{seconds} s after a failure stopped the writing: what was written last was not on "
        "disk yet. Each loses some seconds of records."
    ]
