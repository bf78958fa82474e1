"""What becomes of the records that an application sends: told, written, lost, twice, out of order.

Drives the producer against a scripted leader in virtual time. A request is read as soon as it is
sent and the leader is free; what the network takes is part of the round trip.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.errors import InputError
from advisor.protocol.clients import producer as producer
from advisor.protocol.clients.scripted_broker import (
    ANSWER,
    DISCONNECT,
    SILENCE,
    Script,
    Writes,
    Written,
    handle,
    in_turn,
    memory_of,
)
from advisor.protocol.rules.config import Config


@dataclass(frozen=True, slots=True)
class Told:
    """What the application heard about a record; no error is a success."""

    record: int
    error: str | None
    at_ms: float


@dataclass(frozen=True, slots=True)
class Delivery:
    """The outcome of a run.

    Attributes
    ----------
    sent : tuple of int
        The records that the application handed over, in order.
    told : tuple of Told
        In the order in which it heard.
    log : tuple of int
        Records by offset, in the log that consumers will read.
    requests : int
        Produce requests on the wire.
    """

    sent: tuple[int, ...]
    told: tuple[Told, ...]
    log: tuple[int, ...]
    requests: int

    @property
    def acknowledged(self) -> tuple[int, ...]:
        """Records that the application believes written."""
        return tuple(told.record for told in self.told if told.error is None)

    @property
    def refused(self) -> tuple[int, ...]:
        """Records for which the application got an error."""
        return tuple(told.record for told in self.told if told.error is not None)

    @property
    def open(self) -> tuple[int, ...]:
        """Records of which nothing was heard before the run ended."""
        heard = {told.record for told in self.told}
        return tuple(record for record in self.sent if record not in heard)

    @property
    def lost(self) -> tuple[int, ...]:
        """Acknowledged, and not in the log."""
        return tuple(record for record in self.acknowledged if record not in self.log)

    @property
    def refused_but_written(self) -> tuple[int, ...]:
        """An error was reported, yet the record is there; sending it again makes a duplicate."""
        return tuple(record for record in self.refused if record in self.log)

    @property
    def duplicates(self) -> tuple[int, ...]:
        """Records that are in the log more than once, ascending."""
        return tuple(sorted(record for record, n in Counter(self.log).items() if n > 1))

    @property
    def reordered(self) -> tuple[int, ...]:
        """Records whose first copy stands behind that of a record sent later, ascending."""
        firsts = list(dict.fromkeys(self.log))
        place = {record: index for index, record in enumerate(self.sent)}
        return tuple(
            sorted(
                record
                for index, record in enumerate(firsts)
                if any(place[earlier] > place[record] for earlier in firsts[:index])
            )
        )


def deliver(
    config: Config,
    records: int,
    script: Script | None = None,
    *,
    every_ms: float = 0.0,
    round_trip_ms: float = 1.0,
    wait_for_each: bool = False,
    stop_at_error: bool = False,
    until_ms: float = 3_600_000.0,
) -> Delivery:
    """Send records 0, 1, ... and see what becomes of them.

    Parameters
    ----------
    config : Config
        The producer's settings and version; ``acks`` decides what the leader answers.
    records : int
    script : callable, optional
        What the leader does with each request it reads; None answers all with success.
    every_ms : float
        Between two ``send`` calls.
    round_trip_ms : float
        From reading a request to its answer, above 0; a script's ``delay_ms`` comes on top.
    wait_for_each : bool
        The synchronous way, ``send(...).get()``: the next record only after this one's fate.
    stop_at_error : bool
        The application sends nothing more once it has heard of an error.
    until_ms : float
        The run ends here, finished or not.

    Raises
    ------
    InputError
        If a count is negative or a time makes no sense.
    """
    if records < 0:
        raise InputError(f"records={records} must not be negative")
    if not 0.0 <= every_ms < math.inf or not 0.0 <= until_ms < math.inf:
        raise InputError(f"every_ms={every_ms} and until_ms={until_ms} must be finite, 0 or more")
    if not 0.0 < round_trip_ms < math.inf:
        raise InputError(f"round_trip_ms={round_trip_ms} must be finite and above 0")
    pace = _Pace(records, every_ms, round_trip_ms, wait_for_each, stop_at_error)
    return _Run(config, script or in_turn(), pace).play(until_ms)


@dataclass(frozen=True, slots=True)
class _Pace:
    records: int
    every_ms: float
    round_trip_ms: float
    wait_for_each: bool
    stop_at_error: bool


class _Run:
    """One run's moving parts: application, producer, connection, leader."""

    def __init__(self, config: Config, script: Script, pace: _Pace) -> None:
        self.config = config
        self.script = script
        self.pace = pace
        self.memory = memory_of(config.kafka_version)
        self.state = producer.Producer()
        self.now_ms = 0.0
        self.sent: list[int] = []
        self.told: list[Told] = []
        self.log: Writes = ()
        self.read = 0
        self.unread: list[producer.Transmit] = []
        self.free_ms = 0.0
        self.reply: tuple[float, producer.Event] | None = None
        self.hangs = False

    def play(self, until_ms: float) -> Delivery:
        """Take the next thing that happens, until nothing does."""
        while True:
            at_ms, event = self._next()
            if at_ms > until_ms:
                break
            self.now_ms = at_ms
            if event is None:
                self._read_request()
            else:
                self._step(event)
        return Delivery(
            tuple(self.sent),
            tuple(self.told),
            tuple(written.record for written in self.log),
            self.state.requests,
        )

    def _next(self) -> tuple[float, producer.Event | None]:
        """The earliest of: a reply, a request read (None), a record sent, a timer."""
        choices: list[tuple[float, int, producer.Event | None]] = []
        if self.reply is not None:
            choices.append((self.reply[0], 0, self.reply[1]))
        elif self.unread and not self.hangs:
            choices.append((max(self.now_ms, self.free_ms), 1, None))
        if self._sends_more():
            send_ms = len(self.sent) * self.pace.every_ms
            choices.append((max(self.now_ms, send_ms), 2, producer.Send(len(self.sent))))
        wake_ms = producer.next_wake_ms(self.state, self.now_ms, self.config)
        choices.append((wake_ms, 3, producer.Wake()))
        at_ms, _, event = min(choices, key=lambda choice: choice[:2])
        return at_ms, event

    def _sends_more(self) -> bool:
        if len(self.sent) >= self.pace.records:
            return False
        if self.pace.stop_at_error and any(told.error for told in self.told):
            return False
        return not self.pace.wait_for_each or len(self.told) == len(self.sent)

    def _step(self, event: producer.Event) -> None:
        if isinstance(event, producer.Send):
            self.sent.append(event.record)
        if isinstance(event, producer.Answered | producer.Disconnected):
            self.reply = None
        if isinstance(event, producer.Disconnected):
            self.unread.clear()
        self.state, effects = producer.step(self.state, self.now_ms, event, self.config)
        self._carry_out(effects)

    def _carry_out(self, effects: Sequence[producer.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, producer.Transmit):
                self.unread.append(effect)
            elif isinstance(effect, producer.Tell):
                self.told.append(Told(effect.record, effect.error, self.now_ms))
            else:
                self.unread.clear()
                self.reply = None
                self.hangs = False
                self.free_ms = self.now_ms

    def _read_request(self) -> None:
        """The leader reads one request, writes it or not, and prepares its reply."""
        request = self.unread.pop(0)
        answer = self.script(self.read, self.now_ms)
        self.read += 1
        write = Written(request.record, request.epoch, request.sequence)
        handled = handle(self.log, write, answer, self.config.acks or 0, self.memory)
        self.log = handled.log
        self.free_ms = self.now_ms + self.pace.round_trip_ms + answer.delay_ms
        if handled.reply == ANSWER:
            self.reply = (self.free_ms, producer.Answered(request.number, handled.error))
        elif handled.reply == DISCONNECT:
            self.reply = (self.free_ms, producer.Disconnected())
        elif handled.reply == SILENCE and self.config.acks != 0:
            self.hangs = True
