"""The producer against a scripted leader: retries, time limits, duplicates, order, idempotence."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.protocol.clients import producer as producer
from advisor.protocol.clients.delivery import deliver
from advisor.protocol.clients.record_batch import Batch, backoff_ms, expires_ms
from advisor.protocol.clients.scripted_broker import (
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
    Memory,
    Verdict,
    Written,
    check_sequence,
    fail_over,
    in_turn,
    memory_of,
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
    assert [told.error for told in got.told] == ["NOT_ENOUGH_REPLICAS"]
    assert got.log == ()


@pytest.mark.parametrize(
    ("version", "first_ms", "most_ms", "waits"),
    [
        ("3.6", 100, None, [100, 100, 100, 100, 100, 100]),
        ("3.7", 100, 1000, [100, 200, 400, 800, 1000, 1000]),
        ("4.2", 50, 200, [50, 100, 200, 200, 200, 200]),
        ("4.2", 300, 300, [300] * 6),
        ("4.2", 1000, 300, [300] * 6),
        ("4.2", 0, 1000, [0] * 6),
    ],
)
def test_backoff_by_version(
    version: str, first_ms: int, most_ms: int | None, waits: list[float]
) -> None:
    """KIP-580: fixed before 3.7, doubling up to retry.backoff.max.ms since, which always caps."""
    config = Config(kafka_version=version, retry_backoff_ms=first_ms, retry_backoff_max_ms=most_ms)
    assert [backoff_ms(config, failures) for failures in range(1, 7)] == waits


def test_attempts_are_apart_by_round_trip_and_backoff() -> None:
    """The times of the attempts follow from linger, round trip and backoff alone."""
    times: list[float] = []

    def script(_number: int, now_ms: float) -> Answer:
        times.append(now_ms)
        return NOT_LEADER

    deliver(PLAIN.changed(linger_ms=5, retries=5), 1, script, round_trip_ms=10)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert times[0] == 5
    assert gaps == [110, 210, 410, 810, 1010]


def test_a_record_is_given_up_at_the_delivery_timeout() -> None:
    """KIP-91: created + delivery.timeout.ms, between two attempts, with a TimeoutException."""
    got = deliver(PLAIN, 1, outage(0, math.inf))
    assert [(told.error, told.at_ms) for told in got.told] == [("TimeoutException", 120_000)]


def test_a_record_on_the_wire_is_given_up_too_and_may_yet_be_written() -> None:
    """KIP-91: expiry strikes in flight; the leader that hangs has the record all the same."""
    config = PLAIN.changed(delivery_timeout_ms=30_000, request_timeout_ms=30_000)
    got = deliver(config, 1, in_turn(SILENT_AFTER_APPEND))
    assert got.refused == (0,)
    assert got.refused_but_written == (0,)
    assert got.told[0].at_ms == 30_000


def test_a_slow_leader_outlives_the_application_patience() -> None:
    """The answer that comes after the delivery timeout changes nothing for the application."""
    config = PLAIN.changed(delivery_timeout_ms=1_100, request_timeout_ms=1_000, retries=1)
    slow = in_turn(REQUEST_LOST.after(900), OK.after(500))
    got = deliver(config, 1, slow, round_trip_ms=1)
    assert [(told.error, told.at_ms) for told in got.told] == [("TimeoutException", 1_100)]
    assert got.log == (0,)


def test_no_delivery_timeout_before_2_1() -> None:
    """Before KIP-91 only the number of retries ends the attempts while a leader answers."""
    config = Config(kafka_version="2.0", acks="all", retries=2_000)
    got = deliver(config, 1, outage(0, 150_000, REFUSED), round_trip_ms=1)
    assert got.acknowledged == (0,)
    assert got.told[0].at_ms > 150_000


@pytest.mark.parametrize(
    ("version", "attempts", "flying", "expires"),
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
    version: str, attempts: int, flying: bool, expires: float
) -> None:
    """KIP-19's limit counts from the linger or the last backoff; KIP-91's from the creation."""
    config = Config(kafka_version=version, linger_ms=7)
    batch = Batch(0, 1_000, attempts=attempts, last_attempt_ms=2_000)
    assert expires_ms(batch, flying, config) == expires


def test_a_request_times_out_and_takes_the_connection_with_it() -> None:
    """After request.timeout.ms every request of the connection is answered REQUEST_TIMED_OUT."""
    state, _ = producer.step(producer.Producer(), 0, producer.Send(0), PLAIN)
    state, _ = producer.step(state, 10, producer.Send(1), PLAIN)
    assert producer.next_wake_ms(state, 10, PLAIN) == 30_000
    state, effects = producer.step(state, 30_000, producer.Wake(), PLAIN)
    assert effects == (producer.HangUp(),)
    assert state.flying == ()
    assert [batch.attempts for batch in state.queue] == [1, 1]


def test_a_final_error_is_not_tried_again() -> None:
    """MESSAGE_TOO_LARGE is not retriable: one request, and the application hears it."""
    got = deliver(PLAIN, 1, in_turn(TOO_LARGE))
    assert (got.requests, got.told[0].error, got.log) == (1, "MESSAGE_TOO_LARGE", ())


def test_a_record_lingers_unless_another_stands_behind_it() -> None:
    """linger.ms holds back a single record; a full batch leaves at once."""
    config = PLAIN.changed(linger_ms=50)
    assert deliver(config, 1).told[0].at_ms == 51
    assert [told.at_ms for told in deliver(config, 2).told] == [1, 51]


# --- acks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [REQUEST_LOST, NOT_LEADER, SILENT, TOO_LARGE])
def test_l10_acks_0_loses_silently(fault: Answer) -> None:
    """L10: whatever happens to the request, acks=0 says success and tries nothing again."""
    got = deliver(Config(acks=0), 1, in_turn(fault))
    assert got.acknowledged == (0,)
    assert got.lost == (0,)
    assert got.requests == 1


def test_l10_an_error_closes_the_connection_and_takes_what_is_behind() -> None:
    """``KafkaApis``: with acks=0 an error closes the connection; what was sent goes with it."""
    got = deliver(Config(acks=0, linger_ms=0), 4, in_turn(OK, NOT_LEADER), round_trip_ms=5)
    assert got.lost == (1, 2, 3)
    assert got.refused == ()


def test_acks_1_loses_what_the_next_leader_does_not_have() -> None:
    """L09: acknowledged by a leader that dies before its followers have fetched."""
    got = deliver(Config(acks=1), 3, in_turn(OK, OK, fail_over(keep=1, answered=True)))
    assert got.acknowledged == (0, 1, 2)
    assert got.lost == (1, 2)


def test_only_acks_all_can_be_refused_for_the_isr() -> None:
    """min.insync.replicas means nothing to acks=1: such a script is a mistake, and said to be."""
    with pytest.raises(InputError, match="only acks=all"):
        deliver(Config(acks=1), 1, in_turn(REFUSED))


# --- duplicates and order ------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [ANSWER_LOST, REFUSED_AFTER_APPEND, TIMED_OUT])
def test_l21_a_retry_after_an_append_is_a_duplicate(fault: Answer) -> None:
    """L21: appended, the answer lost, tried again: twice in the log without idempotence."""
    got = deliver(PLAIN, 1, in_turn(fault))
    assert got.log == (0, 0)
    assert got.duplicates == (0,)
    assert deliver(SAFE, 1, in_turn(fault)).log == (0,)


def test_l21_with_two_in_flight_a_retry_also_reorders() -> None:
    """L21: the second record is written while the first waits for its backoff."""
    got = deliver(in_flight(PLAIN, 2), 2, in_turn(REFUSED))
    assert got.log == (1, 0)
    assert got.reordered == (0,)


def test_a_broken_connection_turns_the_order_round() -> None:
    """``RecordAccumulator.reenqueue`` puts each at the front: the last in flight goes first."""
    got = deliver(in_flight(PLAIN, 5), 4, in_turn(REQUEST_LOST))
    assert got.log == (3, 2, 1, 0)
    assert got.duplicates == ()


def test_without_retries_a_record_is_written_at_most_once() -> None:
    """Exhaustive over all scripts of three faults: no duplicates, no disorder, some refused."""
    refused = 0
    for names in scripts(3):
        got = deliver(PLAIN.changed(retries=0), 3, in_turn(*(FAULTS[n] for n in names)))
        assert got.duplicates == ()
        assert got.reordered == ()
        refused += bool(got.refused)
    assert refused > len(scripts(3)) / 2


@pytest.mark.parametrize("names", scripts(2))
def test_one_in_flight_keeps_the_order_without_idempotence(names: tuple[str, ...]) -> None:
    """max.in.flight=1 mutes the partition: duplicates may come, disorder cannot."""
    got = deliver(in_flight(PLAIN, 1), 3, in_turn(*(FAULTS[n] for n in names)))
    assert got.reordered == ()
    assert set(got.log) == {0, 1, 2}


def test_five_in_flight_without_idempotence_do_reorder() -> None:
    """The counterpart: among the same scripts many break the order, so the test above can fail."""
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
    """Random faults and delays below the time limits: exactly once, in order."""
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
    """Told once each; acknowledged means written, even when time limits strike."""
    config = in_flight(SAFE if safe else PLAIN, requests).changed(delivery_timeout_ms=timeout_ms)
    got = deliver(config, 5, in_turn(*(FAULTS[name] for name in names)))
    assert sorted(told.record for told in got.told) == [0, 1, 2, 3, 4]
    assert got.lost == ()
    assert got.open == ()


def test_the_first_request_may_be_overtaken_since_2_5() -> None:
    """KAFKA-15591: a leader that knows nothing of a producer takes any first sequence number."""
    script = in_turn(NOT_LEADER)
    got = deliver(in_flight(SAFE, 2), 2, script)
    assert got.log == (1,)
    assert [(told.record, told.error) for told in got.told] == [
        (1, None),
        (0, "TimeoutException"),
    ]
    assert deliver(
        in_flight(SAFE.changed(kafka_version="2.4", acks="all", enable_idempotence=True), 2),
        2,
        script,
    ).log == (0, 1)
    assert deliver(in_flight(SAFE, 1), 2, script).log == (0, 1)


def test_a_final_error_behind_a_retry_can_duplicate_in_spite_of_idempotence() -> None:
    """KIP-360: the epoch bump renumbers what is still open, and the leader cannot know it again."""
    script = in_turn(OK, REFUSED_AFTER_APPEND, TOO_LARGE)
    got = deliver(SAFE, 4, script)
    assert got.refused == (2,)
    assert got.duplicates == (1,)
    assert deliver(in_flight(SAFE, 1), 4, script).duplicates == ()


def test_sending_a_refused_record_again_is_the_applications_own_duplicate() -> None:
    """Idempotence covers the producer's retries, not a second ``send`` of the same content."""
    config = SAFE.changed(delivery_timeout_ms=30_000, request_timeout_ms=30_000)
    got = deliver(config, 2, in_turn(SILENT_AFTER_APPEND), wait_for_each=True)
    assert got.refused == (0,)
    assert got.log == (0, 1)


def test_sequence_numbers_go_on_after_an_expired_record_that_was_written() -> None:
    """``maybeResolveSequences``: later records wait, then go on without a gap or a new epoch."""
    config = SAFE.changed(delivery_timeout_ms=31_000, request_timeout_ms=30_000)
    got = deliver(config, 3, in_turn(OK, SILENT_AFTER_APPEND, SILENT), every_ms=20_000)
    assert got.duplicates == ()
    assert set(got.acknowledged) <= set(got.log)
    assert got.open == ()


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
def test_what_a_leader_thinks_of_a_sequence_number(
    log: tuple[Written, ...], epoch: int, sequence: int, verdict: Verdict
) -> None:
    """``ProducerAppendInfo.checkSequence`` with the last five batches known again."""
    assert check_sequence(log, epoch, sequence, memory_of("4.2")) == verdict


def test_what_leaders_remember_by_version() -> None:
    """One batch in 0.11, five since 1.0 (KAFKA-5494); any first number since 2.5 (KIP-360)."""
    assert memory_of("0.11") == Memory(1, False)
    assert memory_of("1.0") == Memory(5, False)
    assert memory_of("2.5") == Memory(5, True)
    assert check_sequence(LOG, 0, 5, memory_of("0.11")).error == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert check_sequence((), 0, 5, memory_of("2.4")).error == "OUT_OF_ORDER_SEQUENCE_NUMBER"
