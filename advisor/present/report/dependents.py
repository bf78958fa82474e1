"""Consumer groups and transactions: how long they stop, for the report."""

from __future__ import annotations

from typing import Any

from advisor.formatting import span
from advisor.present.labels import time_per_year_label
from advisor.reliability.results.dependents import ClientUnavailability
from advisor.reliability.results.reliability import Reliability


def dependents_in_words(result: Reliability) -> dict[str, Any]:
    """Return the unavailability of clients that also depend on Kafka's internal topics.

    Returns "rows" with "title", "stopped", "bounds" and "parts" (each dependency and its
        unavailability), empty before Kafka 0.8.2; "assumptions", one sentence each.
    """
    dependents = result.dependents()
    clients = (
        ("A consumer group", dependents.consumer_group),
        ("A transactional producer", dependents.transaction),
    )
    return {
        "rows": [_row(title, stopped) for title, stopped in clients if stopped is not None],
        "assumptions": [f"{text}." for text in dependents.assumptions],
    }


def _row(title: str, stopped: ClientUnavailability) -> dict[str, Any]:
    low, high = map(time_per_year_label, stopped.bounds)
    return {
        "title": title,
        "stopped": time_per_year_label(stopped.unavailability),
        "bounds": low if low == high else span(low, high),
        "parts": [(name, time_per_year_label(share)) for name, share in stopped.parts],
    }
