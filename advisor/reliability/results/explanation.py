"""A result in words: one sentence, the numbers below it, causes and numerical errors.

All of it describes what was evaluated or sampled, as a whole. What to set is the decision's to say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from advisor import formatting
from advisor.formatting import (
    brief_time_per_year,
    is_rare,
    once_at_most,
    once_in,
    significant,
    time_per_year,
    unacknowledged,
)
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.failures import mechanisms
from advisor.reliability.results.fault_tolerance import (
    never_writes,
    tolerance,
    tolerance_in_words,
)
from advisor.reliability.results.units import Estimate

if TYPE_CHECKING:
    from advisor.reliability.results.exact_measures import ExactMeasures

LOSSES, STOPS = "loss_probability_per_year", "write_unavailability"
MOST_WORDS = 25
"""Largest number of words in a summary."""
_EVENTS, _BETWEEN = "loss_events_per_year", "mean_years_to_loss"

# Smaller shares of the losses are not mentioned.
_SMALLEST_SHARE = 0.01
# A smaller relative numerical error is not mentioned.
_SMALLEST_ERROR = 1e-6


class Amount(NamedTuple):
    """A number of a result; `seen` is False where only a bound is known."""

    value: float
    seen: bool = True


class Outlook(NamedTuple):
    """What a summary says of a result, as numbers.

    years: mean years until the first loss; infinite for never. A bound is a lower one.
    stopped: fraction of time in which writes are refused. A bound is an upper one.
    dropped: records a year lost with acks=0.
    main: main cause of losses and of refused writes, in words; "" for none.
    simulated: years simulated; 0 for an exact result.
    """

    config: Config
    years: Amount
    stopped: Amount
    dropped: Amount
    main: Mapping[str, str]
    simulated: int = 0


def amount_of(estimate: Estimate) -> Amount:
    """Return a sampled measure for a summary; a bound where nothing was seen."""
    seen = estimate.seen or estimate.high == 0.0
    return Amount(estimate.value if estimate.seen else estimate.high, seen)


def main_cause(causes: Mapping[str, float]) -> str:
    """Return the largest cause of a measure in words; "" for none."""
    if not any(share > 0.0 for share in causes.values()):
        return ""
    return mechanisms.words(max(causes, key=lambda name: causes[name]))


def outlook_of(result: ExactMeasures) -> Outlook:
    """Return what the summary of an exact result says, as numbers."""
    years = Amount(result.mean_years_to_loss)
    if result.loss_events_per_year == 0 and result.error_bounds[_EVENTS] > 0.0:
        years = Amount(result.at_worst(_BETWEEN), seen=False)
    return Outlook(
        config=result.config,
        years=years,
        stopped=Amount(result.write_unavailability),
        dropped=Amount(result.records_dropped_per_year),
        main={LOSSES: main_cause(result.causes[_EVENTS]), STOPS: main_cause(result.causes[STOPS])},
    )


def summary(outlook: Outlook) -> str:
    """Return setting, data loss, time without writes and the main cause, in at most 25 words."""
    config = outlook.config
    head = f"{name_of(config)}:"
    if tolerance(config).while_writable < 0:
        return f"{head} Kafka {config.kafka_version} refuses every write; main cause: min ISR > RF."
    loss, stops = _loss(outlook), _stops(outlook.stopped)
    rare = is_rare(outlook.years.value) or not outlook.main[LOSSES]
    explained = STOPS if rare or config.acks == 0 else LOSSES
    cause = outlook.main[explained]
    if not cause:
        return f"{head} {loss}, {stops}."
    text = ""
    for main in (f" (main cause: {cause})", f" ({cause})", ""):
        said = (f"{loss}{main}", stops) if explained == LOSSES else (loss, f"{stops}{main}")
        text = f"{head} {', '.join(said)}."
        if len(text.split()) <= MOST_WORDS:
            break
    return text


def name_of(config: Config) -> str:
    """Return "RF 3 with min ISR 2", or "RF 3 with acks=1", where min ISR has no effect."""
    if config.acks == "all":
        return f"RF {config.replication_factor} with min ISR {config.min_insync_replicas}"
    return f"RF {config.replication_factor} with acks={config.acks}"


def _loss(outlook: Outlook) -> str:
    years = outlook.years
    if outlook.config.acks == 0:
        dropped = significant(outlook.dropped.value) if outlook.dropped.value else ""
        bound = "" if outlook.dropped.seen or not dropped else "under "
        return unacknowledged(f"{bound}{dropped}")
    if math.isinf(years.value):
        return "no modelled data loss"
    if not years.seen and outlook.simulated and is_rare(years.value):
        return f"no data loss in {outlook.simulated:,} simulated years"
    return f"data loss {once_in(years.value) if years.seen else once_at_most(years.value)}"


def _stops(stopped: Amount) -> str:
    if not stopped.value:
        return "writes never refused"
    most = "" if stopped.seen else "under "
    return f"writes refused {most}{brief_time_per_year(stopped.value)}"


def measured_lines(result: ExactMeasures) -> list[str]:
    """Return the numbers of the summary in full, and where they come from; without intervals."""
    never = never_writes(result.config)
    if never:
        return [f"{formatting.capital(never)}."]
    uncertain = result.model.uncertain
    ranges = "solved exactly at the middle of each range" if uncertain else "solved exactly"
    return [
        _loss_line(result),
        _stop_line(result),
        f"Source: failure-model card {result.model.name}, {ranges}.",
    ]


def _loss_line(result: ExactMeasures) -> str:
    if result.config.acks == 0:
        dropped = significant(result.records_dropped_per_year)
        return f"Records lost, never acknowledged: {dropped} a year."
    outlook = outlook_of(result)
    years = outlook.years
    often = "none modelled"
    if math.isfinite(years.value):
        often = once_in(years.value) if years.seen else once_at_most(years.value)
    digit = ", an order of magnitude" * result.has_no_digit(_BETWEEN)
    cause = f"; main cause of loss: {outlook.main[LOSSES]}" if outlook.main[LOSSES] else ""
    return f"Data loss: {often}{digit}{cause}."


def _stop_line(result: ExactMeasures) -> str:
    if not result.write_unavailability:
        return "Refused writes: none modelled."
    said = time_per_year(result.write_unavailability)
    return f"Refused writes: {said}; main cause: {main_cause(result.causes[STOPS])}."


def numerical_error(result: ExactMeasures) -> str:
    """Numerical error in words; the uncertainty of the card is another matter."""
    rest = "no value is off by more than a millionth of itself"
    if off := _off_by(result):
        rest = f"{off}, and any other value by a millionth of itself at most"
    left = "no state is left out"
    if result.truncated_entries_per_year:
        entered = formatting.significant(result.truncated_entries_per_year)
        left = f"rare states, entered {entered} times a year, are left out"
    vague = [name for name in measure_table.names() if result.has_no_digit(name)]
    magnitudes = f" Good to an order of magnitude only: {', '.join(vague)}."
    between = formatting.dependence(*result.bounds)
    return f"Numerical error: {left}; {rest}.{magnitudes if vague else ''}{between}"


def _off_by(result: ExactMeasures) -> str:
    """Errors that matter, such as "loss_probability_per_year may be off by 1e-8"; "" for none."""
    values = {entry.name: entry.of(result) for entry in measure_table.entries()}
    off = [
        f"{name} by {formatting.significant(error)}"
        for name, value in values.items()
        if (error := result.error_bounds.get(name, 0.0)) > _SMALLEST_ERROR * value
    ]
    return ", ".join(off).replace(" by ", " may be off by ", 1)


def explain(result: ExactMeasures) -> str:
    """Return summary, measures, tolerated failures, causes, errors and assumptions as text."""
    # Where no write ever succeeds there is nothing to divide by causes.
    explained = () if never_writes(result.config) else (_EVENTS, STOPS)
    lines = [
        summary(outlook_of(result)),
        *measured_lines(result),
        f"{formatting.capital(tolerance_in_words(result.config))}.",
        *([""] if explained else []),
    ]
    for measure in explained:
        lines += _cause_lines(result, measure)
    if result.write_stalled:
        waits = time_per_year(result.write_stalled)
        lines.append(f"acks=all also stalls {waits}, until dead followers leave the ISR.")
    lines += _other_measures(result)
    lines += ["", f"Card: {result.model.name}. Method: {result.method}."]
    lines.append(numerical_error(result))
    lines.append(f"Cost: {result.cost}")
    lines += [f"Assumed: {text}." for text in result.assumptions]
    return "\n".join(lines)


def _other_measures(result: ExactMeasures) -> list[str]:
    """A line for each measure that the lines above do not give."""
    said = (LOSSES, _EVENTS, _BETWEEN, STOPS, "write_stalled")
    others = [entry for entry in measure_table.entries() if entry.name not in said]
    values = [(entry, entry.of(result)) for entry in others]
    return [f"{entry.name}: {significant(v)} {entry.unit}." for entry, v in values if v]


def _cause_lines(result: ExactMeasures, measure: str) -> list[str]:
    """Return the causes of a measure as shares."""
    causes = sorted(result.causes[measure].items(), key=lambda item: -item[1])
    whole = sum(amount for _, amount in causes)
    name = "data loss" if measure != STOPS else "refused writes"
    counted = "" if measure == STOPS else _counted_in_partitions(result)
    heading = f"Causes of {name}{counted}:"
    lines = [heading] if whole else [f"Nothing in this card causes {name}."]
    lines += [
        f"  {100 * amount / whole:5.1f} %  {mechanisms.words(cause)} ({cause})"
        for cause, amount in causes
        if amount > 0.0005 * whole
    ]
    if measure != STOPS:
        lines += _flush_window_words(result)
    return lines


def _counted_in_partitions(result: ExactMeasures) -> str:
    """That one loss, as the summary counts them, may be of many partitions."""
    if result.load.partitions == 1:
        return ""
    of_partitions = result.loss_events_per_year
    at_once = of_partitions * result.mean_years_to_loss
    together = f", about {significant(at_once)} at once" if 1.5 <= at_once < math.inf else ""
    return f", counted in partitions ({significant(of_partitions)} lose records a year{together})"


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
