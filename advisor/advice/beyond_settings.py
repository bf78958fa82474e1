"""Texts of measures as a whole, where goals are held against them."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.advice.goals import Goals
from advisor.formatting import once_in
from advisor.reliability.results.reliability import Reliability


def has_beyond(_: Reliability) -> bool:
    """Return whether a measure is shown in two parts: never."""
    return False


def goals_sentence(goals: Goals, _: Reliability) -> str:
    """Return the goals as a sentence."""
    return goals.sentence


def lost_words(result: Reliability, _: str | None = None) -> str:
    """Return how often a record is lost for a column."""
    return "none acknowledged" if result.config.acks == 0 else once_in(result.mean_years_to_loss)


def rest_of_topics(_: Sequence[Reliability]) -> str:
    """Return nothing: losses are said as a whole."""
    return ""


def decided_columns(_: Reliability) -> dict[str, str]:
    """Return no further columns."""
    return {}
