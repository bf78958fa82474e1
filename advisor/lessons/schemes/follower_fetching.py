"""When a record becomes readable at the leader and at followers.

Consumers read below the high watermark, and a follower learns the high watermark from its fetch
responses. So a record is readable later at a follower than at the leader, on an idle partition by
up to ``replica.fetch.wait.max.ms``, and a consumer that switches replicas may see the end of the
log move back. The model has one partition with every replica in sync, as since 2.6 (KAFKA-9952).
Sources: ``ReplicaManager.fetchMessages``, ``DelayedFetch``, ``Partition.updateFollowerFetchState``.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from advisor.errors import InputError
from advisor.protocol.rules.isr import next_high_watermark
from advisor.protocol.rules.versions import NEWEST_KNOWN, rules_for

LEADER = 0

_RULES = rules_for(NEWEST_KNOWN)


@dataclass(frozen=True, slots=True)
class Visibility:
    """Times at which each offset is appended, and becomes readable, by replica (0 leads)."""

    appended_ms: tuple[float, ...]
    readable_ms: Mapping[int, tuple[float, ...]]

    def delay_ms(self, replica: int) -> float:
        """Longest time that a record is readable at the leader but not at a replica."""
        pairs = zip(self.readable_ms[replica], self.readable_ms[LEADER], strict=True)
        return max((at_replica - at_leader for at_replica, at_leader in pairs), default=0.0)

    def end_offset(self, replica: int, at_ms: float) -> int:
        """Offset up to which a consumer can read at a replica."""
        return bisect_right(self.readable_ms[replica], at_ms)

    def goes_back(self, reads: Sequence[tuple[int, float]]) -> bool:
        """Whether any of these reads, (replica, time) in order, sees less than an earlier one."""
        ends = [self.end_offset(replica, at_ms) for replica, at_ms in reads]
        return any(later < earlier for earlier, later in pairwise(ends))


def visibility(
    appended_ms: Sequence[float],
    one_way_ms: Mapping[int, float],
    *,
    fetch_wait_max_ms: float = 500.0,
) -> Visibility:
    """Simulate when records become readable at every replica.

    one_way_ms: follower (1, 2, ...) -> one-way network latency to the leader.
    fetch_wait_max_ms: ``replica.fetch.wait.max.ms``.
    """
    if list(appended_ms) != sorted(appended_ms) or not all(
        0.0 <= ms < math.inf for ms in appended_ms
    ):
        raise InputError("appended_ms must be finite, not negative and ascending")
    if LEADER in one_way_ms or not all(0.0 < ms < math.inf for ms in one_way_ms.values()):
        raise InputError("one_way_ms must name followers other than 0, with times above 0")
    if not 0.0 < fetch_wait_max_ms < math.inf:
        raise InputError(f"fetch_wait_max_ms={fetch_wait_max_ms} must be finite and above 0")
    return _Run(dict(one_way_ms), fetch_wait_max_ms).play(tuple(appended_ms))


@dataclass(slots=True)
class _Fetch:
    """A follower's fetch request: waiting at the leader or in transit."""

    leo: int = 0
    waiting: bool = False
    number: int = 0


_APPEND, _REQUEST, _TIMEOUT, _RESPONSE = range(4)


@dataclass(slots=True)
class _Run:
    """Event simulation of the leader, the followers and the messages between them."""

    one_way_ms: dict[int, float]
    wait_ms: float
    leo: int = 0
    high_watermark: int = 0
    leos: dict[int, int] = field(default_factory=dict)
    fetches: dict[int, _Fetch] = field(default_factory=dict)
    readable: dict[int, list[float]] = field(default_factory=dict)
    due: list[tuple[float, int, int, int, int]] = field(default_factory=list)

    def play(self, appended_ms: tuple[float, ...]) -> Visibility:
        """Run until every record is readable at every replica; fetches wait from time 0."""
        self.readable = {replica: [] for replica in (LEADER, *self.one_way_ms)}
        self.leos = dict.fromkeys(self.one_way_ms, 0)
        self.fetches = {follower: _Fetch() for follower in self.one_way_ms}
        for follower in self.one_way_ms:
            self._wait(0.0, follower)
        for at_ms in appended_ms:
            heapq.heappush(self.due, (at_ms, _APPEND, LEADER, 0, 0))
        while any(len(times) < len(appended_ms) for times in self.readable.values()):
            at_ms, what, follower, first, second = heapq.heappop(self.due)
            if what == _APPEND:
                self.leo += 1
                self._advance_high_watermark(at_ms)
                self._complete_waiting(at_ms)
            elif what == _REQUEST:
                self._on_request(at_ms, follower, first)
            elif what == _TIMEOUT:
                fetch = self.fetches[follower]
                if fetch.waiting and fetch.number == first:
                    self._respond(at_ms, follower)
            else:
                self._on_response(at_ms, follower, first, second)
        return Visibility(appended_ms, {r: tuple(times) for r, times in self.readable.items()})

    def _on_request(self, at_ms: float, follower: int, offset: int) -> None:
        """A fetch arrives with the follower's LEO; respond with records or wait for some."""
        self.leos[follower] = offset
        if offset < self.leo:
            self._respond(at_ms, follower)
        else:
            self._wait(at_ms, follower)
        self._advance_high_watermark(at_ms)

    def _wait(self, at_ms: float, follower: int) -> None:
        fetch = self.fetches[follower]
        fetch.waiting = True
        fetch.number += 1
        heapq.heappush(self.due, (at_ms + self.wait_ms, _TIMEOUT, follower, fetch.number, 0))

    def _advance_high_watermark(self, at_ms: float) -> None:
        replicas = len(self.one_way_ms) + 1
        self.high_watermark = next_high_watermark(
            self.high_watermark, self.leo, self.leos.values(), replicas, 1, _RULES
        )
        self._show(LEADER, self.high_watermark, at_ms)

    def _complete_waiting(self, at_ms: float) -> None:
        for follower, fetch in self.fetches.items():
            if fetch.waiting and fetch.leo < self.leo:
                self._respond(at_ms, follower)

    def _respond(self, at_ms: float, follower: int) -> None:
        self.fetches[follower].waiting = False
        arrives_ms = at_ms + self.one_way_ms[follower]
        heapq.heappush(self.due, (arrives_ms, _RESPONSE, follower, self.leo, self.high_watermark))

    def _on_response(self, at_ms: float, follower: int, leo: int, high_watermark: int) -> None:
        self.fetches[follower].leo = leo
        self._show(follower, min(leo, high_watermark), at_ms)
        arrives_ms = at_ms + self.one_way_ms[follower]
        heapq.heappush(self.due, (arrives_ms, _REQUEST, follower, leo, 0))

    def _show(self, replica: int, end: int, at_ms: float) -> None:
        times = self.readable[replica]
        times.extend(at_ms for _ in range(end - len(times)))
