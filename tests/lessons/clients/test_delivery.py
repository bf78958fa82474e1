"""Synchronous and asynchronous sending, with the Java producer and with 0.8's."""

import math
from collections.abc import Callable

import pytest

from advisor.errors import InputError
from advisor.lessons.clients.delivery import deliver
from advisor.lessons.clients.scala_producer import deliver_scala
from advisor.lessons.clients.scripted_broker import (
    ANSWER_LOST,
    REFUSED,
    REQUEST_LOST,
    SILENT,
    in_turn,
    outage,
)
from advisor.protocol.rules.config import Config

PLAIN = Config(acks="all", enable_idempotence=False, linger_ms=0)
SAFE = Config(acks="all", linger_ms=0)


def test_0_8_sync_raises_after_three_retries() -> None:
    """1 + message.send.max.retries attempts, then an exception; stop or continue."""
    dead = outage(0, math.inf, REQUEST_LOST)
    stopped = deliver_scala(3, dead, acks=1, stop_at_error=True)
    assert (stopped.requests, stopped.raised, stopped.unsent) == (4, (0,), (1, 2))
    assert stopped.took_ms == 4 * (1 + 100)
    continued = deliver_scala(3, dead, acks=1)
    assert (continued.requests, continued.raised, continued.unsent) == (12, (0, 1, 2), ())
    assert continued.missing_unnoticed(3) == ()


def test_0_8_async_logs_and_continues() -> None:
    """The asynchronous producer loses messages with only a line in its own log."""
    dead_at_first = outage(0, 500, REQUEST_LOST)
    got = deliver_scala(5, dead_at_first, mode="async", acks=1)
    assert got.raised == ()
    assert got.logged == got.missing_unnoticed(5) == (0,)
    assert got.log == (1, 2, 3, 4)


def test_0_8_sync_rides_out_a_short_outage() -> None:
    """Three retries, 100 ms apart, cover an outage of 300 ms but not one of 310 ms."""
    assert deliver_scala(1, outage(0, 300), acks=1).log == (0,)
    assert deliver_scala(1, outage(0, 310), acks=1).raised == (0,)


def test_0_8_acks_0_was_the_default_and_sees_nothing() -> None:
    """request.required.acks=0: even the synchronous producer does not notice a dead broker."""
    got = deliver_scala(2, outage(0, math.inf, REQUEST_LOST))
    assert got.missing_unnoticed(2) == (0, 1)
    assert got.requests == 2


def test_0_8_retries_make_duplicates() -> None:
    """No sequence numbers in 0.8: after a lost response the retry is a duplicate."""
    assert deliver_scala(2, in_turn(ANSWER_LOST), acks=1).log == (0, 0, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: deliver(PLAIN, -1),
        lambda: deliver(PLAIN, 1, round_trip_ms=0),
        lambda: deliver(PLAIN, 1, every_ms=math.nan),
        lambda: deliver_scala(-1),
        lambda: deliver_scala(1, mode="both"),
    ],
)
def test_invalid_arguments_are_rejected(call: Callable[[], object]) -> None:
    """Negative counts, round trips of zero and unknown modes are errors."""
    with pytest.raises(InputError):
        call()


def test_the_same_input_gives_the_same_outcome() -> None:
    """Two runs with the same input are equal."""
    script = in_turn(REFUSED, ANSWER_LOST, SILENT)
    assert deliver(SAFE, 5, script) == deliver(SAFE, 5, script)
