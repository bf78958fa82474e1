"""Outcome of every record an application sends: acknowledged, failed, lost, duplicated, reordered.

The leader reads a request as soon as it is sent and the previous one is answered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.errors import InputError
from advisor.lessons.clients import producer as producer
from advisor.lessons.clients.scripted_broker import (
    ANSWER,
    DISCONNECT,
    SILENCE,
    Script,
    Writes,
    Written,
    handle,
    in_turn,
)
from advisor.protocol.rules.config import Config

_END_MS = 3_600_000.0


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """What the application is told about a record: success (no error) or an error."""

    record: int
    error: str | None
    at_ms: float


@dataclass(frozen=True, slots=True)
class Delivery:
    """Records sent, what the application was told in order of time, and the log by offset."""

    sent: tuple[int, ...]
    outcomes: tuple[RecordOutcome, ...]
    log: tuple[int, ...]
    requests: int

    @property
    def acknowledged(self) -> tuple[int, ...]:
        """Records whose ``send`` succeeded."""
        return tuple(outcome.record for outcome in self.outcomes if outcome.error is None)

    @property
    def refused(self) -> tuple[int, ...]:
        """Records whose ``send`` failed with an error."""
        return tuple(outcome.record for outcome in self.outcomes if outcome.error is not None)

    @property
    def lost(self) -> tuple[int, ...]:
        """Records acknowledged but not in the log."""
        return tuple(record for record in self.acknowledged if record not in self.log)

    @property
    def duplicates(self) -> tuple[int, ...]:
        """Records in the log more than once, ascending."""
        return tuple(sorted(record for record, n in Counter(self.log).items() if n > 1))

    @property
    def reordered(self) -> tuple[int, ...]:
        """Records whose first copy comes after a record sent later, ascending."""
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
) -> Delivery:
    """Send records 0, 1, ... with the Java producer, in virtual time, for an hour at most.

    every_ms: time between two ``send`` calls.
    round_trip_ms: time from reading a request to its response, to which an `Answer` may add.
    """
    if records < 0:
        raise InputError(f"records={records} must not be negative")
    if not 0.0 <= every_ms < math.inf:
        raise InputError(f"every_ms={every_ms} must be finite, 0 or more")
    if not 0.0 < round_trip_ms < math.inf:
        raise InputError(f"round_trip_ms={round_trip_ms} must be finite and above 0")
    return _Run(config, script or in_turn(), records, every_ms, round_trip_ms).play()


class _Run:
    """State of one run: application, producer, connection, leader."""

    def __init__(
        self, config: Config, script: Script, records: int, every_ms: float, round_trip_ms: float
    ) -> None:
        self.config, self.script = config, script
        self.records, self.every_ms, self.round_trip_ms = records, every_ms, round_trip_ms
        self.state = producer.Producer()
        self.now_ms = 0.0
        self.sent: list[int] = []
        self.outcomes: list[RecordOutcome] = []
        self.log: Writes = ()
        self.read = 0
        self.unread: list[producer.Transmit] = []
        self.free_ms = 0.0
        self.reply: tuple[float, producer.Event] | None = None
        self.hangs = False

    def play(self) -> Delivery:
        """Process events until none is left."""
        while True:
            at_ms, event = self._next()
            if at_ms > _END_MS:
                break
            self.now_ms = at_ms
            if event is None:
                self._read_request()
            else:
                self._step(event)
        return Delivery(
            tuple(self.sent),
            tuple(self.outcomes),
            tuple(written.record for written in self.log),
            self.state.requests,
        )

    def _next(self) -> tuple[float, producer.Event | None]:
        """Earliest of: a response, a request read (None), a ``send``, a producer timer."""
        choices: list[tuple[float, int, producer.Event | None]] = []
        if self.reply is not None:
            choices.append((self.reply[0], 0, self.reply[1]))
        elif self.unread and not self.hangs:
            choices.append((max(self.now_ms, self.free_ms), 1, None))
        if len(self.sent) < self.records:
            send_ms = len(self.sent) * self.every_ms
            choices.append((max(self.now_ms, send_ms), 2, producer.Send(len(self.sent))))
        wake_ms = producer.next_wake_ms(self.state, self.now_ms, self.config)
        choices.append((wake_ms, 3, producer.Wake()))
        at_ms, _, event = min(choices, key=lambda choice: choice[:2])
        return at_ms, event

    def _step(self, event: producer.Event) -> None:
        if isinstance(event, producer.Send):
            self.sent.append(event.record)
        if isinstance(event, producer.Response | producer.Disconnected):
            self.reply = None
        if isinstance(event, producer.Disconnected):
            self.unread.clear()
        self.state, effects = producer.step(self.state, self.now_ms, event, self.config)
        self._apply_effects(effects)

    def _apply_effects(self, effects: Sequence[producer.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, producer.Transmit):
                self.unread.append(effect)
            elif isinstance(effect, producer.Complete):
                self.outcomes.append(RecordOutcome(effect.record, effect.error, self.now_ms))
            else:
                self.unread.clear()
                self.reply = None
                self.hangs = False
                self.free_ms = self.now_ms

    def _read_request(self) -> None:
        """The leader reads one request, appends or rejects it, and schedules its response."""
        request = self.unread.pop(0)
        answer = self.script(self.read, self.now_ms)
        self.read += 1
        write = Written(request.record, request.epoch, request.sequence)
        handled = handle(self.log, write, answer, self.config.acks or 0)
        self.log = handled.log
        self.free_ms = self.now_ms + self.round_trip_ms + answer.delay_ms
        if handled.reply == ANSWER:
            self.reply = (self.free_ms, producer.Response(request.number, handled.error))
        elif handled.reply == DISCONNECT:
            self.reply = (self.free_ms, producer.Disconnected())
        elif handled.reply == SILENCE and self.config.acks != 0:
            self.hangs = True
