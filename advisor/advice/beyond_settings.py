"""What no replication setting changes, beside goals that are held against the rest."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.advice.goals import Goals
from advisor.advice.phrases import every
from advisor.formatting import time_per_year
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.settings_split import (
    BEYOND_SETTINGS,
    BY_SETTINGS,
    beyond,
    beyond_in_words,
)

_STOPS, _LOSSES = "write_unavailability", "loss_events_per_year"


def has_beyond(result: Reliability) -> bool:
    """Whether the card holds mechanisms that no setting changes."""
    return bool(beyond(result.model))


def goals_sentence(goals: Goals, result: Reliability) -> str:
    """Return the goals as a sentence, and what they are held against where that is not all."""
    if not goals.limits or not has_beyond(result):
        return goals.sentence
    return f"{goals.sentence} They are held against what settings decide."


def decided_words(result: Reliability) -> str:
    """Return losses and refused writes that settings decide, in brackets; "" for all of them."""
    if not has_beyond(result):
        return ""
    refused = f"refused {time_per_year(result.by_settings(_STOPS))}"
    lost = f"lost {every(result.years_between(BY_SETTINGS))}, " if result.config.acks != 0 else ""
    return f" (of this settings decide: {lost}{refused})"


def lost_words(result: Reliability, part: str | None = None) -> str:
    """Return how often a record is lost for a column; `part` is one of `settings_split.PARTS`."""
    if result.config.acks == 0:
        return "none acknowledged"
    return every(result.mean_years_to_loss if part is None else result.years_between(part))


def rest_of_topics(results: Sequence[Reliability]) -> str:
    """Return what no setting changes for the topic that it strikes most; "" for nothing."""
    struck = [result for result in results if has_beyond(result)]
    if not struck:
        return ""
    worst = max(struck, key=lambda result: result.beyond_settings(_STOPS))
    soonest = min(struck, key=lambda result: result.years_between(BEYOND_SETTINGS))
    why = beyond_in_words(worst.causes, (_STOPS, _LOSSES), worst.model)
    up_to = "" if len(struck) == 1 else "up to "
    refused = time_per_year(worst.beyond_settings(_STOPS))
    often = every(soonest.years_between(BEYOND_SETTINGS))
    lost = "" if often == "never" or soonest.config.acks == 0 else f" and a lost record {often}"
    return f"Beside that, no setting changes {up_to}{refused} of refused writes{lost} ({why})."
