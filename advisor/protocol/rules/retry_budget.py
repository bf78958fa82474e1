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

    A record fails ``delivery_timeout_ms`` after its creation or when its retries are used up,
    whichever is first. In an outage every attempt fails at once (no leader, not enough replicas,
    connection refused), so retries last as long as their backoffs: ``retry_backoff_ms`` each,
    doubling up to ``retry_backoff_max_ms`` since 3.7.

    config: producer settings and Kafka version.
    Returns milliseconds. 0 with ``retries=0`` or ``acks=0``: there are no retries.

    Five retries with backoffs of 100, 200, 400, 800 and 1000 ms:

    >>> retry_budget_ms(Config(retries=5, kafka_version="4.1"))
    2500.0
    """
    if config.acks == 0 or config.retries == 0:
        return 0.0
    timeout = math.inf if config.delivery_timeout_ms is None else config.delivery_timeout_ms
    return min(float(timeout), _backoffs_ms(config))


def waiting_budget_ms(config: Config) -> float:
    """Longest time that a record waits for its acknowledgement without an error.

    While acks=all waits for a follower that has stopped fetching, the leader does not respond: each
    attempt ends with ``REQUEST_TIMED_OUT`` after ``request_timeout_ms``. The budget is this timeout
    for the first attempt and each retry, plus the backoffs, capped by ``delivery_timeout_ms``. It
    assumes that the record's first request is sent immediately.

    config: producer settings and Kafka version.
    Returns milliseconds, never less than `retry_budget_ms`.
    """
    assert config.retries is not None
    assert config.request_timeout_ms is not None
    timeout = math.inf if config.delivery_timeout_ms is None else config.delivery_timeout_ms
    attempts = 1.0 + config.retries
    return min(float(timeout), attempts * config.request_timeout_ms + _backoffs_ms(config))


def _backoffs_ms(config: Config) -> float:
    assert config.retries is not None
    assert config.retry_backoff_ms is not None
    first, most = float(config.retry_backoff_ms), config.retry_backoff_max_ms
    if first == 0:
        # Without backoff a finite number of retries takes no time.
        return math.inf if config.retries >= MAX_INT else 0.0
    if most is None:
        return first * config.retries
    first = min(first, float(most))
    if most <= first:
        return first * config.retries
    doublings = min(config.retries, math.ceil(math.log2(most / first)))
    growing = first * (2.0**doublings - 1.0)
    return growing + float(most) * (config.retries - doublings)
