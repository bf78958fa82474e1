"""A scripted partition leader, which detects duplicate batches by their sequence numbers.

Sources: ``ProducerAppendInfo.checkSequence``, ``ProducerStateEntry``, ``UnifiedLog`` (KIP-98,
KAFKA-5494, KIP-360, KAFKA-15591), ``KafkaApis.handleProduceRequest``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from advisor.errors import InputError
from advisor.protocol.rules.isr import NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND

NETWORK_EXCEPTION = "NETWORK_EXCEPTION"
REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
OUT_OF_ORDER_SEQUENCE_NUMBER = "OUT_OF_ORDER_SEQUENCE_NUMBER"
INVALID_PRODUCER_EPOCH = "INVALID_PRODUCER_EPOCH"

NO_SEQUENCE = -1
NO_EPOCH = -1
# Of a producer, whose duplicates are detected.
_RETAINED_BATCHES = 5

ANSWER = "answer"
SILENCE = "silence"
DISCONNECT = "disconnect"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the leader does with one produce request.

    appended: the record is appended (unless its sequence number check fails).
    reply (one of "answer", "silence", "disconnect"): a response, no response (the broker hangs), or
        a closed connection.
    delay_ms: additional time until the reply.
    keep: if given, the leader fails with this reply and the next leader's log has only the first
        ``keep`` records.
    """

    appended: bool = True
    error: str | None = None
    reply: str = ANSWER
    delay_ms: float = 0.0
    keep: int | None = None

    def after(self, delay_ms: float) -> Answer:
        """The same answer with a delay."""
        return replace(self, delay_ms=delay_ms)


OK = Answer()
REFUSED = Answer(appended=False, error=NOT_ENOUGH_REPLICAS)
REFUSED_AFTER_APPEND = Answer(error=NOT_ENOUGH_REPLICAS_AFTER_APPEND)
NOT_LEADER = Answer(appended=False, error="NOT_LEADER_OR_FOLLOWER")
TIMED_OUT = Answer(error=REQUEST_TIMED_OUT)
TOO_LARGE = Answer(appended=False, error="MESSAGE_TOO_LARGE")
ANSWER_LOST = Answer(reply=DISCONNECT)
REQUEST_LOST = Answer(appended=False, reply=DISCONNECT)
SILENT = Answer(appended=False, reply=SILENCE)
SILENT_AFTER_APPEND = Answer(reply=SILENCE)

Script = Callable[[int, float], Answer]
"""(number of the request, from 0; time in ms) -> what the leader does with it."""


def in_turn(*answers: Answer) -> Script:
    """Script that gives these answers in order, then success."""

    def script(number: int, _now_ms: float) -> Answer:
        return answers[number] if number < len(answers) else OK

    return script


def outage(start_ms: float, end_ms: float, answer: Answer = NOT_LEADER) -> Script:
    """Script that gives ``answer`` from ``start_ms`` until before ``end_ms``, else success."""

    def script(_number: int, now_ms: float) -> Answer:
        return answer if start_ms <= now_ms < end_ms else OK

    return script


def fail_over(keep: int, answered: bool = False) -> Answer:
    """The leader appends and crashes; the log of the next one has the first ``keep`` records."""
    return Answer(reply=ANSWER if answered else DISCONNECT, keep=keep)


class Written(NamedTuple):
    """A record in the log, with its producer epoch and sequence number."""

    record: int
    epoch: int = NO_EPOCH
    sequence: int = NO_SEQUENCE


Writes = tuple[Written, ...]


class Verdict(NamedTuple):
    """Result of the sequence number check: whether to append, and the error if any."""

    append: bool
    error: str | None


def check_sequence(log: Writes, epoch: int, sequence: int) -> Verdict:
    """Check the sequence number of a request; a duplicate is a success without an append."""
    if sequence == NO_SEQUENCE:
        return Verdict(True, None)
    current = log[-1].epoch if log else NO_EPOCH
    if epoch < current:
        return Verdict(False, INVALID_PRODUCER_EPOCH)
    if epoch > current:
        # Without state for a producer any number is accepted (KIP-360), so that a request may
        # overtake a rejected first one (KAFKA-15591, open up to 4.4).
        fits = sequence == 0 or current == NO_EPOCH
        return Verdict(fits, None if fits else OUT_OF_ORDER_SEQUENCE_NUMBER)
    retained = log[-_RETAINED_BATCHES:]
    if sequence in [written.sequence for written in retained if written.epoch == epoch]:
        return Verdict(False, None)
    if sequence == log[-1].sequence + 1:
        return Verdict(True, None)
    return Verdict(False, OUT_OF_ORDER_SEQUENCE_NUMBER)


class Handled(NamedTuple):
    """Log after a request, and the reply to the producer."""

    log: Writes
    error: str | None
    reply: str


def handle(log: Writes, write: Written, answer: Answer, acks: str | int) -> Handled:
    """Process one request at the leader, as the script says."""
    if acks != "all" and answer.error in (NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND):
        raise InputError(
            f"{answer.error} in a script with acks={acks}: only acks=all looks at the ISR; "
            "use acks=all or another answer"
        )
    error, reply = answer.error, answer.reply
    if answer.appended:
        verdict = check_sequence(log, write.epoch, write.sequence)
        if verdict.append:
            log = (*log, write)
        error = verdict.error or error
    if answer.keep is not None:
        log = log[: answer.keep]
    if acks == 0:
        # There is no response to acks=0; on an error the leader closes the connection.
        reply = DISCONNECT if error is not None or reply == DISCONNECT else SILENCE
    return Handled(log, error, reply)
