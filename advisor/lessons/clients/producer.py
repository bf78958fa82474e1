"""State machine of the Java producer for one partition: sending, retries, timeouts, idempotence.

Batches of one record, exact virtual time, backoff without jitter; no metadata, no transactions.
Sources: ``Sender``, ``RecordAccumulator``, ``TransactionManager``, ``TxnPartitionEntry`` at 3.9;
KIP-19, KIP-91, KIP-98, KIP-360 (the epoch is bumped after a gap, as since 2.5).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from advisor.lessons.clients.scripted_broker import (
    NETWORK_EXCEPTION,
    NO_EPOCH,
    NO_SEQUENCE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REQUEST_TIMED_OUT,
)
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.isr import NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND
from advisor.protocol.rules.retry_budget import backoff_ms
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


def expires_ms(batch: Batch, in_flight: bool, config: Config) -> float:
    """Time at which a batch expires (KIP-91); before 2.1 only in the queue, after its wait."""
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


class InFlight(NamedTuple):
    """A request without a response yet."""

    number: int
    sent_ms: float
    batch: Batch


@dataclass(frozen=True, slots=True)
class Producer:
    """State of the producer; requests in flight are in order, oldest first.

    unresolved: sequence number after a batch that expired in an unknown state (Kafka's
        ``unresolvedSequences``).
    bump_epoch: the epoch must be bumped before the next request.
    """

    queue: tuple[Batch, ...] = ()
    in_flight: tuple[InFlight, ...] = ()
    epoch: int = 0
    next_sequence: int = 0
    last_acked: int = NO_SEQUENCE
    unresolved: int | None = None
    bump_epoch: bool = False
    requests: int = 0


class Send(NamedTuple):
    """The application calls ``send``."""

    record: int


class Response(NamedTuple):
    """The response to a request; without an error it is a success."""

    number: int
    error: str | None = None


class Disconnected(NamedTuple):
    """The connection broke: every request in flight fails with this error, oldest first."""

    error: str = NETWORK_EXCEPTION


class Wake(NamedTuple):
    """A timer is due."""


Event = Send | Response | Disconnected | Wake


class Transmit(NamedTuple):
    """A request is sent."""

    number: int
    record: int
    epoch: int
    sequence: int


class Complete(NamedTuple):
    """The future of a record completes: success, or an error."""

    record: int
    error: str | None


class CloseConnection(NamedTuple):
    """A request timed out; the producer closes the connection."""


Effect = Transmit | Complete | CloseConnection
Effects = tuple[Effect, ...]


def step(state: Producer, now_ms: float, event: Event, config: Config) -> tuple[Producer, Effects]:
    """Process one event, and everything that is due at the same time."""
    effects: list[Effect] = []
    if isinstance(event, Send):
        state = replace(state, queue=(*state.queue, Batch(event.record, now_ms)))
    elif isinstance(event, Response):
        state = _handle_response(state, now_ms, event, config, effects)
    elif isinstance(event, Disconnected):
        state = _disconnect(state, now_ms, event.error, config, effects)
    if any(now_ms >= _request_times_out_ms(request, config) for request in state.in_flight):
        effects.append(CloseConnection())
        state = _disconnect(state, now_ms, REQUEST_TIMED_OUT, config, effects)
    while True:
        state = _settle_sequences(state)
        drained = _drain(state, now_ms, config, effects)
        expired = _expire(drained or state, now_ms, config, effects)
        if expired is state:
            break
        state = expired
    return state, tuple(effects)


def next_wake_ms(state: Producer, now_ms: float, config: Config) -> float:
    """Time of the next timer; infinity if there is none."""
    times = (time for time in _times_ms(state, config) if time > now_ms)
    return min(times, default=math.inf)


def _times_ms(state: Producer, config: Config) -> Iterator[float]:
    for batch in state.queue:
        yield ready_ms(batch, config)
        yield expires_ms(batch, False, config)
    for request in state.in_flight:
        yield _request_times_out_ms(request, config)
        if not request.batch.done:
            yield expires_ms(request.batch, True, config)


def _request_times_out_ms(request: InFlight, config: Config) -> float:
    assert config.request_timeout_ms is not None
    return request.sent_ms + config.request_timeout_ms


def _drain(
    state: Producer, now_ms: float, config: Config, effects: list[Effect]
) -> Producer | None:
    """Send the first batch of the queue; None if it may not be sent yet."""
    assert config.max_in_flight_requests_per_connection is not None
    if not state.queue or len(state.in_flight) >= config.max_in_flight_requests_per_connection:
        return None
    batch, rest = state.queue[0], state.queue[1:]
    # The first attempt does not linger once another record follows: its batch is closed.
    closed = bool(rest) and not batch.attempts
    if (not closed and now_ms < ready_ms(batch, config)) or _must_wait(state, batch, config):
        return None
    if config.enable_idempotence and batch.sequence == NO_SEQUENCE:
        batch = replace(batch, epoch=state.epoch, sequence=state.next_sequence)
        state = replace(state, next_sequence=state.next_sequence + 1)
    number = state.requests
    effects.append(Transmit(number, batch.record, batch.epoch, batch.sequence))
    in_flight = state.in_flight
    if config.acks == 0:
        effects.append(Complete(batch.record, None))
    else:
        in_flight = (*in_flight, InFlight(number, now_ms, batch))
    return replace(state, queue=rest, in_flight=in_flight, requests=number + 1)


def _must_wait(state: Producer, batch: Batch, config: Config) -> bool:
    """With idempotence, retries go one at a time, lowest sequence number first."""
    if not config.enable_idempotence:
        return False
    if batch.sequence == NO_SEQUENCE:
        return state.unresolved is not None
    return batch.sequence != min(tracked.sequence for tracked in _tracked(state))


def _tracked(state: Producer) -> list[Batch]:
    """Unfinished batches with a sequence number, in its order (Kafka's ``inflightBatches``)."""
    in_flight = [request.batch for request in state.in_flight if not request.batch.done]
    queued = [batch for batch in state.queue if batch.sequence != NO_SEQUENCE]
    return sorted(in_flight + queued, key=lambda batch: (batch.epoch, batch.sequence))


def _expire(state: Producer, now_ms: float, config: Config, effects: list[Effect]) -> Producer:
    """Fail expired batches; a request in flight may still be appended by the leader."""
    expired: list[Batch] = []
    in_flight = []
    for request in state.in_flight:
        batch = request.batch
        if not batch.done and now_ms >= expires_ms(batch, True, config):
            expired.append(batch)
            request = request._replace(batch=replace(batch, done=True))
        in_flight.append(request)
    waiting = 0
    for batch in state.queue:
        if now_ms < expires_ms(batch, False, config):
            break
        expired.append(batch)
        waiting += 1
    if not expired:
        return state
    effects.extend(Complete(batch.record, TIMEOUT_EXCEPTION) for batch in expired)
    unknown = [
        batch.sequence + 1 for batch in expired if batch.attempts and config.enable_idempotence
    ]
    unresolved = max((n for n in (state.unresolved, *unknown) if n is not None), default=None)
    return replace(
        state, queue=state.queue[waiting:], in_flight=tuple(in_flight), unresolved=unresolved
    )


def _handle_response(
    state: Producer, now_ms: float, event: Response, config: Config, effects: list[Effect]
) -> Producer:
    """Handle a response: success, retry, or failure."""
    batch = next(request.batch for request in state.in_flight if request.number == event.number)
    remaining = tuple(request for request in state.in_flight if request.number != event.number)
    state = replace(state, in_flight=remaining)
    if event.error is None:
        if not batch.done:
            effects.append(Complete(batch.record, None))
        return replace(state, last_acked=max(state.last_acked, batch.sequence))
    if batch.done:
        return state
    expired = now_ms >= expires_ms(batch, True, config)
    assert config.retries is not None
    if not expired and batch.attempts < config.retries:
        retrying = _after_error(state, batch, event.error, config)
        if retrying is not None:
            retry = replace(batch, attempts=batch.attempts + 1, last_attempt_ms=now_ms)
            return replace(retrying, queue=_reenqueue(retrying.queue, retry))
    effects.append(Complete(batch.record, event.error))
    gap = event.error == OUT_OF_ORDER_SEQUENCE_NUMBER or batch.attempts < config.retries
    return replace(state, bump_epoch=state.bump_epoch or (bool(config.enable_idempotence) and gap))


def _after_error(state: Producer, batch: Batch, error: str, config: Config) -> Producer | None:
    """State in which a batch is retried; None if the error is final."""
    if config.enable_idempotence and error == OUT_OF_ORDER_SEQUENCE_NUMBER:
        is_next = batch.sequence == state.last_acked + 1
        if state.unresolved is None and (batch.reset or not is_next):
            return state
        gap = state.unresolved is None or batch.sequence == state.unresolved
        return replace(state, bump_epoch=state.bump_epoch or gap)
    return state if error in RETRIABLE else None


def _reenqueue(queue: tuple[Batch, ...], batch: Batch) -> tuple[Batch, ...]:
    """Put a batch at the front, or at its place by sequence number; the former reorders records."""
    place = 0
    if batch.sequence != NO_SEQUENCE:
        while place < len(queue) and NO_SEQUENCE < queue[place].sequence < batch.sequence:
            place += 1
    return (*queue[:place], batch, *queue[place:])


def _disconnect(
    state: Producer, now_ms: float, error: str, config: Config, effects: list[Effect]
) -> Producer:
    for request in state.in_flight:
        state = _handle_response(state, now_ms, Response(request.number, error), config, effects)
    return state


def _settle_sequences(state: Producer) -> Producer:
    """Resolve unresolved sequences once no batch is unfinished, then bump the epoch if needed."""
    if state.unresolved is not None and not _tracked(state):
        resolved = state.next_sequence == state.last_acked + 1
        state = replace(state, unresolved=None, bump_epoch=state.bump_epoch or not resolved)
    if not state.bump_epoch:
        return state
    renumbered = {
        batch.record: replace(batch, epoch=state.epoch + 1, sequence=sequence, reset=True)
        for sequence, batch in enumerate(_tracked(state))
    }
    return replace(
        state,
        queue=tuple(renumbered.get(batch.record, batch) for batch in state.queue),
        in_flight=tuple(
            request
            if request.batch.done
            else request._replace(batch=renumbered[request.batch.record])
            for request in state.in_flight
        ),
        epoch=state.epoch + 1,
        next_sequence=len(renumbered),
        last_acked=NO_SEQUENCE,
        unresolved=None,
        bump_epoch=False,
    )
