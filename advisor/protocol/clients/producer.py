"""The Java producer for one partition: when it sends, tries again, gives up, and what it says.

``step(state, now_ms, event, config) -> (state, effects)``, with batches of one record. Time is
virtual, backoff has no jitter, and a timeout strikes at its very millisecond.

Idempotence is as of 2.5 (KIP-360): where earlier releases took a new producer id after a gap in
the sequence numbers, the epoch is raised. Not modelled: metadata and reconnect backoff, batching,
compression, throttling, transactions, and the retry without backoff after a leader change
(KIP-951).

Sources: ``Sender``, ``RecordAccumulator``, ``TransactionManager``, ``TxnPartitionEntry`` at 3.9;
KIP-98, KIP-360.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from advisor.protocol.clients.record_batch import (
    RETRIABLE,
    TIMEOUT_EXCEPTION,
    Batch,
    expires_ms,
    ready_ms,
)
from advisor.protocol.clients.scripted_broker import (
    NETWORK_EXCEPTION,
    NO_SEQUENCE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REQUEST_TIMED_OUT,
)
from advisor.protocol.rules.config import Config


class Flight(NamedTuple):
    """A request without an answer yet."""

    number: int
    sent_ms: float
    batch: Batch


@dataclass(frozen=True, slots=True)
class Producer:
    """What the producer remembers.

    Attributes
    ----------
    queue : tuple of Batch
        Waiting, the next to be sent first.
    flying : tuple of Flight
        On the wire, oldest first.
    epoch, next_sequence, last_acked : int
        Of an idempotent producer; ``last_acked`` is ``NO_SEQUENCE`` before the first success.
    unresolved : int or None
        The sequence number after a batch that was given up with its fate unknown.
    bump : bool
        The epoch is to be raised before anything else is sent.
    requests : int
        Sent so far.
    """

    queue: tuple[Batch, ...] = ()
    flying: tuple[Flight, ...] = ()
    epoch: int = 0
    next_sequence: int = 0
    last_acked: int = NO_SEQUENCE
    unresolved: int | None = None
    bump: bool = False
    requests: int = 0


class Send(NamedTuple):
    """The application hands over a record."""

    record: int


class Answered(NamedTuple):
    """The answer to a request; no error is a success."""

    number: int
    error: str | None = None


class Disconnected(NamedTuple):
    """The connection broke: every request on it is answered so, the oldest first."""

    error: str = NETWORK_EXCEPTION


class Wake(NamedTuple):
    """Time has passed."""


Event = Send | Answered | Disconnected | Wake


class Transmit(NamedTuple):
    """A request goes out."""

    number: int
    record: int
    epoch: int
    sequence: int


class Tell(NamedTuple):
    """The application learns the fate of a record: its future, its callback."""

    record: int
    error: str | None


class HangUp(NamedTuple):
    """A request timed out; the producer closes the connection."""


Effect = Transmit | Tell | HangUp
Effects = tuple[Effect, ...]


def step(state: Producer, now_ms: float, event: Event, config: Config) -> tuple[Producer, Effects]:
    """One event, and all that the producer then does at once."""
    effects: list[Effect] = []
    if isinstance(event, Send):
        state = replace(state, queue=(*state.queue, Batch(event.record, now_ms)))
    elif isinstance(event, Answered):
        state = _answer(state, now_ms, event, config, effects)
    elif isinstance(event, Disconnected):
        state = _disconnect(state, now_ms, event.error, config, effects)
    if any(now_ms >= _request_times_out_ms(flight, config) for flight in state.flying):
        effects.append(HangUp())
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
    """When something happens by itself at the latest; infinity if nothing will."""
    times = (time for time in _times_ms(state, config) if time > now_ms)
    return min(times, default=math.inf)


def _times_ms(state: Producer, config: Config) -> Iterator[float]:
    for batch in state.queue:
        yield ready_ms(batch, config)
        yield expires_ms(batch, False, config)
    for flight in state.flying:
        yield _request_times_out_ms(flight, config)
        if not flight.batch.done:
            yield expires_ms(flight.batch, True, config)


def _request_times_out_ms(flight: Flight, config: Config) -> float:
    assert config.request_timeout_ms is not None
    return flight.sent_ms + config.request_timeout_ms


def _drain(
    state: Producer, now_ms: float, config: Config, effects: list[Effect]
) -> Producer | None:
    """Send the first waiting record if it may go; None if nothing may."""
    assert config.max_in_flight_requests_per_connection is not None
    if not state.queue or len(state.flying) >= config.max_in_flight_requests_per_connection:
        return None
    batch, rest = state.queue[0], state.queue[1:]
    # A first try need not linger once another record stands behind it: its batch is closed.
    closed = bool(rest) and not batch.attempts
    if (not closed and now_ms < ready_ms(batch, config)) or _must_wait(state, batch, config):
        return None
    if config.enable_idempotence and batch.sequence == NO_SEQUENCE:
        batch = replace(batch, epoch=state.epoch, sequence=state.next_sequence)
        state = replace(state, next_sequence=state.next_sequence + 1)
    number = state.requests
    effects.append(Transmit(number, batch.record, batch.epoch, batch.sequence))
    flying = state.flying
    if config.acks == 0:
        effects.append(Tell(batch.record, None))
    else:
        flying = (*flying, Flight(number, now_ms, batch))
    return replace(state, queue=rest, flying=flying, requests=number + 1)


def _must_wait(state: Producer, batch: Batch, config: Config) -> bool:
    """An idempotent producer's order: what is tried again goes one by one, lowest first."""
    if not config.enable_idempotence:
        return False
    if batch.sequence == NO_SEQUENCE:
        return state.unresolved is not None
    return batch.sequence != min(tracked.sequence for tracked in _tracked(state))


def _tracked(state: Producer) -> list[Batch]:
    """Batches with a sequence number whose fate is open, in the order of those numbers."""
    on_wire = [flight.batch for flight in state.flying if not flight.batch.done]
    waiting = [batch for batch in state.queue if batch.sequence != NO_SEQUENCE]
    return sorted(on_wire + waiting, key=lambda batch: (batch.epoch, batch.sequence))


def _expire(state: Producer, now_ms: float, config: Config, effects: list[Effect]) -> Producer:
    """Give up what has waited too long; a request on the wire may still do its work."""
    over: list[Batch] = []
    flying = []
    for flight in state.flying:
        batch = flight.batch
        if not batch.done and now_ms >= expires_ms(batch, True, config):
            over.append(batch)
            flight = flight._replace(batch=replace(batch, done=True))
        flying.append(flight)
    waiting = 0
    for batch in state.queue:
        if now_ms < expires_ms(batch, False, config):
            break
        over.append(batch)
        waiting += 1
    if not over:
        return state
    effects.extend(Tell(batch.record, TIMEOUT_EXCEPTION) for batch in over)
    unknown = [batch.sequence + 1 for batch in over if batch.attempts and config.enable_idempotence]
    unresolved = max((n for n in (state.unresolved, *unknown) if n is not None), default=None)
    return replace(state, queue=state.queue[waiting:], flying=tuple(flying), unresolved=unresolved)


def _answer(
    state: Producer, now_ms: float, event: Answered, config: Config, effects: list[Effect]
) -> Producer:
    """One request is answered: success, another try, or an error for the application."""
    batch = next(flight.batch for flight in state.flying if flight.number == event.number)
    left = tuple(flight for flight in state.flying if flight.number != event.number)
    state = replace(state, flying=left)
    if event.error is None:
        if not batch.done:
            effects.append(Tell(batch.record, None))
        return replace(state, last_acked=max(state.last_acked, batch.sequence))
    if batch.done:
        return state
    expired = now_ms >= expires_ms(batch, True, config)
    assert config.retries is not None
    if not expired and batch.attempts < config.retries:
        tried = _after_error(state, batch, event.error, config)
        if tried is not None:
            again = replace(batch, attempts=batch.attempts + 1, last_attempt_ms=now_ms)
            return replace(tried, queue=_put_back(tried.queue, again))
    effects.append(Tell(batch.record, event.error))
    gap = event.error == OUT_OF_ORDER_SEQUENCE_NUMBER or batch.attempts < config.retries
    return replace(state, bump=state.bump or (bool(config.enable_idempotence) and gap))


def _after_error(state: Producer, batch: Batch, error: str, config: Config) -> Producer | None:
    """The state in which a batch is tried again; None if this error ends it."""
    if config.enable_idempotence and error == OUT_OF_ORDER_SEQUENCE_NUMBER:
        is_next = batch.sequence == state.last_acked + 1
        if state.unresolved is None and (batch.reset or not is_next):
            return state
        gap = state.unresolved is None or batch.sequence == state.unresolved
        return replace(state, bump=state.bump or gap)
    return state if error in RETRIABLE else None


def _put_back(queue: tuple[Batch, ...], batch: Batch) -> tuple[Batch, ...]:
    """To the front, where sequence numbers do not say otherwise: so records change places."""
    place = 0
    if batch.sequence != NO_SEQUENCE:
        while place < len(queue) and NO_SEQUENCE < queue[place].sequence < batch.sequence:
            place += 1
    return (*queue[:place], batch, *queue[place:])


def _disconnect(
    state: Producer, now_ms: float, error: str, config: Config, effects: list[Effect]
) -> Producer:
    for flight in state.flying:
        state = _answer(state, now_ms, Answered(flight.number, error), config, effects)
    return state


def _settle_sequences(state: Producer) -> Producer:
    """Decide on batches of unknown fate once nothing else is open, then raise the epoch if due."""
    if state.unresolved is not None and not _tracked(state):
        resolved = state.next_sequence == state.last_acked + 1
        state = replace(state, unresolved=None, bump=state.bump or not resolved)
    if not state.bump:
        return state
    renumbered = {
        batch.record: replace(batch, epoch=state.epoch + 1, sequence=sequence, reset=True)
        for sequence, batch in enumerate(_tracked(state))
    }
    return replace(
        state,
        queue=tuple(renumbered.get(batch.record, batch) for batch in state.queue),
        flying=tuple(
            flight if flight.batch.done else flight._replace(batch=renumbered[flight.batch.record])
            for flight in state.flying
        ),
        epoch=state.epoch + 1,
        next_sequence=len(renumbered),
        last_acked=NO_SEQUENCE,
        unresolved=None,
        bump=False,
    )
