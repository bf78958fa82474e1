"""Which replicas to move so that a topic has its replication factor, spread over the racks.

As few copies as possible: every replica that may stay stays, the preferred leader first; a
replica goes only when there are too many or too many in its rack. New ones go to the rack that
holds fewest of the partition, and there to the broker that holds fewest replicas.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.advice.tolerance import least_share
from advisor.cluster import Topic


@dataclass(frozen=True)
class Move:
    """One partition's replicas, before and after."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def copies(self) -> int:
        """How many replicas have to be copied to a broker that has none."""
        return len(set(self.after) - set(self.before))


def plan_moves(
    topics: Sequence[Topic],
    brokers: Mapping[int, str | None],
    factors: Mapping[str, int],
    counted: Sequence[Topic] | None = None,
) -> tuple[Move, ...]:
    """Return the moves that give each named topic its replication factor and spread its racks.

    Parameters
    ----------
    topics : sequence of Topic
        Those to look at; one that `factors` does not name is left alone.
    brokers : mapping of int to (str or None)
        Broker id to rack. Where a rack is not known, only the count is mended.
    factors : mapping of str to int
        Replication factor wanted, by topic; at most the number of brokers.
    counted : sequence of Topic, optional
        Topics whose replicas count as load on the brokers; `topics` unless given.

    Returns
    -------
    tuple of Move
        Only partitions that change, in the order of the topics.
    """
    load: Counter[int] = Counter(dict.fromkeys(brokers, 0))
    for topic in topics if counted is None else counted:
        for partition in topic.partitions:
            load.update(set(partition.replicas) - set(partition.adding))
    moves = []
    for topic in topics:
        if topic.name not in factors:
            continue
        for partition in topic.partitions:
            before = tuple(r for r in partition.replicas if r not in partition.adding)
            after = respread(before, brokers, factors[topic.name], load)
            if after != before:
                load.subtract(before)
                load.update(after)
                moves.append(Move(topic.name, partition.index, before, after))
    return tuple(moves)


def respread(
    replicas: tuple[int, ...],
    brokers: Mapping[int, str | None],
    replication_factor: int,
    load: Mapping[int, int],
) -> tuple[int, ...]:
    """Return so many replicas, no rack with more than it must have, as few of them new as can be.

    The order of those that stay is kept, so that the preferred leader stays unless its rack
    alone holds too many.
    """
    known = all(rack is not None for rack in brokers.values())
    most = least_share(brokers, replication_factor) if known else replication_factor
    held: Counter[str | None] = Counter()
    kept: list[int] = []
    for broker in replicas:
        rack = brokers[broker]
        if len(kept) < replication_factor and (not known or held[rack] < most):
            kept.append(broker)
            held[rack] += 1
    while len(kept) < replication_factor:
        free = [broker for broker in brokers if broker not in kept]
        chosen = min(free, key=lambda b: (held[brokers[b]] if known else 0, load.get(b, 0), b))
        kept.append(chosen)
        held[brokers[chosen]] += 1
    return tuple(kept)


def reassignment_json(moves: Sequence[Move], back: bool = False) -> str:
    """Return what `kafka-reassign-partitions.sh --reassignment-json-file` reads.

    Parameters
    ----------
    moves : sequence of Move
    back : bool
        The file that undoes them.
    """
    rows = [
        {
            "topic": move.topic,
            "partition": move.partition,
            "replicas": list(move.before if back else move.after),
        }
        for move in moves
    ]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    return f'{{"version": 1, "partitions": [\n{lines}\n]}}\n'


def election_json(moves: Sequence[Move]) -> str:
    """Return the partitions of the moves as `kafka-leader-election.sh` reads them."""
    rows = [json.dumps({"topic": m.topic, "partition": m.partition}) for m in moves]
    lines = ",\n".join(f"  {row}" for row in rows)
    return f'{{"partitions": [\n{lines}\n]}}\n'
