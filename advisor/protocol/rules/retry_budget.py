"""How long a producer keeps retrying, in closed form.

Sources: ``ProducerBatch``, ``Sender.canRetry``, ``DelayedProduce``, KIP-91 (delivery timeout),
KIP-580 (exponential backoff, 3.7 in the producer).
"""

from __future__ import annotations

import math

from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import MAX_INT


def retry_budget_ms(config: Config) -> float:
    """Longest outage that a record survives without an error.

    In an outage every attempt fails at once (no leader, not enough replicas, connection refused),
    so retries last as long as their backoffs, at most ``delivery_timeout_ms``.
    """
    if config.acks == 0 or config.retries == 0:
        return 0.0
    timeout = math.inf if config.delivery_timeout_ms is None else config.delivery_timeout_ms
    return min(float(timeout), _backoffs_ms(config))


def waiting_budget_ms(config: Config) -> float:
    """Longest time that a record waits for its acknowledgement without an error.

    While acks=all waits for a follower that has stopped fetching, the leader does not respond, and
    each attempt ends after ``request_timeout_ms``. The first request is sent at once.
    """
    assert config.retries is not None
    assert config.request_timeout_ms is not None
    timeout = math.inf if config.delivery_timeout_ms is None else config.delivery_timeout_ms
    attempts = 1.0 + config.retries
    return min(float(timeout), attempts * config.request_timeout_ms + _backoffs_ms(config))


def backoff_ms(config: Config, failures: int) -> float:
    """Wait after the n-th failed attempt (1, 2, ...)."""
    shortest, longest = _shortest_and_longest_ms(config)
    return min(shortest * 2.0 ** min(failures - 1, _doublings(shortest, longest)), longest)


def _shortest_and_longest_ms(config: Config) -> tuple[float, float]:
    """First and last backoff; they differ since 3.7, and the upper limit caps the first as well."""
    assert config.retry_backoff_ms is not None
    shortest, longest = float(config.retry_backoff_ms), config.retry_backoff_max_ms
    if longest is None or shortest == 0.0:
        return shortest, shortest
    return min(shortest, float(longest)), float(longest)


def _doublings(shortest: float, longest: float) -> int:
    return math.ceil(math.log2(longest / shortest)) if longest > shortest else 0


def _backoffs_ms(config: Config) -> float:
    """Sum of the backoffs of all retries."""
    assert config.retries is not None
    shortest, longest = _shortest_and_longest_ms(config)
    if shortest == 0.0:
        # Without backoff a finite number of retries takes no time.
        return math.inf if config.retries >= MAX_INT else 0.0
    doublings = min(config.retries, _doublings(shortest, longest))
    return shortest * (2.0**doublings - 1.0) + longest * (config.retries - doublings)
