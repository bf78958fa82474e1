"""A producer batch of one record: linger, retry backoff, expiry.

Sources: ``ProducerBatch``, ``RecordAccumulator``, ``ExponentialBackoff``; KIP-19 (0.9), KIP-91
(2.1), KIP-580 (3.7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.lessons.clients.scripted_broker import (
    NETWORK_EXCEPTION,
    NO_EPOCH,
    NO_SEQUENCE,
    REQUEST_TIMED_OUT,
)
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.isr import NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND
from advisor.protocol.rules.versions import parse_version

TIMEOUT_EXCEPTION = "TimeoutException"

RETRIABLE = frozenset(
    {
        NETWORK_EXCEPTION,
        REQUEST_TIMED_OUT,
        NOT_ENOUGH_REPLICAS,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        "NOT_LEADER_OR_FOLLOWER",
        "LEADER_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "KAFKA_STORAGE_ERROR",
        "CORRUPT_MESSAGE",
    }
)


@dataclass(frozen=True, slots=True)
class Batch:
    """One record that is queued or in flight.

    attempts: failed attempts that were retriable.
    last_attempt_ms: time of the last failed attempt.
    epoch, sequence: producer epoch and sequence number; ``NO_EPOCH`` and ``NO_SEQUENCE`` if not
        assigned.
    reset: its sequence number was reassigned after an epoch bump.
    done: its future has completed, although a request may still be in flight.
    """

    record: int
    created_ms: float
    attempts: int = 0
    last_attempt_ms: float = 0.0
    epoch: int = NO_EPOCH
    sequence: int = NO_SEQUENCE
    reset: bool = False
    done: bool = False


def backoff_ms(config: Config, failures: int) -> float:
    """Backoff after the n-th failed attempt (1, 2, ...), in milliseconds.

    Constant before 3.7; since then it doubles each time up to ``retry_backoff_max_ms`` (KIP-580),
    which also caps the first backoff.
    """
    assert config.retry_backoff_ms is not None
    first, most = float(config.retry_backoff_ms), config.retry_backoff_max_ms
    if most is None:
        return first
    if most <= first or first == 0.0:
        return min(first, float(most))
    doublings = min(failures - 1, math.ceil(math.log2(most / first)))
    return min(first * 2.0**doublings, float(most))


def expires_ms(batch: Batch, in_flight: bool, config: Config) -> float:
    """Time at which a batch expires; infinity for never.

    Since 2.1: ``delivery_timeout_ms`` after creation, queued or in flight (KIP-91). Before, a
    batch expired only in the queue, ``request_timeout_ms`` after the end of its linger or backoff
    (KIP-19, 0.9; as of 2.0).
    """
    if config.delivery_timeout_ms is not None:
        return batch.created_ms + config.delivery_timeout_ms
    assert config.request_timeout_ms is not None
    if in_flight or parse_version(config.kafka_version) < (0, 9):
        return math.inf
    return ready_ms(batch, config) + config.request_timeout_ms


def ready_ms(batch: Batch, config: Config) -> float:
    """Time at which a queued batch may be sent: after linger or backoff."""
    assert config.linger_ms is not None
    if batch.attempts:
        return batch.last_attempt_ms + backoff_ms(config, batch.attempts)
    return batch.created_ms + config.linger_ms
