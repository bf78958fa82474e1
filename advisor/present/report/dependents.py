"""Who stops beside the topic itself: consumer groups and transactions, in words."""

from __future__ import annotations

from typing import Any

from advisor.formatting import span
from advisor.present.labels import time_per_year
from advisor.reliability.results.dependents import Stopped
from advisor.reliability.results.reliability import Reliability


def dependents_in_words(result: Reliability) -> dict[str, Any]:
    """Return how long those stop that need Kafka's internal topics too.

    Returns
    -------
    dict
        "rows" with "title", "stopped", "bounds" and "parts" (what is needed and how long that is
        down), none before Kafka 0.8.2; and "assumptions", one sentence each.
    """
    found = result.dependents()
    who = (
        ("A consumer group", found.consumer_group),
        ("A transactional producer", found.transaction),
    )
    return {
        "rows": [_row(title, stopped) for title, stopped in who if stopped is not None],
        "assumptions": [f"{text}." for text in found.assumptions],
    }


def _row(title: str, stopped: Stopped) -> dict[str, Any]:
    low, high = map(time_per_year, stopped.bounds)
    return {
        "title": title,
        "stopped": time_per_year(stopped.unavailability),
        "bounds": low if low == high else span(low, high),
        "parts": [(name, time_per_year(share)) for name, share in stopped.parts],
    }
