"""A partition's leader as a producer meets it: it does as a script says, and keeps a log.

One producer, one partition, one connection. The leader reads the next request of a connection only
after it has answered the one before (``SocketServer`` mutes the channel), and it knows a batch
again by its sequence number.

Sources: ``ProducerAppendInfo.checkSequence``, ``ProducerStateEntry``, ``UnifiedLog`` (KIP-98,
KAFKA-5494, KIP-360, KAFKA-15591), ``KafkaApis.handleProduceRequest``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from advisor.errors import InputError
from advisor.protocol.rules.isr import NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND
from advisor.protocol.rules.versions import parse_version

NETWORK_EXCEPTION = "NETWORK_EXCEPTION"
REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
OUT_OF_ORDER_SEQUENCE_NUMBER = "OUT_OF_ORDER_SEQUENCE_NUMBER"
INVALID_PRODUCER_EPOCH = "INVALID_PRODUCER_EPOCH"

NO_SEQUENCE = -1
NO_EPOCH = -1

ANSWER = "answer"
SILENCE = "silence"
DISCONNECT = "disconnect"


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of one produce request.

    Attributes
    ----------
    appended : bool
        The record goes into the log (unless its sequence number forbids it).
    error : str or None
        Kafka's name of the error that is sent back; None is success.
    reply : {"answer", "silence", "disconnect"}
        Silence is a broker that hangs; a disconnect reaches the producer instead of the answer.
    delay_ms : float
        From reading the request to the reply.
    keep : int or None
        The leader fails with this reply; the next leader's log has only so many records.
    """

    appended: bool = True
    error: str | None = None
    reply: str = ANSWER
    delay_ms: float = 0.0
    keep: int | None = None

    def after(self, delay_ms: float) -> Answer:
        """The same, later."""
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
"""What happens to the n-th request that the leader reads (from 0), at a time in ms."""


def in_turn(*answers: Answer) -> Script:
    """These answers one after the other, then success for ever."""

    def script(number: int, _now_ms: float) -> Answer:
        return answers[number] if number < len(answers) else OK

    return script


def outage(start_ms: float, end_ms: float, answer: Answer = NOT_LEADER) -> Script:
    """The same answer to every request from ``start_ms`` until just before ``end_ms``."""

    def script(_number: int, now_ms: float) -> Answer:
        return answer if start_ms <= now_ms < end_ms else OK

    return script


def fail_over(keep: int, answered: bool = False) -> Answer:
    """The leader appends and dies; the next leader's log has only the first ``keep`` records.

    With ``answered`` the success went out before it died: what acks=1 allows.
    """
    return Answer(reply=ANSWER if answered else DISCONNECT, keep=keep)


class Written(NamedTuple):
    """A record in the log with the producer epoch and sequence number it came with."""

    record: int
    epoch: int = NO_EPOCH
    sequence: int = NO_SEQUENCE


Writes = tuple[Written, ...]


class Memory(NamedTuple):
    """How a leader checks sequence numbers.

    Attributes
    ----------
    retained : int
        Batches of a producer that are known again: five since 1.0, one in 0.11.
    any_first : bool
        A leader that knows nothing of a producer takes whatever number comes first (KIP-360, 2.5;
        so a refused first request may be overtaken: KAFKA-15591, open up to 4.4).
    """

    retained: int
    any_first: bool


def memory_of(kafka_version: str) -> Memory:
    """The checks of one version."""
    version = parse_version(kafka_version)
    return Memory(retained=5 if version >= (1, 0) else 1, any_first=version >= (2, 5))


class Verdict(NamedTuple):
    """Whether a request goes into the log, and the error that its sequence number earns."""

    append: bool
    error: str | None


def check_sequence(log: Writes, epoch: int, sequence: int, memory: Memory) -> Verdict:
    """What the leader thinks of a sequence number.

    Parameters
    ----------
    log : tuple of Written
        What this producer has written; the leader's memory of it can be rebuilt from the log.
    epoch, sequence : int
        Of the request; ``NO_SEQUENCE`` without idempotence.
    memory : Memory

    Returns
    -------
    Verdict
        A batch that is known again is a success without an append.
    """
    if sequence == NO_SEQUENCE:
        return Verdict(True, None)
    current = log[-1].epoch if log else NO_EPOCH
    if epoch < current:
        return Verdict(False, INVALID_PRODUCER_EPOCH)
    if epoch > current:
        fits = sequence == 0 or (current == NO_EPOCH and memory.any_first)
        return Verdict(fits, None if fits else OUT_OF_ORDER_SEQUENCE_NUMBER)
    known = [written.sequence for written in log[-memory.retained :] if written.epoch == epoch]
    if sequence in known:
        return Verdict(False, None)
    if sequence == log[-1].sequence + 1:
        return Verdict(True, None)
    return Verdict(False, OUT_OF_ORDER_SEQUENCE_NUMBER)


class Handled(NamedTuple):
    """The log after one request, and what goes back to the producer."""

    log: Writes
    error: str | None
    reply: str


def handle(log: Writes, write: Written, answer: Answer, acks: str | int, memory: Memory) -> Handled:
    """One request at the leader.

    Raises
    ------
    InputError
        If a script refuses acks=1 or acks=0 for want of in-sync replicas: Kafka never does.
    """
    if acks != "all" and answer.error in (NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND):
        raise InputError(
            f"{answer.error} in a script with acks={acks}: only acks=all looks at the ISR; "
            "use acks=all or another answer"
        )
    error, reply = answer.error, answer.reply
    if answer.appended:
        verdict = check_sequence(log, write.epoch, write.sequence, memory)
        if verdict.append:
            log = (*log, write)
        error = verdict.error or error
    if answer.keep is not None:
        log = log[: answer.keep]
    if acks == 0:
        # Nobody waits for an answer. An error shows as a closed connection, nothing else.
        reply = DISCONNECT if error is not None or reply == DISCONNECT else SILENCE
    return Handled(log, error, reply)
