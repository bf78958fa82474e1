"""Single steps of a producer that others could not show."""

from advisor.protocol.clients import producer as producer
from advisor.protocol.clients.delivery import Told, deliver
from advisor.protocol.clients.record_batch import Batch
from advisor.protocol.clients.scripted_broker import (
    outage,
)
from advisor.protocol.rules.config import Config

PLAIN = Config(acks="all", enable_idempotence=False, linger_ms=0)
SAFE = Config(acks="all", linger_ms=0)


# --- single steps --------------------------------------------------------------------------------


def steps(
    *events: tuple[float, producer.Event], config: Config = SAFE
) -> tuple[producer.Producer, tuple[producer.Effect, ...]]:
    """The state after some events, and the effects of the last."""
    state, effects = producer.Producer(), ()
    for now_ms, event in events:
        state, effects = producer.step(state, now_ms, event, config)
    return state, effects


def test_an_error_at_the_delivery_timeout_is_the_one_that_is_told() -> None:
    """``Sender.canRetry``: at the limit the answer's own error goes to the application."""
    config = SAFE.changed(delivery_timeout_ms=1_000, request_timeout_ms=1_000)
    late = (1_000.0, producer.Answered(0, "NOT_ENOUGH_REPLICAS"))
    _, effects = steps((0.0, producer.Send(0)), late, config=config)
    assert effects == (producer.Tell(0, "NOT_ENOUGH_REPLICAS"),)


def test_retries_of_an_idempotent_producer_go_one_by_one() -> None:
    """``shouldStopDrainBatchesForPartition``: only the lowest sequence number may go again."""
    sends = [(0.0, producer.Send(record)) for record in range(3)]
    broken, again = (1.0, producer.Disconnected()), (101.0, producer.Wake())
    _, effects = steps(*sends, broken, again)
    assert effects == (producer.Transmit(3, 0, 0, 0),)
    _, effects = steps(*sends, broken, again, (102.0, producer.Answered(3)))
    assert effects == (producer.Tell(0, None), producer.Transmit(4, 1, 0, 1))
    _, effects = steps(*sends, broken, again, config=PLAIN)
    assert [effect.record for effect in effects] == [2, 1, 0]


# A batch with sequence number 1 was given up with its fate unknown; 2 is to be tried again.
UNRESOLVED = producer.Producer(
    queue=(Batch(2, 0.0, attempts=1, epoch=0, sequence=2), Batch(3, 0.0)),
    next_sequence=3,
    last_acked=0,
    unresolved=2,
)


def test_new_records_wait_while_a_fate_is_unknown() -> None:
    """``hasUnresolvedSequence``: what has a number goes, what has none waits for it."""
    state, effects = producer.step(UNRESOLVED, 200.0, producer.Wake(), SAFE)
    assert effects == (producer.Transmit(0, 2, 0, 2),)
    # The success of number 2 says that number 1 was written: go on without a gap.
    _, effects = producer.step(state, 201.0, producer.Answered(0), SAFE)
    assert effects == (producer.Tell(2, None), producer.Transmit(1, 3, 0, 3))


def test_a_gap_behind_an_unknown_fate_raises_the_epoch() -> None:
    """``isNextSequenceForUnresolvedPartition``: number 1 was not written, so 2 begins anew at 0."""
    state, _ = producer.step(UNRESOLVED, 200.0, producer.Wake(), SAFE)
    state, effects = producer.step(
        state, 201.0, producer.Answered(0, "OUT_OF_ORDER_SEQUENCE_NUMBER"), SAFE
    )
    assert effects == ()
    _, effects = producer.step(state, 401.0, producer.Wake(), SAFE)
    assert effects[0] == producer.Transmit(1, 2, 1, 0)


def test_when_all_in_flight_expired_the_epoch_is_raised() -> None:
    """``maybeResolveSequences``: nothing open, a number missing: the next record starts at 0."""
    config = SAFE.changed(delivery_timeout_ms=30_000, request_timeout_ms=30_000)
    got = deliver(config, 3, outage(35_000, 65_000), every_ms=35_000)
    assert got.refused == (1,)
    assert got.acknowledged == (0, 2)
    assert got.told[-1].at_ms == 70_001


def test_a_record_behind_one_that_expired_goes_at_once() -> None:
    """Its number no longer fits, so one answer and one backoff later it begins the next epoch."""
    config = SAFE.changed(delivery_timeout_ms=30_000, request_timeout_ms=30_000)
    got = deliver(config, 3, outage(20_000, 50_000), every_ms=20_000)
    assert got.refused == (1,)
    assert got.told[-1] == Told(2, None, 50_000 + 1 + 200 + 1)


def test_a_late_success_does_not_turn_the_acknowledged_number_back() -> None:
    """``maybeUpdateLastAckedSequence``: only upwards."""
    given_up = producer.Flight(7, 0.0, Batch(1, 0.0, epoch=0, sequence=1, done=True))
    state = producer.Producer(flying=(given_up,), next_sequence=5, last_acked=4)
    state, effects = producer.step(state, 1.0, producer.Answered(7), SAFE)
    assert (state.last_acked, effects) == (4, ())
