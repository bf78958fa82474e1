"""Replica moves that give topics their replication factor, spread over the racks.

As few copies as possible: no partition gets fewer replicas than it has, and one moves only if there
are too many in its rack; the preferred leader stays if it can. New replicas go to the rack with
fewest replicas of the partition, and in it to the broker with fewest replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from advisor.advice.situation import partition_bytes
from advisor.advice.tolerance import least_share
from advisor.cluster import Topic
from advisor.cluster.topic import INTERNAL_TOPICS
from advisor.formatting import significant
from advisor.reliability.results.cost import in_bytes
from advisor.reliability.workload import Workload
from advisor.rendering import Json, json_rows

# More than any broker has; one that is missing gets replicas only where no other is left.
_HEAVIEST = 10**9
_Entry = tuple[int, int]
"""Number of replicas, broker."""


@dataclass(frozen=True)
class Move:
    """Replicas of one partition before and after."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def copies(self) -> int:
        """Number of replicas to copy to brokers that have none."""
        return len(set(self.after) - set(self.before))


def plan_moves(
    topics: Sequence[Topic],
    brokers: Mapping[int, str | None],
    factors: Mapping[str, int],
    counted: Sequence[Topic] | None = None,
    avoided: Collection[int] = (),
) -> tuple[Move, ...]:
    """Return the moves that give topics the replication factors and spread them over the racks.

    counted: topics whose replicas count as load on the brokers. Default: `topics`.
    avoided: brokers that get replicas only where no other is left, being down.
    """
    load: Counter[int] = Counter()
    for topic in topics if counted is None else counted:
        for partition in topic.partitions:
            load.update(set(partition.replicas) - set(partition.adding))
    load.update(dict.fromkeys(avoided, _HEAVIEST))
    lightest = _Lightest(brokers, load)
    racks_known = None not in brokers.values()
    most_in_rack: dict[int, int] = {}
    moves = []
    for topic in topics:
        if topic.name not in factors:
            continue
        for partition in topic.partitions:
            before = tuple(r for r in partition.replicas if r not in partition.adding)
            factor = max(factors[topic.name], len(before))
            if factor not in most_in_rack:
                most_in_rack[factor] = least_share(brokers, factor) if racks_known else factor
            after = _respread(before, factor, most_in_rack[factor], lightest)
            if after != before:
                lightest.move(before, after)
                moves.append(Move(topic.name, partition.index, before, after))
    return tuple(moves)


def _respread(
    replicas: tuple[int, ...], factor: int, most_in_rack: int, lightest: _Lightest
) -> tuple[int, ...]:
    """Return `factor` replicas, at most `most_in_rack` in a rack, with as few new ones as possible.

    Replicas that stay keep their order, and so the preferred leader.
    """
    in_rack: Counter[str | None] = Counter()
    placed: list[int] = []
    for broker in replicas:
        rack = lightest.racks[broker]
        if len(placed) < factor and in_rack[rack] < most_in_rack:
            placed.append(broker)
            in_rack[rack] += 1
    while len(placed) < factor:
        chosen = lightest.free(placed, in_rack)
        placed.append(chosen)
        in_rack[lightest.racks[chosen]] += 1
    return tuple(placed)


class _Lightest:
    """Brokers by their number of replicas, lightest first in each rack, kept while it changes.

    A heap for each rack, and one of the racks' lightest brokers; entries that are no longer true
    are dropped when they come up. So a choice among a thousand brokers is as quick as among ten.
    """

    def __init__(self, brokers: Mapping[int, str | None], load: Mapping[int, int]) -> None:
        # If a rack is unknown, all are one.
        racks_known = None not in brokers.values()
        self.racks = dict(brokers) if racks_known else dict.fromkeys(brokers, None)
        self._sizes = Counter(self.racks.values())
        self._load = Counter({broker: load.get(broker, 0) for broker in brokers})
        self._in_rack: dict[str | None, list[_Entry]] = {}
        for broker, rack in self.racks.items():
            self._in_rack.setdefault(rack, []).append((self._load[broker], broker))
        for heap in self._in_rack.values():
            heapify(heap)
        self._of_racks = sorted(heap[0] for heap in self._in_rack.values())

    def move(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Count the replicas of a partition on other brokers."""
        self._load.subtract(before)
        self._load.update(after)
        changed = {*before} ^ {*after}
        for broker in changed:
            heappush(self._in_rack[self.racks[broker]], (self._load[broker], broker))
        for rack in {self.racks[broker] for broker in changed}:
            heappush(self._of_racks, self._first(rack))

    def free(self, excluded: Sequence[int], held: Mapping[str | None, int]) -> int:
        """Return the lightest broker that is not in `excluded`, in a rack that holds fewest."""
        lightest = self._elsewhere(held)
        if lightest is None:
            open_racks = ((n, rack) for rack, n in held.items() if n < self._sizes[rack])
            _, lightest = min((n, self._first(rack, excluded)) for n, rack in open_racks)
        return lightest[1]

    def _elsewhere(self, held: Mapping[str | None, int]) -> _Entry | None:
        """The lightest broker of all racks that hold none; None if there is no such rack."""
        skipped: set[_Entry] = set()
        lightest = None
        while self._of_racks and lightest is None:
            entry = heappop(self._of_racks)
            rack = self.racks[entry[1]]
            if entry == self._first(rack):
                skipped.add(entry)
                lightest = None if held.get(rack) else entry
        for entry in skipped:
            heappush(self._of_racks, entry)
        return lightest

    def _first(self, rack: str | None, excluded: Sequence[int] = ()) -> _Entry:
        """The lightest broker of a rack that is not in `excluded`; there must be one."""
        heap, skipped = self._in_rack[rack], set()
        while heap[0][0] != self._load[heap[0][1]] or heap[0][1] in excluded:
            entry = heappop(heap)
            if entry[0] == self._load[entry[1]]:
                skipped.add(entry)
        lightest = heap[0]
        for entry in skipped:
            heappush(heap, entry)
        return lightest


def reassignment_json(moves: Sequence[Move], back: bool = False) -> Json:
    """Return the JSON for `kafka-reassign-partitions.sh --reassignment-json-file`."""
    rows = [
        {
            "topic": move.topic,
            "partition": move.partition,
            "replicas": list(move.before if back else move.after),
        }
        for move in moves
    ]
    return json_rows({"version": 1}, "partitions", rows)


def election_json(moves: Sequence[Move]) -> Json:
    """Return the JSON for `kafka-leader-election.sh`: the partitions of the moves."""
    rows = ({"topic": move.topic, "partition": move.partition} for move in moves)
    return json_rows({}, "partitions", rows)


def copy_comments(
    moves: Sequence[Move],
    topics: Sequence[Topic],
    load: Workload,
    measured: Mapping[str, float],
    bytes_per_second: int,
) -> Iterator[str]:
    """Yield how many bytes are copied and the least time that takes, for a comment.

    Without internal topics, and by the broker that receives most; what is written meanwhile adds.

    measured: bytes of a replica, by topic; the load's count where one is not.
    """
    replica_bytes = partition_bytes(topics, load, measured)
    is_measured = {move.topic for move in moves} <= measured.keys()
    copied, copies = dict[int, float](), Counter[int]()
    for move in moves:
        for broker in set(move.after) - set(move.before):
            if move.topic not in INTERNAL_TOPICS:
                copied[broker] = copied.get(broker, 0.0) + replica_bytes[move.topic]
                copies[broker] += 1
    total = sum(copied.values())
    if not total or not bytes_per_second:
        return
    minutes = max(copied.values()) / bytes_per_second / 60.0
    long = minutes >= 120.0
    time = f"{significant(minutes / 60.0 if long else minutes)} {'hours' if long else 'minutes'}"
    basis = "By the bytes that were measured:" if is_measured else "At the load given or assumed"
    yield (
        f"{basis} that is {in_bytes(total)}, Kafka's own topics aside, and takes at least {time}."
    )
    bytes_per_partition = load.records_per_second * load.record_bytes / load.partitions
    incoming = max(copies.values()) * bytes_per_partition
    if incoming > bytes_per_second / 2.0:
        yield (
            f"Raise the throttle: at that load {in_bytes(incoming)} a second are written to the "
            "partitions that a single broker has to copy, and they count towards it."
        )
