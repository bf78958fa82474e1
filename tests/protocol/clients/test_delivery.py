"""How an application sends: waiting for each record or not, today and with 0.8."""

import math
from collections.abc import Callable

import pytest

from advisor.errors import InputError
from advisor.protocol.clients.delivery import deliver
from advisor.protocol.clients.scala_producer import deliver_scala
from advisor.protocol.clients.scripted_broker import (
    ANSWER_LOST,
    OK,
    REFUSED,
    REQUEST_LOST,
    SILENT,
    in_turn,
    outage,
)
from advisor.protocol.rules.config import Config

PLAIN = Config(acks="all", enable_idempotence=False, linger_ms=0)
SAFE = Config(acks="all", linger_ms=0)


# --- how the application sends -------------------------------------------------------------------


def test_waiting_for_each_record_keeps_order_and_can_stop() -> None:
    """``send().get()``: one record at a time; an application that stops holds the rest back."""
    config = PLAIN.changed(retries=0)
    stopped = deliver(config, 4, in_turn(OK, REFUSED), wait_for_each=True, stop_at_error=True)
    assert (stopped.sent, stopped.log, stopped.refused) == ((0, 1), (0,), (1,))
    gone_on = deliver(config, 4, in_turn(OK, REFUSED), wait_for_each=True)
    assert gone_on.log == (0, 2, 3)


def test_0_8_sync_raises_after_three_retries() -> None:
    """1 + message.send.max.retries attempts, then an exception; stop or go on."""
    dead = outage(0, math.inf, REQUEST_LOST)
    stopped = deliver_scala(3, dead, acks=1, stop_at_error=True)
    assert (stopped.requests, stopped.raised, stopped.unsent) == (4, (0,), (1, 2))
    assert stopped.took_ms == 4 * (1 + 100)
    gone_on = deliver_scala(3, dead, acks=1)
    assert (gone_on.requests, gone_on.raised, gone_on.unsent) == (12, (0, 1, 2), ())
    assert gone_on.missing_unnoticed(3) == ()


def test_0_8_async_logs_and_goes_on() -> None:
    """The asynchronous producer loses, and only its log file says so."""
    dead_at_first = outage(0, 500, REQUEST_LOST)
    got = deliver_scala(5, dead_at_first, mode="async", acks=1)
    assert got.raised == ()
    assert got.logged == got.missing_unnoticed(5) == (0,)
    assert got.log == (1, 2, 3, 4)


def test_0_8_sync_rides_out_a_short_outage() -> None:
    """Three retries, 100 ms apart, cover an outage of 300 ms and not one of 310."""
    assert deliver_scala(1, outage(0, 300), acks=1).log == (0,)
    assert deliver_scala(1, outage(0, 310), acks=1).raised == (0,)


def test_0_8_acks_0_was_the_default_and_sees_nothing() -> None:
    """request.required.acks=0: even the synchronous producer never hears of a dead broker."""
    got = deliver_scala(2, outage(0, math.inf, REQUEST_LOST))
    assert got.missing_unnoticed(2) == (0, 1)
    assert got.requests == 2


def test_0_8_retries_make_duplicates() -> None:
    """No sequence numbers in 0.8: a lost answer is a second copy."""
    assert deliver_scala(2, in_turn(ANSWER_LOST), acks=1).log == (0, 0, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: deliver(PLAIN, -1),
        lambda: deliver(PLAIN, 1, round_trip_ms=0),
        lambda: deliver(PLAIN, 1, every_ms=math.nan),
        lambda: deliver(PLAIN, 1, until_ms=math.inf),
        lambda: deliver_scala(-1),
        lambda: deliver_scala(1, mode="both"),
    ],
)
def test_senseless_arguments_are_refused(call: Callable[[], object]) -> None:
    """Negative counts, timeless round trips and unknown modes are errors that say so."""
    with pytest.raises(InputError):
        call()


def test_the_same_input_gives_the_same_outcome() -> None:
    """Nothing is drawn at random: two runs are equal to the last field."""
    script = in_turn(REFUSED, ANSWER_LOST, SILENT)
    assert deliver(SAFE, 5, script) == deliver(SAFE, 5, script)
