"""Which numbers of a card a user can measure on their own cluster, and how."""

from __future__ import annotations

from advisor.reliability.failures.mechanisms import HOW_MEASURED

_COUNTED = ("per_year", "minutes", "hours", "bytes_per_second", "seconds", "ms_per_leader")


def how_measured(path: str) -> str:
    """Return how a user can measure the number at a dotted path of a card; "" if they cannot.

    Events that a cluster sees once in decades, and shares of such events, cannot be measured.

    >>> how_measured("broker.crash.per_year")[:17], how_measured("cluster.wiped.per_year")
    ("the brokers' logs", '')
    """
    section, _, key = path.rpartition(".")
    return HOW_MEASURED.get(section, "") if key in _COUNTED else ""
