"""The chart of one result: each measure in words, and which mechanisms make it up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from advisor.present.labels import (
    availability,
    interval,
    once_in_years,
    per_year,
    short,
    time_per_year,
)
from advisor.present.points import Estimated, Point
from advisor.reliability.failures import mechanisms
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Sampled

_MOST_CAUSES = 4


@dataclass(frozen=True)
class Outcome:
    """One measure of a result.

    Attributes
    ----------
    measure
        The field of a result.
    title
        What it measures, in words.
    value, brief
        Its value in words, and in fewer.
    interval
        Its 95 % interval in words; "" when the card gives no ranges.
    shares
        Words for each mechanism and its part of the measure, 0 to 1, largest first.
    """

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
"""A loss is told by the mean years between two: a probability near 1 does not tell how often."""


def refused_in_words(value: float) -> str:
    """Return an unavailability both ways: "99.99 %, 53 min/year refused"."""
    if value == 0:
        return "none modelled"
    return f"{availability(value)} available, {time_per_year(value)} not"


def stalled_in_words(value: float) -> str:
    """Return a share of time as a wait: "12 s/year in which acks=all waits"."""
    return f"{time_per_year(value)} in which acks=all waits" if value else "none modelled"


def given_up_in_words(value: float) -> str:
    """Return how many records are given up or lost: "1,500 a year", "5.7 million a year"."""
    return f"{short(value)} a year" if value else "none modelled"


MEASURES: tuple[tuple[str, str, Callable[[float], str], Callable[[float], str]], ...] = (
    (LOST, "Acknowledged records lost", per_year, once_in_years),
    ("write_unavailability", "Writes refused", refused_in_words, time_per_year),
    ("read_unavailability", "Reads not served", refused_in_words, time_per_year),
    ("write_stalled", "Writes stalled", stalled_in_words, time_per_year),
    ("records_refused_per_year", "Records given up", given_up_in_words, given_up_in_words),
)
"""Field of a result, its title, words for the value, words for the ends of the interval."""

STALLED, GIVEN_UP = "write_stalled", "records_refused_per_year"
COMPARED = tuple(measure for measure, *_ in MEASURES if measure not in (STALLED, GIVEN_UP))
"""What settings are compared by, in tables with a column for each."""


def outcomes(result: Reliability | Sampled, ranged: bool = True) -> tuple[Outcome, ...]:
    """Return the measures of a result in words, with what makes them up.

    Writes stall with acks=all only: nobody else waits for followers.

    Parameters
    ----------
    result
        What `evaluate` or `simulate` returned.
    ranged
        Whether intervals that are not known yet are worth the many evaluations they take.
    """
    return tuple(
        _outcome(result, measure, ranged)
        for measure, *_ in MEASURES
        if measure != STALLED or result.config.acks == "all"
    )


def compared_outcomes(
    result: Reliability | Sampled, ranged: bool = True, measures: Sequence[str] = COMPARED
) -> tuple[Outcome, ...]:
    """Return those of `outcomes` that settings are compared by."""
    return tuple(_outcome(result, measure, ranged) for measure in measures)


def brief_in_words(measure: str, value: float, low: float, high: float) -> tuple[str, str]:
    """Return a value of a measure, in few words, and its interval; "" if it has no width."""
    told = LOST if measure == BETWEEN else measure
    say = next(say_end for name, _, _, say_end in MEASURES if name == told)
    return say(value), interval(low, high, say) if low < high else ""


def _outcome(result: Reliability | Sampled, measure: str, ranged: bool) -> Outcome:
    title, say = next((title, say) for name, title, say, _ in MEASURES if name == measure)
    estimate = estimated(result, measure, ranged)
    value = say(estimate.value)
    told = (estimate.value, estimate.low, estimate.high)
    if measure == LOST:
        told = _between(result, ranged)
    brief, ends = brief_in_words(BETWEEN if measure == LOST else measure, *told)
    if measure == LOST and estimate.value:
        # Both ways: "5.6e-6 / year, once in 180,000 years".
        value = f"{value}, {brief}"
    if isinstance(result, Sampled) and not result.estimate(measure).seen:
        # The estimate of what did not happen in the simulated years is only a bound.
        value, brief = (f"not seen; at most {words}" for words in (value, brief))
        ends = ""
    return Outcome(measure, title, value, brief, ends, shares(result.causes.get(measure, {})))


def _between(result: Reliability | Sampled, ranged: bool) -> tuple[float, float, float]:
    """Mean years between losses with their interval, or thrice where that is not known."""
    if isinstance(result, Sampled):
        found = result.estimate(BETWEEN)
        return found.value, found.low, found.high
    value = result.mean_years_to_loss
    known = ranged or result.intervals
    return (value, *(result.interval(BETWEEN) if known else (value, value)))


def point_of(result: Reliability | Sampled, ranged: bool = True) -> Point:
    """Return where a result stands in the charts; `ranged` as for `outcomes`."""
    config = result.config
    assert config.replication_factor is not None
    assert config.min_insync_replicas is not None
    assert config.acks is not None
    return Point(
        config.replication_factor,
        config.min_insync_replicas,
        config.acks,
        estimated(result, "loss_probability_per_year", ranged),
        estimated(result, "write_unavailability", ranged),
    )


def estimated(result: Reliability | Sampled, measure: str, ranged: bool = True) -> Estimated:
    """Return a measure with its interval, or with the value twice where that is not known."""
    if isinstance(result, Sampled):
        sampled = result.estimate(measure)
        return Estimated(sampled.value, sampled.low, sampled.high)
    value = float(getattr(result, measure))
    if not ranged and not result.intervals:
        return Estimated(value, value, value)
    low, high = result.interval(measure)
    return Estimated(value, low, high)


def shares(causes: Mapping[str, float], most: int = _MOST_CAUSES) -> tuple[tuple[str, float], ...]:
    """Return the largest parts of a whole as shares of it, and the sum of the others.

    Parameters
    ----------
    causes
        Mechanism, by its name in a card, to its part of a measure; the parts add up to it.
    most
        How many to name.
    """
    whole = sum(causes.values())
    if whole <= 0:
        return ()
    ordered = sorted(causes.items(), key=lambda item: (-item[1], item[0]))
    named = [(mechanisms.words(name), part / whole) for name, part in ordered if part > 0]
    rest = sum(share for _, share in named[most:])
    return (*named[:most], *([("all others", rest)] if rest > 0 else []))
