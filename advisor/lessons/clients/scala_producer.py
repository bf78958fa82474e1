"""The Scala producer of 0.8: synchronous, or asynchronous without a callback for failures.

Each ``send`` is attempted ``1 + message.send.max.retries`` times, ``retry.backoff.ms`` apart. Then
the synchronous producer throws ``FailedToSendMessageException``; the asynchronous one logs the
error and continues with the next messages.

Sources: ``kafka.producer.async.DefaultEventHandler``, ``ProducerSendThread`` (0.8.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from advisor.errors import InputError
from advisor.lessons.clients.scripted_broker import (
    SILENCE,
    Script,
    Writes,
    Written,
    handle,
    in_turn,
)

RETRIES = 3
BACKOFF_MS = 100.0
REQUEST_TIMEOUT_MS = 10_000.0


@dataclass(frozen=True, slots=True)
class ScalaDelivery:
    """Outcome of every message sent with the 0.8 producer.

    raised: messages whose ``send`` threw an exception.
    logged: messages that failed with only a line in the producer's own log.
    unsent: messages that the application did not send after an error.
    """

    raised: tuple[int, ...]
    logged: tuple[int, ...]
    unsent: tuple[int, ...]
    log: tuple[int, ...]
    requests: int
    took_ms: float

    def missing_unnoticed(self, messages: int) -> tuple[int, ...]:
        """Messages missing from the log without an error to the application."""
        accounted = {*self.raised, *self.unsent, *self.log}
        return tuple(message for message in range(messages) if message not in accounted)


def deliver_scala(
    messages: int,
    script: Script | None = None,
    *,
    mode: Literal["sync", "async"] = "sync",
    acks: str | int = 0,
    retries: int = RETRIES,
    stop_at_error: bool = False,
    round_trip_ms: float = 1.0,
) -> ScalaDelivery:
    """Send messages 0, 1, ... with ``message.send.max.retries`` as Scala's producer of 0.8 did.

    acks (one of 0, 1, "all"): with 0, the default of 0.8, no error is ever reported.
    stop_at_error: with ``mode="sync"``: stop after an exception, or continue with the next message.
    """
    if mode not in ("sync", "async"):
        raise InputError(f"mode={mode!r} is not a producer.type; write 'sync' or 'async'")
    if messages < 0 or retries < 0:
        raise InputError(f"messages={messages} and retries={retries} must not be negative")
    answers = script or in_turn()
    log: Writes = ()
    now_ms, requests = 0.0, 0
    failed: list[int] = []
    unsent: tuple[int, ...] = ()
    for message in range(messages):
        for _ in range(retries + 1):
            answer = answers(requests, now_ms)
            handled = handle(log, Written(message), answer, acks)
            log, requests = handled.log, requests + 1
            hangs = handled.reply == SILENCE and acks != 0
            now_ms += REQUEST_TIMEOUT_MS if hangs else round_trip_ms + answer.delay_ms
            # With acks=0 the producer reads no response, so it sees no error.
            if acks == 0 or (handled.error is None and handled.reply == "answer"):
                break
            now_ms += BACKOFF_MS
        else:
            failed.append(message)
            if mode == "sync" and stop_at_error:
                unsent = tuple(range(message + 1, messages))
                break
    return ScalaDelivery(
        raised=tuple(failed) if mode == "sync" else (),
        logged=tuple(failed) if mode == "async" else (),
        unsent=unsent,
        log=tuple(written.record for written in log),
        requests=requests,
        took_ms=now_ms,
    )
