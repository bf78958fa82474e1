"""Send a batch to real brokers like a producer: retries, backoff and timeouts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from advisor.kafka_lab.client import LEADER_NOT_AVAILABLE, Client, Producer
from advisor.kafka_lab.formats.requests import NETWORK_EXCEPTION, NoResponseError
from advisor.kafka_lab.time_scaling import TimeScale
from advisor.protocol.rules.config import Config

_ACKS = {"all": -1, 1: 1, 0: 0}
_DUPLICATE = "DUPLICATE_SEQUENCE_NUMBER"
_RETRY_BACKOFF_S = 0.1
_METADATA_DELAY_S = 1.5
_FINAL = frozenset({"INVALID_REQUIRED_ACKS", "MESSAGE_TOO_LARGE", "INVALID_RECORD"})


@dataclass(frozen=True)
class RetryingProducer:
    """Sends one batch, with retries.

    client: sends the requests.
    topic, partition: partition to write to.
    values: values of the records.
    config: producer settings.
    time_scale: scale of the timeouts.
    reachable: returns the brokers that the producer can reach now.
    settled: returns whether the cluster is quiescent.
    via: broker to send to, whatever the metadata says is the leader.
    """

    client: Client
    topic: str
    partition: int
    values: tuple[bytes, ...]
    config: Config
    time_scale: TimeScale
    reachable: Callable[[], Collection[int]]
    settled: Callable[[], bool]
    via: int | None = None

    def run(self) -> str | None:
        """Send until acknowledged, or retries or time run out; return the last error or None.

        In a quiescent cluster every further attempt would fail the same way, so retrying stops
        early, though not before brokers have received new metadata from the controller.
        """
        assert self.config.retries is not None
        deadline = time.monotonic() + self.time_scale.delivery_s(self.config)
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
            out_of_time = now + _RETRY_BACKOFF_S >= deadline
            unchanging = settled_at is not None and now > settled_at + _METADATA_DELAY_S
            if error in _FINAL or sent > self.config.retries or out_of_time or unchanging:
                return error
            time.sleep(_RETRY_BACKOFF_S)

    def _leader(self) -> int | None:
        if self.via is not None:
            return self.via
        if not self.reachable():
            return None
        return self.client.leader(self.topic, self.partition)

    def _attempt(self, leader: int, producer: Producer | None, deadline: float) -> str | None:
        assert self.config.acks is not None
        acks = _ACKS[self.config.acks]
        # `via` is reached even if isolated: its client is on the same side of the partition.
        reached = leader == self.via or leader in self.reachable()
        left_ms = max(1, round((deadline - time.monotonic()) * 1000))
        timeout_ms = min(left_ms, self.time_scale.request_ms(self.config))
        error: str | None = NETWORK_EXCEPTION
        if reached:
            target = leader, self.topic, self.partition
            with contextlib.suppress(NoResponseError):
                error = self.client.produce(*target, self.values, acks, timeout_ms, producer)
        # acks=0 has no response: the producer assumes success.
        return None if acks == 0 else error
