"""Single steps of the producer's state machine."""

import math

import pytest

from advisor.errors import InputError
from advisor.lessons.clients import producer as producer
from advisor.lessons.clients.delivery import RecordOutcome, deliver
from advisor.lessons.clients.producer import Batch
from advisor.lessons.clients.scripted_broker import (
    outage,
)
from advisor.protocol.rules.config import Config

PLAIN = Config(acks="all", enable_idempotence=False, linger_ms=0)
SAFE = Config(acks="all", linger_ms=0)


# --- single steps --------------------------------------------------------------------------------


def steps(
    *events: tuple[float, producer.Event], config: Config = SAFE
) -> tuple[producer.Producer, tuple[producer.Effect, ...]]:
    """State after some events, and the effects of the last one."""
    state, effects = producer.Producer(), ()
    for now_ms, event in events:
        state, effects = producer.step(state, now_ms, event, config)
    return state, effects


def test_an_error_at_the_delivery_timeout_is_reported() -> None:
    """``Sender.canRetry``: at the timeout the application gets the error of the response."""
    config = SAFE.changed(delivery_timeout_ms=1_000, request_timeout_ms=1_000)
    late = (1_000.0, producer.Response(0, "NOT_ENOUGH_REPLICAS"))
    _, effects = steps((0.0, producer.Send(0)), late, config=config)
    assert effects == (producer.Complete(0, "NOT_ENOUGH_REPLICAS"),)


def test_retries_of_an_idempotent_producer_go_one_by_one() -> None:
    """``shouldStopDrainBatchesForPartition``: only the lowest sequence number may be retried."""
    sends = [(0.0, producer.Send(record)) for record in range(3)]
    broken, again = (1.0, producer.Disconnected()), (101.0, producer.Wake())
    _, effects = steps(*sends, broken, again)
    assert effects == (producer.Transmit(3, 0, 0, 0),)
    _, effects = steps(*sends, broken, again, (102.0, producer.Response(3)))
    assert effects == (producer.Complete(0, None), producer.Transmit(4, 1, 0, 1))
    _, effects = steps(*sends, broken, again, config=PLAIN)
    assert [effect.record for effect in effects] == [2, 1, 0]


# The batch with sequence number 1 expired in an unknown state; 2 is to be retried.
UNRESOLVED = producer.Producer(
    queue=(Batch(2, 0.0, attempts=1, epoch=0, sequence=2), Batch(3, 0.0)),
    next_sequence=3,
    last_acked=0,
    unresolved=2,
)


def test_new_records_wait_while_a_sequence_is_unresolved() -> None:
    """``hasUnresolvedSequence``: batches with a number are sent, those without wait."""
    state, effects = producer.step(UNRESOLVED, 200.0, producer.Wake(), SAFE)
    assert effects == (producer.Transmit(0, 2, 0, 2),)
    # The success of number 2 implies that number 1 was appended: no gap.
    _, effects = producer.step(state, 201.0, producer.Response(0), SAFE)
    assert effects == (producer.Complete(2, None), producer.Transmit(1, 3, 0, 3))


def test_a_gap_after_an_unresolved_sequence_bumps_the_epoch() -> None:
    """``isNextSequenceForUnresolvedPartition``: number 1 was not appended, so 2 becomes 0."""
    state, _ = producer.step(UNRESOLVED, 200.0, producer.Wake(), SAFE)
    state, effects = producer.step(
        state, 201.0, producer.Response(0, "OUT_OF_ORDER_SEQUENCE_NUMBER"), SAFE
    )
    assert effects == ()
    _, effects = producer.step(state, 401.0, producer.Wake(), SAFE)
    assert effects[0] == producer.Transmit(1, 2, 1, 0)


def test_when_all_in_flight_expired_the_epoch_is_bumped() -> None:
    """``maybeResolveSequences``: with a number missing, the next record starts at 0."""
    config = SAFE.changed(delivery_timeout_ms=30_000, request_timeout_ms=30_000)
    got = deliver(config, 3, outage(35_000, 65_000), every_ms=35_000)
    assert got.refused == (1,)
    assert got.acknowledged == (0, 2)
    assert got.outcomes[-1].at_ms == 70_001


def test_a_record_behind_an_expired_one_starts_the_next_epoch() -> None:
    """Its number is out of order; after one response and one backoff it starts the next epoch."""
    config = SAFE.changed(delivery_timeout_ms=30_000, request_timeout_ms=30_000)
    got = deliver(config, 3, outage(20_000, 50_000), every_ms=20_000)
    assert got.refused == (1,)
    assert got.outcomes[-1] == RecordOutcome(2, None, 50_000 + 1 + 200 + 1)


def test_a_late_success_does_not_lower_the_last_acked_sequence() -> None:
    """``maybeUpdateLastAckedSequence``: it only increases."""
    expired = producer.InFlight(7, 0.0, Batch(1, 0.0, epoch=0, sequence=1, done=True))
    state = producer.Producer(in_flight=(expired,), next_sequence=5, last_acked=4)
    state, effects = producer.step(state, 1.0, producer.Response(7), SAFE)
    assert (state.last_acked, effects) == (4, ())


# Sequence number 1 of two; what it fails with decides whether 2 keeps its number.
LAST_TRY = producer.Producer(
    in_flight=(
        producer.InFlight(0, 0.0, Batch(1, 0.0, attempts=3, epoch=0, sequence=1)),
        producer.InFlight(1, 0.0, Batch(2, 0.0, attempts=0, epoch=0, sequence=2)),
    ),
    next_sequence=3,
    last_acked=0,
)


@pytest.mark.parametrize(
    ("retries", "error", "bumps"),
    [
        (3, "NOT_ENOUGH_REPLICAS", False),
        (4, "MESSAGE_TOO_LARGE", True),
        (3, "MESSAGE_TOO_LARGE", False),
        (3, "OUT_OF_ORDER_SEQUENCE_NUMBER", True),
    ],
)
def test_a_failed_batch_bumps_the_epoch_unless_its_retries_are_used_up(
    retries: int, error: str, bumps: bool
) -> None:
    """``Sender.failBatch``: with retries used up nobody knows whether the number was taken.

    ``TransactionManager.handleFailedBatch``: an out-of-order number is a gap all the same.
    """
    config = SAFE.changed(retries=retries)
    state, effects = producer.step(LAST_TRY, 1.0, producer.Response(0, error), config)
    assert effects == (producer.Complete(1, error),)
    assert state.epoch == (1 if bumps else 0)
    (left,) = state.in_flight
    assert left.batch.sequence == (0 if bumps else 2)
    plain = SAFE.changed(retries=retries, enable_idempotence=False)
    state, effects = producer.step(LAST_TRY, 1.0, producer.Response(0, error), plain)
    assert state.epoch == 0


def test_records_may_be_sent_at_once() -> None:
    """An interval of 0 is allowed, negative and infinite ones are not."""
    assert deliver(PLAIN, 2, every_ms=0.0).acknowledged == (0, 1)
    for wrong in (-1.0, math.inf):
        with pytest.raises(InputError):
            deliver(PLAIN, 1, every_ms=wrong)
