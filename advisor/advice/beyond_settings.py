"""Texts about the part of a measure that no replication setting changes."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.advice.goals import Goals
from advisor.formatting import once_in, time_per_year
from advisor.reliability.results.explanation import no_setting_changes
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.settings_split import BEYOND_SETTINGS, BY_SETTINGS, Amount, beyond
from advisor.reliability.results.settings_split import STOPS as _STOPS


def has_beyond(result: Reliability) -> bool:
    """Return whether the card has mechanisms beyond settings."""
    return bool(beyond(result.model))


def goals_sentence(goals: Goals, result: Reliability) -> str:
    """Return the goals as a sentence, and that they apply only to what settings decide."""
    if not goals.limits or not has_beyond(result):
        return goals.sentence
    return f"{goals.sentence} They apply to what settings decide."


def lost_words(result: Reliability, part: str | None = None) -> str:
    """Return how often a record is lost for a column; `part` is one of `settings_split.PARTS`."""
    if result.config.acks == 0:
        return "none acknowledged"
    return once_in(result.mean_years_to_loss if part is None else result.years_between(part))


def rest_of_topics(results: Sequence[Reliability]) -> str:
    """Return one sentence on causes beyond settings, for the most affected topic."""
    if not results:
        return ""
    worst = max(results, key=lambda result: result.beyond_settings(_STOPS))
    soonest = min(results, key=lambda result: result.years_between(BEYOND_SETTINGS))
    by, rest = worst.outlook.stopped
    outlook = worst.outlook._replace(
        # Topics differ in what settings lose, so that no factor is given.
        years=(Amount(0.0), soonest.outlook.years[1]),
        stopped=(by, Amount(rest.value, rest.seen and len(results) == 1)),
    )
    return no_setting_changes(outlook)


def decided_columns(result: Reliability) -> dict[str, str]:
    """Return columns for the part that settings decide; none if it is the whole."""
    if not has_beyond(result):
        return {}
    return {
        "lost by settings": lost_words(result, BY_SETTINGS),
        "refused by settings": time_per_year(result.by_settings("write_unavailability")),
    }
