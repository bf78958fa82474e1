"""How long a producer keeps trying.

Sources: ``ProducerBatch``, ``Sender.canRetry``, ``DelayedProduce``, KIP-91 (delivery timeout),
KIP-580 (exponential backoff, 3.7 in the producer).
"""

from __future__ import annotations

import math

from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import MAX_INT


def retry_budget_ms(config: Config) -> float:
    """The longest outage that a record survives without an error reaching the application.

    A record is given up at ``delivery_timeout_ms`` after it was created, or once its retries are
    used up, whichever comes first. During an outage every attempt is answered at once (no leader,
    not enough replicas, connection refused), so that retries last only as long as their backoffs:
    ``retry_backoff_ms`` each, doubling up to ``retry_backoff_max_ms`` since 3.7.

    Returns
    -------
    float
        Milliseconds. 0 with ``retries=0`` or ``acks=0``: nothing is tried again.
    """
    if config.acks == 0 or config.retries == 0:
        return 0.0
    patience = math.inf if config.delivery_timeout_ms is None else config.delivery_timeout_ms
    return min(float(patience), _backoffs_ms(config))


def waiting_budget_ms(config: Config) -> float:
    """The longest that a record waits for its acknowledgement without an error.

    While acks=all waits for a follower that no longer fetches, the leader answers nothing: an
    attempt ends after ``request_timeout_ms``, with ``REQUEST_TIMED_OUT``, and not at once as it
    does in an outage. So there is one such time for the first attempt and one for each retry, and
    the backoffs between them; ``delivery_timeout_ms`` after it was created a record is given up,
    on the wire or not. Each record is looked at as if its request went out at once.

    Returns
    -------
    float
        Milliseconds, never less than `retry_budget_ms`.
    """
    assert config.retries is not None
    assert config.request_timeout_ms is not None
    patience = math.inf if config.delivery_timeout_ms is None else config.delivery_timeout_ms
    attempts = 1.0 + config.retries
    return min(float(patience), attempts * config.request_timeout_ms + _backoffs_ms(config))


def _backoffs_ms(config: Config) -> float:
    assert config.retries is not None
    assert config.retry_backoff_ms is not None
    first, most = float(config.retry_backoff_ms), config.retry_backoff_max_ms
    if first == 0:
        # Tried again at once: few retries are over at once, endless ones never.
        return math.inf if config.retries >= MAX_INT else 0.0
    if most is None:
        return first * config.retries
    first = min(first, float(most))
    if most <= first:
        return first * config.retries
    doublings = min(config.retries, math.ceil(math.log2(most / first)))
    growing = first * (2.0**doublings - 1.0)
    return growing + float(most) * (config.retries - doublings)
