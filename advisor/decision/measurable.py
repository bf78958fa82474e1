"""Which numbers of a card a user can measure on their own cluster, and how."""

from __future__ import annotations

_LOGS = "the brokers' logs and the process supervisor"
_TICKETS = "the provider's or the data centre's incidents"
_ISR = "IsrShrinksPerSec and UnderReplicatedPartitions"
_HOW = {
    "broker.crash": _LOGS,
    "broker.power": _TICKETS,
    "broker.destroyed": _TICKETS,
    "broker.lag": _ISR,
    "broker.restart": _LOGS,
    "rack.network": _TICKETS,
    "cluster.controller": "ActiveControllerCount",
    "copy": "BytesIn of a broker that is being replaced",
    "detection": "the time from a kill to the election in the controller's log",
    "election": "the controller's log",
}
_COUNTED = ("per_year", "minutes", "hours", "bytes_per_second", "seconds", "ms_per_leader")


def how_measured(path: str) -> str:
    """Return how a user can measure the number at a dotted path of a card; "" if they cannot.

    Events that a cluster sees once in decades, and shares of such events, cannot be measured.

    >>> how_measured("broker.crash.per_year")[:17], how_measured("cluster.wiped.per_year")
    ("the brokers' logs", '')
    """
    section, _, key = path.rpartition(".")
    return _HOW.get(section, "") if key in _COUNTED else ""
