"""Replica moves that give topics their replication factor, spread over the racks.

As few copies as possible: a replica is removed only if there are too many, or too many in its rack;
the preferred leader stays if it can. New replicas go to the rack with fewest replicas of the
partition, and in it to the broker with fewest replicas.
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
) -> tuple[Move, ...]:
    """Return the moves that give each named topic its replication factor and spread its racks.

    Parameters
    ----------
    topics : sequence of Topic
        Topics to change; those that `factors` does not name stay unchanged.
    brokers : mapping of int to (str or None)
        Broker id to rack. If a rack is unknown, only the number of replicas changes.
    factors : mapping of str to int
        Topic name to target replication factor, at most the number of brokers.
    counted : sequence of Topic, optional
        Topics whose replicas count as load on the brokers. Default: `topics`.

    Returns
    -------
    tuple of Move
        Partitions that change, in the order of the topics.
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
    """Return `replication_factor` replicas spread over the racks, with as few new ones as possible.

    Replicas that stay keep their order, so the preferred leader changes only if its rack holds too
    many.
    """
    racks_known = all(rack is not None for rack in brokers.values())
    most = least_share(brokers, replication_factor) if racks_known else replication_factor
    held: Counter[str | None] = Counter()
    kept: list[int] = []
    for broker in replicas:
        rack = brokers[broker]
        if len(kept) < replication_factor and (not racks_known or held[rack] < most):
            kept.append(broker)
            held[rack] += 1
    while len(kept) < replication_factor:
        free = [broker for broker in brokers if broker not in kept]
        chosen = min(
            free, key=lambda b: (held[brokers[b]] if racks_known else 0, load.get(b, 0), b)
        )
        kept.append(chosen)
        held[brokers[chosen]] += 1
    return tuple(kept)


def reassignment_json(moves: Sequence[Move], back: bool = False) -> str:
    """Return the JSON for `kafka-reassign-partitions.sh --reassignment-json-file`.

    Parameters
    ----------
    moves : sequence of Move
    back : bool
        Whether to reverse the moves.
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
    """Return the JSON for `kafka-leader-election.sh`: the partitions of the moves."""
    rows = [json.dumps({"topic": m.topic, "partition": m.partition}) for m in moves]
    lines = ",\n".join(f"  {row}" for row in rows)
    return f'{{"partitions": [\n{lines}\n]}}\n'
