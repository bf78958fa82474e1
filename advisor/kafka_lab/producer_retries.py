"""A producer's patience with real brokers: attempts, backoff, and when it gives up."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from advisor.kafka_lab.client import LEADER_NOT_AVAILABLE, Client, Producer
from advisor.kafka_lab.formats.requests import NETWORK_EXCEPTION, UnansweredError
from advisor.kafka_lab.time_scaling import Timing
from advisor.protocol.rules.config import Config

_ACKS = {"all": -1, 1: 1, 0: 0}
_DUPLICATE = "DUPLICATE_SEQUENCE_NUMBER"
_BACKOFF_S = 0.1
_HEARD_WITHIN_S = 1.5
_FINAL = frozenset({"INVALID_REQUIRED_ACKS", "MESSAGE_TOO_LARGE", "INVALID_RECORD"})


@dataclass(frozen=True)
class Sending:
    """One batch of one producer.

    Attributes
    ----------
    client : Client
    topic, partition : str, int
    values : tuple of bytes
    config : Config
    timing : Timing
    reachable : callable
        The brokers that the producer can reach now.
    settled : callable
        Whether nothing will change by itself any more.
    via : int or None
        The broker that the producer takes for the leader, whatever it is told.
    """

    client: Client
    topic: str
    partition: int
    values: tuple[bytes, ...]
    config: Config
    timing: Timing
    reachable: Callable[[], Collection[int]]
    settled: Callable[[], bool]
    via: int | None = None

    def run(self) -> str | None:
        """Try until acknowledged or out of retries or time; the last error, or None.

        A cluster at rest would refuse every further attempt alike, so there no more are made; but
        brokers hear of a new leader a little after the controller has recorded it.
        """
        assert self.config.retries is not None
        deadline = time.monotonic() + self.timing.delivery_s(self.config)
        producer: Producer | None = None
        sent = 0
        settled_at: float | None = None
        while True:
            if not self.settled():
                settled_at = None
            elif settled_at is None:
                settled_at = time.monotonic()
            leader = self._leader()
            error: str | None = LEADER_NOT_AVAILABLE
            if leader is not None:
                if producer is None and self.config.enable_idempotence:
                    producer = self.client.new_producer()
                error = self._attempt(leader, producer, deadline)
                sent += 1
            if error in (None, _DUPLICATE):
                return None
            now = time.monotonic()
            late = now + _BACKOFF_S >= deadline
            hopeless = settled_at is not None and now > settled_at + _HEARD_WITHIN_S
            if error in _FINAL or sent > self.config.retries or late or hopeless:
                return error
            time.sleep(_BACKOFF_S)

    def _leader(self) -> int | None:
        if self.via is not None:
            return self.via
        if not self.reachable():
            return None
        return self.client.leader(self.topic, self.partition)

    def _attempt(self, leader: int, producer: Producer | None, deadline: float) -> str | None:
        assert self.config.acks is not None
        acks = _ACKS[self.config.acks]
        # A client of a broker that is cut off is on the other side of the cut.
        reached = leader == self.via or leader in self.reachable()
        left_ms = max(1, round((deadline - time.monotonic()) * 1000))
        timeout_ms = min(left_ms, self.timing.request_ms(self.config))
        error: str | None = NETWORK_EXCEPTION
        if reached:
            place = leader, self.topic, self.partition
            with contextlib.suppress(UnansweredError):
                error = self.client.produce(*place, self.values, acks, timeout_ms, producer)
        # acks=0 has no answer: the producer believes what it sent.
        return None if acks == 0 else error
