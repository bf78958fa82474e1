"""The measures of a result in words: value, interval, main causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from advisor.advice.tolerance import fatal_racks, largest_share, quorum_words, survival
from advisor.cluster.model import Cluster
from advisor.formatting import RARER, percents
from advisor.present.labels import (
    availability,
    interval_label,
    once_in_years,
    per_year,
    short,
    time_per_year_label,
)
from advisor.present.points import Estimated, Point
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.failures import mechanisms
from advisor.reliability.measure_table import FRACTION, PROBABILITY, YEARS, Measure
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Estimate, Sampled

_MOST_CAUSES = 4


@dataclass(frozen=True)
class Outcome:
    """One measure of a result in words; `shares` are its causes, 0 to 1, the largest first."""

    measure: str
    title: str
    value: str
    brief: str
    interval: str
    shares: tuple[tuple[str, float], ...]

    @property
    def said(self) -> str:
        """Value and interval."""
        return f"{self.value} ({self.interval})" if self.interval else self.value


LOST, BETWEEN = "loss_probability_per_year", "mean_years_to_loss"
"""Losses are also shown as mean years between: a probability near 1 does not give the rate."""


STALLED, GIVEN_UP = "write_stalled", "records_refused_per_year"


def in_full(entry: Measure, value: float) -> str:
    """Return a value of a measure in words; an unavailability both ways, a wait as a time."""
    if entry.unit != FRACTION:
        return per_year(value) if entry.unit == PROBABILITY else in_brief(entry, value)
    if value == 0:
        return "none modelled"
    time = time_per_year_label(value)
    return f"{time} {entry.wait}" if entry.wait else f"{availability(value)} available, down {time}"


def in_brief(entry: Measure, value: float) -> str:
    """Return a value of a measure for narrow columns: "1.8 h/year", "5.7 million a year"."""
    if entry.unit == FRACTION:
        return time_per_year_label(value)
    if entry.unit == YEARS:
        return once_in_years(value)
    return per_year(value) if entry.unit == PROBABILITY else given_up_in_words(value)


def given_up_in_words(value: float) -> str:
    """Return a number of records per year: "1,500 a year", "5.7 million a year"."""
    return f"{short(value)} a year" if value else "none modelled"


def compared_measures() -> tuple[str, ...]:
    """Return the measures with a column in tables that compare settings."""
    return tuple(entry.name for entry in measure_table.entries() if entry.compared)


def outcomes(result: Reliability | Sampled, intervals: bool = True) -> tuple[Outcome, ...]:
    """Return the measures of a result in words, with their main causes.

    `intervals` that are not cached take many evaluations.
    """
    return tuple(
        _outcome(result, entry.name, intervals)
        for entry in measure_table.entries()
        if entry.shown and (entry.name != STALLED or result.config.acks == "all")
    )


def compared_outcomes(
    result: Reliability | Sampled, intervals: bool = True, measures: Sequence[str] = ()
) -> tuple[Outcome, ...]:
    """Return some measures; by default those that tables compare settings by."""
    return tuple(
        _outcome(result, measure, intervals) for measure in measures or compared_measures()
    )


def brief_in_words(measure: str, value: float, low: float, high: float) -> tuple[str, str]:
    """Return a value of a measure in few words, and its interval; "" if both ends are equal."""
    say = partial(in_brief, measure_table.measure(measure))
    return say(value), interval_label(low, high, say) if low < high else ""


def _outcome(result: Reliability | Sampled, measure: str, intervals: bool) -> Outcome:
    entry = measure_table.measure(measure)
    title, estimate = entry.title, estimated(result, measure, intervals)
    value = in_full(entry, estimate.value)
    figures = (estimate.value, estimate.low, estimate.high)
    if measure == LOST:
        figures = _years_between(result, intervals)
    brief, ends = brief_in_words(BETWEEN if measure == LOST else measure, *figures)
    if measure == LOST and estimate.value:
        # Both ways: "0.56 % / year, once in 180 years".
        value = brief if brief == RARER else f"{value}, {brief}"
    if isinstance(result, Sampled) and not result.estimate(measure).seen:
        # No event was sampled: the estimate is only an upper bound.
        value, brief = (f"not seen; at most {words}" for words in (value, brief))
        ends = ""
    causes = shares(result.causes.get(measure, {}))
    if measure == LOST and result.config.acks == 0:
        return _unacknowledged(result, title, causes)
    return Outcome(measure, title, value, brief, ends, causes)


def _unacknowledged(
    result: Reliability | Sampled, title: str, causes: tuple[tuple[str, float], ...]
) -> Outcome:
    """Return the outcome of acks=0: nothing is acknowledged, but records are lost."""
    dropped = result.records_dropped_per_year
    dropped_words = given_up_in_words(float(dropped)) if float(dropped) else "none"
    if isinstance(dropped, Estimate) and not dropped.seen:
        dropped_words = f"at most {dropped_words}"
    words = f"nothing acknowledged; records lost: {dropped_words}"
    return Outcome(LOST, title, words, words, "", causes)


def _years_between(result: Reliability | Sampled, intervals: bool) -> tuple[float, float, float]:
    """Return mean years between losses, low and high; thrice the value without intervals."""
    if isinstance(result, Sampled):
        estimate = result.estimate(BETWEEN)
        return estimate.value, estimate.low, estimate.high
    value = result.mean_years_to_loss
    has_interval = intervals or result.intervals
    return (value, *(result.interval(BETWEEN) if has_interval else (value, value)))


def point_of(result: Reliability | Sampled, intervals: bool = True) -> Point:
    """Return a result as a point in the charts; `intervals` as for `outcomes`."""
    config = result.config
    assert config.replication_factor is not None
    assert config.min_insync_replicas is not None
    assert config.acks is not None
    return Point(
        config.replication_factor,
        config.min_insync_replicas,
        config.acks,
        estimated(result, "loss_probability_per_year", intervals),
        estimated(result, "write_unavailability", intervals),
    )


def estimated(result: Reliability | Sampled, measure: str, intervals: bool = True) -> Estimated:
    """Return a measure with its interval; of zero width if neither requested nor cached."""
    if isinstance(result, Sampled):
        sampled = result.estimate(measure)
        return Estimated(sampled.value, sampled.low, sampled.high)
    value = float(measure_table.measure(measure).of(result))
    low, high = value, value
    if intervals or result.intervals:
        low, high = result.interval(measure)
    return Estimated(value, low, high)


def shares(causes: Mapping[str, float], most: int = _MOST_CAUSES) -> tuple[tuple[str, float], ...]:
    """Return the largest causes of a measure as shares of it, and the sum of the others."""
    total = sum(causes.values())
    if total <= 0:
        return ()
    ordered = sorted(causes.items(), key=lambda item: (-item[1], item[0]))
    named = [(mechanisms.words(name), amount / total) for name, amount in ordered if amount > 0]
    others = sum(share for _, share in named[most:])
    return (*named[:most], *([("all others", others)] if others > 0 else []))


def in_percent(causes: Sequence[tuple[str, float]]) -> list[tuple[str, str]]:
    """Return causes with their shares in whole percents that add up."""
    words = percents([share for _, share in causes])
    return [(name, percent) for (name, _), percent in zip(causes, words, strict=True)]


def notes(config: Config) -> tuple[tuple[str, str], ...]:
    """Return warnings about what Kafka silently changes or refuses: the setting, and a sentence."""
    warnings = []
    min_isr, factor = config.min_insync_replicas or 1, config.replication_factor or 1
    if min_isr > factor:
        warning = (
            f"min.insync.replicas {min_isr} is above the replication factor {factor}: Kafka "
            f"{config.kafka_version} "
        )
        if config.effective_min_insync_replicas > factor:
            warning += (
                "refuses every write with acks=all: "
                "“Messages are rejected since there are fewer in-sync replicas than required.”"
            )
        else:
            warning += f"takes it for {factor} (since 3.7)."
        warnings.append(("min_insync_replicas", warning))
    if config.acks != 0 and not config.enable_idempotence:
        warnings.append(("acks", "enable.idempotence is off: retries may write duplicates."))
    return tuple(warnings)


def tolerance_words(result: Reliability) -> tuple[tuple[str, str], ...]:
    """Return how many brokers may fail, for data, writes and reads: words and number of each."""
    tolerates = result.tolerates
    never = tolerates.while_writable < 0
    return (
        (f"without losing {records_at_risk(result.config)}", f"{tolerates.without_loss}"),
        ("while writes go on", "not even 0" if never else f"{tolerates.while_writable}"),
        ("while reads go on", f"{tolerates.while_readable}"),
    )


def records_at_risk(config: Config) -> str:
    """Return "acknowledged records", or "records" where none is acknowledged."""
    return "records" if config.acks == 0 else "acknowledged records"


def rack_words(cluster: Cluster, config: Config) -> str:
    """Return the effect of losing one rack, the worst single event, in one sentence."""
    assert config.replication_factor is not None
    share = largest_share(cluster.brokers, config.replication_factor, str(config.mode))
    if share is None:
        return "The racks are not known, so nothing can be said about losing one."
    effect = survival(share, config)
    lost = f"{records_at_risk(config)} are lost"
    if effect.without_loss:
        lost = "no acknowledged record is lost"
    goes_on = "writes stop"
    if effect.writable:
        fatal = fatal_racks(cluster.controllers, set(cluster.brokers.values()))
        goes_on = f"writes go on{quorum_words(cluster.controllers, fatal, str(config.mode))}"
    replicas = "one replica" if share == 1 else f"{share} replicas"
    return f"Losing a whole rack takes {replicas} of a partition at worst: {lost}, and {goes_on}."
