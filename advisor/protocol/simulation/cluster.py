"""A running cluster: it takes events and runs until it is quiescent.

It holds one immutable state and replaces it. Producers are here, since retries and timeouts are
theirs, not the brokers'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.protocol.log.replica_log import Span
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.simulation import events
from advisor.protocol.simulation.events import Effect
from advisor.protocol.simulation.replica import NETWORK_EXCEPTION, REQUEST_TIMED_OUT
from advisor.protocol.simulation.scheduler import enabled, next_time_ms, run_for, run_now, settle
from advisor.protocol.simulation.state import (
    Broker,
    Partition,
    Settings,
    State,
    broker_of,
    position_of,
)
from advisor.protocol.simulation.step import step

LEADER_NOT_AVAILABLE = "LEADER_NOT_AVAILABLE"

# Quiet time after each command that waits; a real cluster is read twice in that time.
REST_MS = 5_000

# With at least this many retries a producer retries until its delivery timeout.
MANY_RETRIES = 1_000

# Not None, which is a success.
_NO_ANSWER = object()


class Simulation:
    """A running cluster."""

    def __init__(self, brokers: tuple[Broker, ...], settings: Settings) -> None:
        # Of brokers that start together, the lowest id is assumed to become controller.
        first = -1 if settings.kraft else min(b.id for b in brokers)
        self.state = State(brokers, controller_broker=first)
        self.settings = settings

    def apply(self, event: Any) -> tuple[Effect, ...]:
        """Apply one event and no internal events after it."""
        self.state, effects = step(self.state, event, self.settings)
        return effects

    def settle(self, rest_ms: int = REST_MS) -> None:
        """Run until no internal event remains."""
        if not self.settings.only_controller:
            self.state, _ = settle(self.state, self.settings, rest_ms)

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass."""
        self.state, _ = run_for(self.state, self.settings, milliseconds)

    def partition(self, topic: str, index: int) -> Partition:
        """Return a partition by topic and number; KeyError if there is none."""
        return self.state.partitions[position_of(self.state, topic, index)]

    def produce(
        self, topic: str, index: int, count: int, config: Config, via: int | None = None
    ) -> str | None:
        """Send records and wait; return the last error, or None if they were acknowledged.

        via: broker that the producer takes for the leader, whatever the controller says: a client
            on that broker's side of a network partition.
        """
        span = (self.state.next_value, self.state.next_value + count)
        deadline_ms = self.state.now_ms + _delivery_timeout_ms(config)
        error = _Producer(self, topic, index, span, config, via, deadline_ms).run()
        self.apply(events.GiveUp(topic, index, span))
        return error


def _delivery_timeout_ms(config: Config) -> int:
    """``delivery.timeout.ms``; before 2.1 only each attempt has a timeout."""
    if config.delivery_timeout_ms is not None:
        return config.delivery_timeout_ms
    assert config.request_timeout_ms is not None
    assert config.retry_backoff_ms is not None
    assert config.retries is not None
    attempt_ms = config.request_timeout_ms + config.retry_backoff_ms
    return attempt_ms * (min(config.retries, MANY_RETRIES) + 1)


@dataclass(frozen=True, eq=False)
class _Producer:
    """One batch of one producer: attempts, backoff, delivery timeout."""

    cluster: Simulation
    topic: str
    index: int
    span: Span
    config: Config
    via: int | None
    deadline_ms: int

    def run(self) -> str | None:
        """Retry until acknowledged or out of retries or time; return the last error or None."""
        assert self.config.retries is not None
        attempts = 0
        while True:
            leader = self._leader()
            before = self._registration()
            error = LEADER_NOT_AVAILABLE if leader is None else self._attempt(leader)
            if error is None:
                return None
            attempts += leader is not None
            unchanged = self._registration() == before
            if attempts > self.config.retries or not self._back_off(unchanged):
                return error

    def _registration(self) -> Registration:
        return self.cluster.partition(self.topic, self.index).registration

    def _leader(self) -> int | None:
        """Return the leader in the producer's metadata: the one the controller last recorded."""
        if self.via is not None:
            return self.via
        leader = self._registration().leader
        return None if leader == NO_LEADER else leader

    def _attempt(self, leader: int) -> str | None:
        """Send once and wait for the response, at most the request timeout."""
        cluster = self.cluster
        node = broker_of(cluster.state, leader)
        assert self.config.acks is not None
        request = events.Produce(
            self.topic,
            self.index,
            leader,
            self.span[0],
            self.span[1] - self.span[0],
            self.config.acks,
            bool(self.config.enable_idempotence),
        )
        reachable = node.running and (node.connected or self.via is not None)
        if not reachable and self.config.acks != 0:
            cluster.state = cluster.state._replace(
                next_value=max(cluster.state.next_value, self.span[1])
            )
            return NETWORK_EXCEPTION
        if not reachable:
            # acks=0 has no response: the producer counts the records as sent.
            cluster.apply(events.RequestDropped(self.topic, self.index, self.span))
            return None
        answer = self._answer(cluster.apply(request))
        return self._wait_for_answer() if answer is _NO_ANSWER else answer

    def _answer(self, effects: tuple[Effect, ...]) -> Any:
        for effect in effects:
            if isinstance(effect, events.Acked) and effect.span == self.span:
                return None
            if isinstance(effect, events.Failed) and effect.span == self.span:
                return effect.error
        return _NO_ANSWER

    def _wait_for_answer(self) -> str | None:
        """Run the cluster, one event at a time, until the response arrives."""
        cluster = self.cluster
        assert self.config.request_timeout_ms is not None
        until_ms = min(self.deadline_ms, cluster.state.now_ms + self.config.request_timeout_ms)
        while True:
            event = next(enabled(cluster.state, cluster.settings), None)
            if event is None:
                due = next_time_ms(cluster.state, cluster.settings)
                if due is None or due > until_ms:
                    cluster.apply(events.Advance(until_ms - cluster.state.now_ms))
                    return REQUEST_TIMED_OUT
                event = events.Advance(due - cluster.state.now_ms)
            answer = self._answer(cluster.apply(event))
            if answer is not _NO_ANSWER:
                error: str | None = answer
                return error

    def _back_off(self, unchanged: bool) -> bool:
        """Wait before the next attempt; return False if there is none.

        A quiescent cluster, `unchanged` since the last attempt began, would reject every attempt
        the same way, so a producer with many retries waits for the next event or for its deadline.
        """
        cluster = self.cluster
        assert self.config.retry_backoff_ms is not None
        assert self.config.retries is not None
        cluster.state, effects = run_now(cluster.state, cluster.settings)
        wait_ms = max(1, self.config.retry_backoff_ms)
        if unchanged and not effects and self.config.retries >= MANY_RETRIES:
            due = next_time_ms(cluster.state, cluster.settings)
            retry_ms = self.deadline_ms if due is None else due
            wait_ms = max(wait_ms, retry_ms - cluster.state.now_ms)
        left_ms = self.deadline_ms - cluster.state.now_ms
        if wait_ms >= left_ms:
            cluster.pass_time(max(0, left_ms))
            return False
        cluster.pass_time(wait_ms)
        return True
