"""When a record becomes readable at the leader, and when at a follower.

Consumers see only what is below the high watermark, and a follower learns the high watermark from
the answers to its own fetches. So a follower shows a record later than the leader does, on a quiet
partition by up to ``replica.fetch.wait.max.ms``, and a consumer that changes replicas may see the
log go back. Consumers read from followers since 2.4 (KIP-392); before, the leader served all reads.

One partition, every replica in sync. An answer takes no time but the way: ``one_way_ms`` there
and back. A real follower fetches many partitions at once; a record in any of them ends the wait.

Sources: ``ReplicaManager.fetchMessages``, ``DelayedFetch``, ``Partition.updateFollowerFetchState``
(2.4 to 3.9); KAFKA-9952 (2.6) took away the answer at once when the high watermark moves.
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
from advisor.protocol.rules.versions import NEWEST_KNOWN, parse_version, rules_for

LEADER = 0


@dataclass(frozen=True, slots=True)
class Visibility:
    """When each record could be read.

    Attributes
    ----------
    appended_ms : tuple of float
        By offset.
    readable_ms : mapping of int to tuple of float
        Replica (0 is the leader) to the time for each offset.
    """

    appended_ms: tuple[float, ...]
    readable_ms: Mapping[int, tuple[float, ...]]

    def delay_ms(self, replica: int) -> float:
        """The longest time that a record was readable at the leader and not yet at a replica."""
        pairs = zip(self.readable_ms[replica], self.readable_ms[LEADER], strict=True)
        return max((there - here for there, here in pairs), default=0.0)

    def end_offset(self, replica: int, at_ms: float) -> int:
        """The offset up to which a consumer can read at a replica."""
        return bisect_right(self.readable_ms[replica], at_ms)

    def records_behind(self, replica: int, at_ms: float) -> int:
        """Records that the leader shows and a replica does not."""
        return self.end_offset(LEADER, at_ms) - self.end_offset(replica, at_ms)

    def goes_back(self, reads: Sequence[tuple[int, float]]) -> bool:
        """Whether reads at (replica, time), in this order, ever see less than one before."""
        ends = [self.end_offset(replica, at_ms) for replica, at_ms in reads]
        return any(later < earlier for earlier, later in pairwise(ends))


def visibility(
    appended_ms: Sequence[float],
    one_way_ms: Mapping[int, float],
    *,
    kafka_version: str = NEWEST_KNOWN,
    fetch_wait_max_ms: float = 500.0,
) -> Visibility:
    """Follow records from the leader's log to every replica's high watermark.

    Parameters
    ----------
    appended_ms : sequence of float
        When the leader appends each record, ascending, from 0 on.
    one_way_ms : mapping of int to float
        Follower (1, 2, ...) to the time between it and the leader, above 0.
    kafka_version : str
        From 2.4 on.
    fetch_wait_max_ms : float
        ``replica.fetch.wait.max.ms``: how long a fetch without news waits at the leader.

    Raises
    ------
    InputError
        If a time makes no sense, or the version lets nobody read from a follower.
    """
    version = parse_version(kafka_version)
    if version < (2, 4):
        raise InputError(
            f"Kafka {kafka_version} serves all reads at the leader; followers from 2.4"
        )
    if list(appended_ms) != sorted(appended_ms) or not all(
        0.0 <= ms < math.inf for ms in appended_ms
    ):
        raise InputError("appended_ms must be finite, not negative and ascending")
    if LEADER in one_way_ms or not all(0.0 < ms < math.inf for ms in one_way_ms.values()):
        raise InputError("one_way_ms must name followers other than 0, with times above 0")
    if not 0.0 < fetch_wait_max_ms < math.inf:
        raise InputError(f"fetch_wait_max_ms={fetch_wait_max_ms} must be finite and above 0")
    run = _Run(dict(one_way_ms), fetch_wait_max_ms, version < (2, 6), kafka_version)
    return run.play(tuple(appended_ms))


@dataclass(slots=True)
class _Fetch:
    """A follower's request: waiting at the leader, or on its way."""

    leo: int = 0
    known: int = 0
    waiting: bool = False
    number: int = 0


_APPEND, _ARRIVE, _WAITED, _ANSWER = range(4)


@dataclass(slots=True)
class _Run:
    """Leader, followers, and what is on its way between them."""

    one_way_ms: dict[int, float]
    wait_ms: float
    prompt: bool
    kafka_version: str
    leo: int = 0
    high_watermark: int = 0
    leos: dict[int, int] = field(default_factory=dict)
    fetches: dict[int, _Fetch] = field(default_factory=dict)
    readable: dict[int, list[float]] = field(default_factory=dict)
    due: list[tuple[float, int, int, int, int]] = field(default_factory=list)

    def play(self, appended_ms: tuple[float, ...]) -> Visibility:
        """Until every replica shows every record; fetches wait at the leader from the start."""
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
                self._advance(at_ms)
                self._answer_waiting(at_ms)
            elif what == _ARRIVE:
                self._fetched(at_ms, follower, first)
            elif what == _WAITED:
                fetch = self.fetches[follower]
                if fetch.waiting and fetch.number == first:
                    self._answer(at_ms, follower)
            else:
                self._answered(at_ms, follower, first, second)
        return Visibility(appended_ms, {r: tuple(times) for r, times in self.readable.items()})

    def _fetched(self, at_ms: float, follower: int, offset: int) -> None:
        """A fetch arrives: it says how far the follower is, and is answered or waits for news."""
        self.leos[follower] = offset
        has_news = offset < self.leo
        if has_news:
            self._answer(at_ms, follower)
        else:
            self._wait(at_ms, follower)
        self._advance(at_ms)

    def _wait(self, at_ms: float, follower: int) -> None:
        fetch = self.fetches[follower]
        fetch.waiting = True
        fetch.number += 1
        heapq.heappush(self.due, (at_ms + self.wait_ms, _WAITED, follower, fetch.number, 0))

    def _advance(self, at_ms: float) -> None:
        replicas = len(self.one_way_ms) + 1
        before = self.high_watermark
        self.high_watermark = next_high_watermark(
            before, self.leo, self.leos.values(), replicas, 1, rules_for(self.kafka_version)
        )
        self._show(LEADER, self.high_watermark, at_ms)
        if self.prompt and self.high_watermark > before:
            self._answer_waiting(at_ms)

    def _answer_waiting(self, at_ms: float) -> None:
        for follower, fetch in self.fetches.items():
            news = fetch.leo < self.leo or (self.prompt and fetch.known < self.high_watermark)
            if fetch.waiting and news:
                self._answer(at_ms, follower)

    def _answer(self, at_ms: float, follower: int) -> None:
        self.fetches[follower].waiting = False
        arrives_ms = at_ms + self.one_way_ms[follower]
        heapq.heappush(self.due, (arrives_ms, _ANSWER, follower, self.leo, self.high_watermark))

    def _answered(self, at_ms: float, follower: int, leo: int, high_watermark: int) -> None:
        fetch = self.fetches[follower]
        fetch.leo, fetch.known = leo, high_watermark
        self._show(follower, min(leo, high_watermark), at_ms)
        arrives_ms = at_ms + self.one_way_ms[follower]
        heapq.heappush(self.due, (arrives_ms, _ARRIVE, follower, leo, 0))

    def _show(self, replica: int, end: int, at_ms: float) -> None:
        times = self.readable[replica]
        times.extend(at_ms for _ in range(end - len(times)))
