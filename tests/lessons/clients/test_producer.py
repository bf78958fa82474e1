"""The producer against a scripted leader: retries, timeouts, duplicates, order, idempotence."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.lessons.clients import producer as producer
from advisor.lessons.clients.delivery import deliver
from advisor.lessons.clients.producer import Batch, expires_ms
from advisor.lessons.clients.scripted_broker import (
    ANSWER_LOST,
    NOT_LEADER,
    OK,
    REFUSED,
    REFUSED_AFTER_APPEND,
    REQUEST_LOST,
    SILENT,
    SILENT_AFTER_APPEND,
    TIMED_OUT,
    TOO_LARGE,
    Answer,
    Verdict,
    Written,
    check_sequence,
    fail_over,
    in_turn,
    outage,
)
from advisor.protocol.rules.config import Config

FAULTS = {
    "ok": OK,
    "answer lost": ANSWER_LOST,
    "request lost": REQUEST_LOST,
    "refused": REFUSED,
    "refused after append": REFUSED_AFTER_APPEND,
    "not leader": NOT_LEADER,
    "silent": SILENT,
    "silent after append": SILENT_AFTER_APPEND,
    "timed out": TIMED_OUT,
}
PLAIN = Config(acks="all", enable_idempotence=False, linger_ms=0)
SAFE = Config(acks="all", linger_ms=0)


def scripts(faults: int) -> list[tuple[str, ...]]:
    return list(itertools.product(FAULTS, repeat=faults))


def in_flight(config: Config, requests: int) -> Config:
    return config.changed(max_in_flight_requests_per_connection=requests)


# --- retries and time limits ---------------------------------------------------------------------


@pytest.mark.parametrize("retries", [0, 1, 2, 5])
def test_a_record_is_sent_retries_plus_one_times(retries: int) -> None:
    """``Sender.canRetry``: attempts < retries; the last error reaches the application."""
    got = deliver(PLAIN.changed(retries=retries), 1, outage(0, math.inf, REFUSED))
    assert got.requests == retries + 1
    assert [outcome.error for outcome in got.outcomes] == ["NOT_ENOUGH_REPLICAS"]
    assert got.log == ()


def test_attempts_are_apart_by_round_trip_and_backoff() -> None:
    """Attempt times follow from linger, round trip and backoff."""
    times: list[float] = []

    def script(_number: int, now_ms: float) -> Answer:
        times.append(now_ms)
        return NOT_LEADER

    deliver(PLAIN.changed(linger_ms=5, retries=5), 1, script, round_trip_ms=10)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert times[0] == 5
    assert gaps == [110, 210, 410, 810, 1010]


def test_a_record_expires_at_the_delivery_timeout() -> None:
    """KIP-91: TimeoutException at created + delivery.timeout.ms, between two attempts."""
    got = deliver(PLAIN, 1, outage(0, math.inf))
    assert [(outcome.error, outcome.at_ms) for outcome in got.outcomes] == [
        ("TimeoutException", 120_000)
    ]


def test_a_record_in_flight_expires_too_and_may_be_appended() -> None:
    """KIP-91: records expire in flight; the hanging leader has appended the record."""
    config = PLAIN.changed(delivery_timeout_ms=30_000, request_timeout_ms=30_000)
    got = deliver(config, 1, in_turn(SILENT_AFTER_APPEND))
    assert got.refused == (0,)
    assert got.log == (0,)
    assert got.outcomes[0].at_ms == 30_000


def test_a_response_after_the_delivery_timeout_is_ignored() -> None:
    """A response after the delivery timeout changes nothing for the application."""
    config = PLAIN.changed(delivery_timeout_ms=1_100, request_timeout_ms=1_000, retries=1)
    slow = in_turn(REQUEST_LOST.after(900), OK.after(500))
    got = deliver(config, 1, slow, round_trip_ms=1)
    assert [(outcome.error, outcome.at_ms) for outcome in got.outcomes] == [
        ("TimeoutException", 1_100)
    ]
    assert got.log == (0,)


def test_no_delivery_timeout_before_2_1() -> None:
    """Before KIP-91 only the number of retries limits the attempts."""
    config = Config(kafka_version="2.0", acks="all", retries=2_000)
    got = deliver(config, 1, outage(0, 150_000, REFUSED), round_trip_ms=1)
    assert got.acknowledged == (0,)
    assert got.outcomes[0].at_ms > 150_000


@pytest.mark.parametrize(
    ("version", "attempts", "is_in_flight", "expires"),
    [
        ("0.8.2", 0, False, math.inf),
        ("2.0", 0, False, 1_000 + 7 + 30_000),
        ("2.0", 1, False, 2_000 + 100 + 30_000),
        ("2.0", 1, True, math.inf),
        ("2.1", 0, False, 121_000),
        ("2.1", 3, True, 121_000),
    ],
)
def test_when_a_record_expires_by_version(
    version: str, attempts: int, is_in_flight: bool, expires: float
) -> None:
    """KIP-19 counts from the linger or the last backoff, KIP-91 from the creation."""
    config = Config(kafka_version=version, linger_ms=7)
    batch = Batch(0, 1_000, attempts=attempts, last_attempt_ms=2_000)
    assert expires_ms(batch, is_in_flight, config) == expires


def test_a_request_timeout_closes_the_connection() -> None:
    """After request.timeout.ms every request of the connection fails with REQUEST_TIMED_OUT."""
    state, _ = producer.step(producer.Producer(), 0, producer.Send(0), PLAIN)
    state, _ = producer.step(state, 10, producer.Send(1), PLAIN)
    assert producer.next_wake_ms(state, 10, PLAIN) == 30_000
    state, effects = producer.step(state, 30_000, producer.Wake(), PLAIN)
    assert effects == (producer.CloseConnection(),)
    assert state.in_flight == ()
    assert [batch.attempts for batch in state.queue] == [1, 1]


def test_a_final_error_is_not_retried() -> None:
    """MESSAGE_TOO_LARGE is not retriable: one request, then an error."""
    got = deliver(PLAIN, 1, in_turn(TOO_LARGE))
    assert (got.requests, got.outcomes[0].error, got.log) == (1, "MESSAGE_TOO_LARGE", ())


def test_a_record_lingers_unless_another_follows() -> None:
    """linger.ms delays a single record; a full batch is sent at once."""
    config = PLAIN.changed(linger_ms=50)
    assert deliver(config, 1).outcomes[0].at_ms == 51
    assert [outcome.at_ms for outcome in deliver(config, 2).outcomes] == [1, 51]


# --- acks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [REQUEST_LOST, NOT_LEADER, SILENT, TOO_LARGE])
def test_l10_acks_0_loses_silently(fault: Answer) -> None:
    """L10: acks=0 reports success and never retries, whatever happens to the request."""
    got = deliver(Config(acks=0), 1, in_turn(fault))
    assert got.acknowledged == (0,)
    assert got.lost == (0,)
    assert got.requests == 1


def test_l10_an_error_closes_the_connection_and_drops_later_requests() -> None:
    """``KafkaApis``: with acks=0 an error closes the connection; requests behind it are lost."""
    got = deliver(Config(acks=0, linger_ms=0), 4, in_turn(OK, NOT_LEADER), round_trip_ms=5)
    assert got.lost == (1, 2, 3)
    assert got.refused == ()


def test_acks_1_loses_what_the_next_leader_does_not_have() -> None:
    """L09: acknowledged by a leader that crashes before its followers have fetched."""
    got = deliver(Config(acks=1), 3, in_turn(OK, OK, fail_over(keep=1, answered=True)))
    assert got.acknowledged == (0, 1, 2)
    assert got.lost == (1, 2)


def test_only_acks_all_checks_the_isr() -> None:
    """min.insync.replicas does not affect acks=1: such a script is an error."""
    with pytest.raises(InputError, match="only acks=all"):
        deliver(Config(acks=1), 1, in_turn(REFUSED))


# --- duplicates and order ------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [ANSWER_LOST, REFUSED_AFTER_APPEND, TIMED_OUT])
def test_l21_a_retry_after_an_append_is_a_duplicate(fault: Answer) -> None:
    """L21: appended, response lost, retried: twice in the log without idempotence."""
    got = deliver(PLAIN, 1, in_turn(fault))
    assert got.log == (0, 0)
    assert got.duplicates == (0,)
    assert deliver(SAFE, 1, in_turn(fault)).log == (0,)


def test_l21_with_two_in_flight_a_retry_also_reorders() -> None:
    """L21: the second record is written while the first waits for its backoff."""
    got = deliver(in_flight(PLAIN, 2), 2, in_turn(REFUSED))
    assert got.log == (1, 0)
    assert got.reordered == (0,)


def test_a_broken_connection_reverses_the_order() -> None:
    """``RecordAccumulator.reenqueue`` puts each batch at the front: the last one goes first."""
    got = deliver(in_flight(PLAIN, 5), 4, in_turn(REQUEST_LOST))
    assert got.log == (3, 2, 1, 0)
    assert got.duplicates == ()


def test_without_retries_a_record_is_written_at_most_once() -> None:
    """Exhaustive over all scripts of three faults: no duplicates, no reordering, some failures."""
    refused = 0
    for names in scripts(3):
        got = deliver(PLAIN.changed(retries=0), 3, in_turn(*(FAULTS[n] for n in names)))
        assert got.duplicates == ()
        assert got.reordered == ()
        refused += bool(got.refused)
    assert refused > len(scripts(3)) / 2


@pytest.mark.parametrize("names", scripts(2))
def test_one_in_flight_keeps_the_order_without_idempotence(names: tuple[str, ...]) -> None:
    """max.in.flight=1 mutes the partition: duplicates may occur, reordering cannot."""
    got = deliver(in_flight(PLAIN, 1), 3, in_turn(*(FAULTS[n] for n in names)))
    assert got.reordered == ()
    assert set(got.log) == {0, 1, 2}


def test_five_in_flight_without_idempotence_do_reorder() -> None:
    """Many of the same scripts reorder records with five in flight."""
    broken = [
        names
        for names in scripts(2)
        if deliver(in_flight(PLAIN, 5), 3, in_turn(*(FAULTS[n] for n in names))).reordered
    ]
    assert len(broken) > 20


# --- idempotence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("requests", [1, 2, 5])
def test_idempotence_writes_each_record_once_and_in_order(requests: int) -> None:
    """Exhaustive over scripts of three retriable faults after a first success (KIP-98)."""
    config = in_flight(SAFE, requests)
    for names in scripts(3):
        got = deliver(config, 5, in_turn(OK, *(FAULTS[n] for n in names)))
        assert got.log == (0, 1, 2, 3, 4), names
        assert sorted(got.acknowledged) == [0, 1, 2, 3, 4], names


@given(
    names=st.lists(st.sampled_from(sorted(FAULTS)), max_size=8),
    delays=st.lists(st.floats(0, 5_000), min_size=8, max_size=8),
    requests=st.integers(1, 5),
    every_ms=st.floats(0, 3_000),
)
def test_idempotence_holds_whatever_the_timing(
    names: list[str], delays: list[float], requests: int, every_ms: float
) -> None:
    """Random faults and delays below the timeouts: exactly once, in order."""
    faults = [FAULTS[name].after(ms) for name, ms in zip(names, delays, strict=False)]
    config = in_flight(SAFE, requests).changed(delivery_timeout_ms=2**31 - 1)
    got = deliver(config, 6, in_turn(OK, *faults), every_ms=every_ms)
    assert got.log == (0, 1, 2, 3, 4, 5)
    assert sorted(got.acknowledged) == [0, 1, 2, 3, 4, 5]


@given(
    names=st.lists(st.sampled_from(sorted(FAULTS)), max_size=8),
    safe=st.booleans(),
    requests=st.integers(1, 5),
    timeout_ms=st.sampled_from([30_000, 45_000, 120_000]),
)
def test_nothing_acknowledged_is_lost_while_the_leader_lives(
    names: list[str], safe: bool, requests: int, timeout_ms: int
) -> None:
    """One outcome for each record; acknowledged means appended, timeouts included."""
    config = in_flight(SAFE if safe else PLAIN, requests).changed(delivery_timeout_ms=timeout_ms)
    got = deliver(config, 5, in_turn(*(FAULTS[name] for name in names)))
    assert sorted(outcome.record for outcome in got.outcomes) == [0, 1, 2, 3, 4]
    assert got.lost == ()


def test_the_first_request_may_be_overtaken() -> None:
    """KAFKA-15591: a leader without producer state accepts any first sequence number."""
    script = in_turn(NOT_LEADER)
    got = deliver(in_flight(SAFE, 2), 2, script)
    assert got.log == (1,)
    assert [(outcome.record, outcome.error) for outcome in got.outcomes] == [
        (1, None),
        (0, "TimeoutException"),
    ]
    assert deliver(in_flight(SAFE, 1), 2, script).log == (0, 1)


def test_a_final_error_behind_a_retry_can_duplicate_in_spite_of_idempotence() -> None:
    """KIP-360: an epoch bump renumbers unfinished batches, so duplicates are not detected."""
    script = in_turn(OK, REFUSED_AFTER_APPEND, TOO_LARGE)
    got = deliver(SAFE, 4, script)
    assert got.refused == (2,)
    assert got.duplicates == (1,)
    assert deliver(in_flight(SAFE, 1), 4, script).duplicates == ()


def test_sequence_numbers_go_on_after_an_expired_record_that_was_written() -> None:
    """``maybeResolveSequences``: later records wait, then continue without a gap or a new epoch."""
    config = SAFE.changed(delivery_timeout_ms=31_000, request_timeout_ms=30_000)
    got = deliver(config, 3, in_turn(OK, SILENT_AFTER_APPEND, SILENT), every_ms=20_000)
    assert got.duplicates == ()
    assert set(got.acknowledged) <= set(got.log)
    assert len(got.outcomes) == 3


LOG = tuple(Written(n, 0, n) for n in range(7))


@pytest.mark.parametrize(
    ("log", "epoch", "sequence", "verdict"),
    [
        ((), 0, 0, Verdict(True, None)),
        ((), 0, 5, Verdict(True, None)),
        (LOG, 0, 7, Verdict(True, None)),
        (LOG, 0, 6, Verdict(False, None)),
        (LOG, 0, 2, Verdict(False, None)),
        (LOG, 0, 1, Verdict(False, "OUT_OF_ORDER_SEQUENCE_NUMBER")),
        (LOG, 0, 8, Verdict(False, "OUT_OF_ORDER_SEQUENCE_NUMBER")),
        (LOG, 1, 0, Verdict(True, None)),
        (LOG, 1, 1, Verdict(False, "OUT_OF_ORDER_SEQUENCE_NUMBER")),
        (LOG, -1, -1, Verdict(True, None)),
        ((*LOG, Written(7, 1, 0)), 0, 7, Verdict(False, "INVALID_PRODUCER_EPOCH")),
        ((*LOG, Written(7, 1, 0)), 1, 6, Verdict(False, "OUT_OF_ORDER_SEQUENCE_NUMBER")),
    ],
)
def test_sequence_number_check(
    log: tuple[Written, ...], epoch: int, sequence: int, verdict: Verdict
) -> None:
    """``ProducerAppendInfo.checkSequence`` with the last five batches retained."""
    assert check_sequence(log, epoch, sequence) == verdict
