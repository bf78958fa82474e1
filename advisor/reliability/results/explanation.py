"""A result in words: the verdict, the numbers below it with their intervals, causes, errors.

The verdict is one sentence of at most 25 words, and one on what is beyond settings. Every screen
takes both from here, for exact and for sampled results, with and without goals. Its numbers are
what settings decide; their intervals stand directly below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from advisor import formatting
from advisor.formatting import (
    OPERATOR_LOSS_YEARS,
    brief_time_per_year,
    factor,
    is_rare,
    once_at_most,
    once_in,
    once_interval,
    significant,
    time_per_year,
    unacknowledged,
)
from advisor.protocol.rules.config import Config
from advisor.reliability.failures import mechanisms
from advisor.reliability.results.fault_tolerance import (
    never_writes,
    tolerance,
    tolerance_in_words,
)
from advisor.reliability.results.sensitivity import median_well_above
from advisor.reliability.results.settings_split import (
    BEYOND_SETTINGS,
    BY_SETTINGS,
    LOSSES,
    NEGLIGIBLY_RARER,
    PARTS,
    STOPS,
    TIMES_RARER,
    Amount,
    Judged,
    Outlook,
    beyond_causes,
    main_cause,
)
from advisor.reliability.results.units import MEASURES, UNITS

if TYPE_CHECKING:
    from advisor.reliability.results.exact_measures import ExactMeasures
    from advisor.reliability.results.sensitivity import Tornado

MOST_WORDS = 25
"""Largest number of words in a verdict."""
_PARTS_HEADING = "What settings decide + causes beyond settings:"
_SAID_ABOVE = ("loss_probability_per_year", "loss_events_per_year", "mean_years_to_loss", STOPS)
_MOST_CAUSES = 2
_LIKE_NONE = "so this setting cannot be distinguished from one that loses nothing"
_NOT_RULED_OUT = "but the card's ranges do not rule out losses that matter"
_LEFT_OUT = "are not in this card: software bugs, operator errors, the loss of a region"

# Smaller shares of the losses are not mentioned.
_SMALLEST_SHARE = 0.01
# A smaller relative numerical error is not mentioned.
_SMALLEST_ERROR = 1e-6


def verdict(outlook: Outlook, judged: Judged | None = None) -> str:
    """Return yes, no or doubtful, data loss, downtime and the main cause, in at most 25 words.

    Parameters
    ----------
    outlook : Outlook
    judged : Judged, optional
        Without goals the verdict only describes the setting.
    """
    head = _head(outlook.config, judged)
    config = outlook.config
    if tolerance(config).while_writable < 0:
        return f"{head} Kafka {config.kafka_version} refuses every write; main cause: min ISR > RF."
    missed = judged.times_over if judged is not None else {}
    loss, stops = _loss(outlook, missed), _stops(outlook.stopped[0])
    cause = outlook.main[_explained(outlook, missed)]
    for main in (f" (main cause: {cause})", f" ({cause})", ""):
        first = _explained(outlook, missed) == LOSSES
        parts = (f"{loss}{main}", stops) if first else (loss, f"{stops}{main}")
        text = f"{head} {', '.join(parts)}."
        if not cause:
            return f"{head} {loss}, {stops}."
        if len(text.split()) <= MOST_WORDS:
            break
    return text


def name_of(config: Config) -> str:
    """Return "RF 3 with min ISR 2", or "RF 3 with acks=1", where min ISR has no effect."""
    if config.acks == "all":
        return f"RF {config.replication_factor} with min ISR {config.min_insync_replicas}"
    return f"RF {config.replication_factor} with acks={config.acks}"


def _head(config: Config, judged: Judged | None) -> str:
    if judged is None:
        return f"{name_of(config)}:"
    if judged.doubtful:
        kept, draws = judged.draws
        return f"Doubtful: {name_of(config)} meets goals in {kept}/{draws} draws;"
    narrowly = "narrowly " if judged.narrow else ""
    answer, meets = ("Yes", "meets") if judged.met else ("No", "misses")
    return f"{answer}, {name_of(config)} {narrowly}{meets} your goals:"


def _explained(outlook: Outlook, missed: Mapping[str, float]) -> str:
    """The measure whose main cause is given: one that is missed, else losses that matter."""
    if LOSSES in missed:
        return LOSSES
    if STOPS in missed or outlook.is_negligible or not outlook.main[LOSSES]:
        return STOPS
    if outlook.config.acks == 0:
        return STOPS
    return LOSSES


def _loss(outlook: Outlook, missed: Mapping[str, float]) -> str:
    by, rest = outlook.years
    if outlook.config.acks == 0:
        dropped = significant(outlook.dropped.value) if outlook.dropped.value else ""
        bound = "" if outlook.dropped.seen or not dropped else "under "
        return unacknowledged(f"{bound}{dropped}")
    if not outlook.is_negligible:
        often = once_in(by.value)
        return f"data loss {often if by.seen else often.replace('once', 'less than once')}"
    if not by.seen and outlook.simulated and math.isinf(rest.value):
        return f"no data loss in {outlook.simulated:,} simulated years"
    times = missed.get(LOSSES, 0.0)
    if times:
        return f"data loss {times_words(times)} your goal"
    if math.isinf(by.value) and math.isinf(rest.value):
        return "no modelled data loss"
    return "negligible data loss"


def times_words(factor: float) -> str:
    """Return "20 times", "above" where no number helps."""
    return f"{significant(factor)} times" if 1.05 < factor < math.inf else "above"


def _stops(stopped: Amount) -> str:
    if not stopped.value:
        return "writes never refused"
    most = "" if stopped.seen else "under "
    return f"writes refused {most}{brief_time_per_year(stopped.value)}"


def no_setting_changes(outlook: Outlook) -> str:
    """Return one sentence on what is beyond settings, and how much rarer the settings' losses are.

    The latter where losses by settings are so rare that they cannot be distinguished from it.
    """
    parts = []
    _, rest = outlook.stopped
    if rest.value:
        amount = f"{'' if rest.seen else 'up to '}{time_per_year(rest.value)}"
        parts.append(f"{amount} of refused writes{_named(outlook.beyond[STOPS])}")
    acknowledged = outlook.config.acks != 0 and tolerance(outlook.config).while_writable >= 0
    lost, losses = outlook.years[1], outlook.config.acks != 0 and acknowledged
    negligible = losses and outlook.is_negligible
    if losses and math.isfinite(lost.value) and not (negligible and is_rare(lost.value)):
        parts.append(f"a lost record {once_in(lost.value)}{_named(outlook.beyond[LOSSES])}")
    elif negligible:
        years = f"{OPERATOR_LOSS_YEARS:,.0f}"
        parts.append(f"data loss by operator errors, about once in {years} years")
    if not parts:
        return f"Causes beyond settings {_LEFT_OUT}."
    text = f"Causes beyond settings add {' and '.join(parts)}"
    if negligible and math.isfinite(outlook.times_rarer):
        by_causes = outlook.beyond[LOSSES]
        whose = "the losses that settings decide" if by_causes else "the failures in this card"
        text += f", {_times_as_often(outlook)} as often as {whose}"
    return f"{text}."


def _times_as_often(outlook: Outlook) -> str:
    """How many times rarer losses by settings are; with its interval, if it was sampled."""
    within = outlook.times_rarer_within
    if not outlook.years[0].seen:
        # The settings lost nothing yet: their years are the fewest that there may be.
        return f"{factor(within[0] if within else outlook.times_rarer, at_least=True)} times"
    ends = "" if within is None else formatting.interval(*map(factor, within))
    return f"{factor(outlook.times_rarer)} times{ends}"


def _named(causes: Sequence[str]) -> str:
    """Return the largest causes in brackets."""
    if not causes:
        return ""
    others = ["others"] if len(causes) > _MOST_CAUSES else []
    return f" ({', '.join([*causes[:_MOST_CAUSES], *others])})"


def outlook_of(result: ExactMeasures) -> Outlook:
    """Return what the verdict says of an exact result, as numbers."""
    decided = result.decided
    by = Amount(result.years_between(BY_SETTINGS))
    if decided.loss_events_per_year == 0 and decided.error_bounds["loss_events_per_year"] > 0.0:
        by = Amount(decided.at_worst("mean_years_to_loss"), seen=False)
    causes, events = result.causes, "loss_events_per_year"
    return Outlook(
        config=result.config,
        years=(by, Amount(result.years_between(BEYOND_SETTINGS))),
        stopped=(Amount(result.by_settings(STOPS)), Amount(result.beyond_settings(STOPS))),
        dropped=Amount(result.records_dropped_per_year),
        main={LOSSES: main_cause(decided.causes[events]), STOPS: main_cause(decided.causes[STOPS])},
        beyond={
            LOSSES: beyond_causes(causes, events, result.model),
            STOPS: beyond_causes(causes, STOPS, result.model),
        },
    )


def measured_lines(result: ExactMeasures) -> list[str]:
    """Return the numbers of the verdict with their 95 % intervals, and where they come from."""
    never = never_writes(result.config)
    if never:
        return [f"{formatting.capital(never)}."]
    outlook = outlook_of(result)
    return [
        *_loss_lines(result, outlook),
        *_stop_lines(result, outlook),
        f"Source: failure-model card {result.model.name}, {_solved(result)}.",
    ]


def _solved(result: ExactMeasures) -> str:
    if not result.model.uncertain:
        return "solved exactly; no ranges"
    most = median_well_above(result, STOPS)
    half = f"; half of the draws exceed {time_per_year(most)} of refused writes in all"
    return f"solved exactly at the middle of each range; 95 %: over the ranges{half * (most > 0.0)}"


def _loss_lines(result: ExactMeasures, outlook: Outlook) -> list[str]:
    if result.config.acks == 0:
        within = formatting.interval(*map(significant, result.interval("records_dropped_per_year")))
        dropped = significant(result.records_dropped_per_year)
        return [f"Records lost, never acknowledged: {dropped} a year{within}."]
    whole = result.decided is result
    cause = f"; main cause of loss: {outlook.main[LOSSES]}" if outlook.main[LOSSES] else ""
    by = f"{_often(outlook.years[0])}{once_interval(*result.years_between_interval(BY_SETTINGS))}"
    if outlook.is_negligible and math.isfinite(outlook.times_rarer):
        years, named = outlook.reference
        ends = result.years_between_interval(BY_SETTINGS)
        low, high = ends[0] / years, ends[1] / years
        if named in outlook.beyond[LOSSES]:
            # Draw by draw, since much of what makes both frequent is the same.
            low, high = result.intervals[TIMES_RARER]
        within = formatting.interval(factor(low), factor(high))
        times = f"{factor(outlook.times_rarer, not outlook.years[0].seen)} times rarer{within}"
        by = f"{times} than by {named}, {_LIKE_NONE if low > NEGLIGIBLY_RARER else _NOT_RULED_OUT}"
        cause = f"; main cause of loss in the card: {outlook.main[LOSSES]}"
    digit = ", an order of magnitude" * result.has_no_digit("mean_years_to_loss")
    lines = [f"Data loss{'' if whole else ', settings decide'}: {by}{digit}{cause}."]
    rest = outlook.years[1]
    if math.isfinite(rest.value):
        within = once_interval(*result.years_between_interval(BEYOND_SETTINGS))
        lines.append(f"Data loss, causes beyond settings: {_often(rest)}{within}.")
    return lines


def _often(amount: Amount) -> str:
    """Frequency of data loss."""
    if math.isinf(amount.value):
        return "none modelled"
    return once_in(amount.value) if amount.seen else once_at_most(amount.value)


def _stop_lines(result: ExactMeasures, outlook: Outlook) -> list[str]:
    if not result.write_unavailability:
        return ["Refused writes: none modelled."]
    parts: list[tuple[str, str | None, float]] = [("", None, result.write_unavailability)]
    if result.decided is not result:
        by, rest = (amount.value for amount in outlook.stopped)
        parts = [
            ("settings decide", BY_SETTINGS, by),
            ("causes beyond settings", BEYOND_SETTINGS, rest),
        ]
    lines = []
    for name, part, value in parts:
        ends = formatting.interval(*map(time_per_year, result.interval(STOPS, part)))
        cause = f"; main cause: {outlook.main[STOPS]}" if part != BEYOND_SETTINGS else ""
        said = f"{time_per_year(value)}{ends}{cause}" if value else "none modelled"
        lines.append(f"Refused writes{f', {name}' * bool(name)}: {said}.")
    return lines


def parts_table(result: ExactMeasures) -> list[str]:
    """Return a line for each measure of which some is beyond settings, under a heading."""
    say = significant
    lines = []
    for name in MEASURES:
        parts = result.by_settings(name), result.beyond_settings(name)
        if parts[1] and name not in _SAID_ABOVE:
            ends = (formatting.interval(*map(say, result.interval(name, part))) for part in PARTS)
            by, rest = (f"{say(v)}{within}" for v, within in zip(parts, ends, strict=True))
            lines.append(f"  {name}: {by} + {rest} {UNITS[name]}")
    return [_PARTS_HEADING, *lines] if lines else []


def numerical_error(result: ExactMeasures) -> str:
    """Numerical error in words; the uncertainty of the card is another matter."""
    rest = "no value is off by more than a millionth of itself"
    if off := _off_by(result, MEASURES):
        rest = f"{off}, and any other value by a millionth of itself at most"
    if result.decided is not result and (off := _off_by(result.decided, (LOSSES, STOPS))):
        rest += f"; of what settings decide alone, {off}"
    left = "no state is left out"
    if result.truncated_entries_per_year:
        entered = formatting.significant(result.truncated_entries_per_year)
        left = f"rare states, entered {entered} times a year, are left out"
    vague = [name for name in MEASURES if result.has_no_digit(name)]
    magnitudes = f" Good to an order of magnitude only: {', '.join(vague)}."
    between = formatting.dependence(*result.bounds)
    return f"Numerical error: {left}; {rest}.{magnitudes if vague else ''}{between}"


def _off_by(result: ExactMeasures, measures: Sequence[str]) -> str:
    """Errors that matter, such as "loss_probability_per_year may be off by 1e-8"; "" for none."""
    off = [
        f"{name} by {formatting.significant(result.error_bounds[name])}"
        for name in measures
        if result.error_bounds[name] > _SMALLEST_ERROR * getattr(result, name)
    ]
    return ", ".join(off).replace(" by ", " may be off by ", 1)


def explain(result: ExactMeasures, tornado: Callable[[str], Tornado]) -> str:
    """Return verdict, intervals, tolerated failures, causes, errors and assumptions as text."""
    # Where no write ever succeeds there is nothing to divide by causes.
    explained = () if never_writes(result.config) else ("loss_events_per_year", STOPS)
    lines = [
        verdict(outlook_of(result)),
        no_setting_changes(outlook_of(result)),
        *measured_lines(result),
        f"{formatting.capital(tolerance_in_words(result.config))}.",
        *([""] if explained else []),
    ]
    for measure in explained:
        lines += _cause_lines(result, measure, tornado)
    if result.write_stalled:
        waits = time_per_year(result.write_stalled)
        within = formatting.interval(*map(time_per_year, result.interval("write_stalled")))
        lines.append(f"acks=all also stalls {waits}{within}, until dead followers leave the ISR.")
    lines += parts_table(result)
    lines += ["", f"Card: {result.model.name}. Method: {result.method}."]
    lines.append(numerical_error(result))
    lines.append(f"Cost: {result.cost}")
    lines += [f"Assumed: {text}." for text in result.assumptions]
    return "\n".join(lines)


def _cause_lines(
    result: ExactMeasures, measure: str, tornado: Callable[[str], Tornado]
) -> list[str]:
    """Return the causes of a measure as shares, and the assumption that moves it most."""
    parts = sorted(result.causes[measure].items(), key=lambda item: -item[1])
    whole = sum(part for _, part in parts)
    name = "data loss" if measure != STOPS else "refused writes"
    # One failure may hit many partitions: their losses come more often than the first.
    each = measure != STOPS and result.load.partitions > 1
    counted = f", each partition counted ({significant(whole)} events a year)" * each
    heading = f"Causes of {name}{counted}:"
    lines = [heading] if whole else [f"Nothing in this card causes {name}."]
    lines += [
        f"  {100 * part / whole:5.1f} %  {mechanisms.words(cause)} ({cause})"
        for cause, part in parts
        if part > 0.0005 * whole
    ]
    if measure != STOPS:
        lines += _flush_window_words(result)
    if whole and result.swings_are_quick:
        lines.append(tornado(measure).verdict)
    return lines


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
