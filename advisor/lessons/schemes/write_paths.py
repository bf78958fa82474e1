"""One leader against replicas that all take writes: paths between them, and the order of records.

With a leader, records go from it to each follower, and every log has its order. Where all replicas
take writes, each sends to all others, and records cross on the way: nothing makes two replicas
append them in the same order. All orders of arrival are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from advisor.errors import InputError

LEADER = 0
MAX_REPLICAS = 4

Path = tuple[int, int]


def leader_paths(replicas: int) -> list[Path]:
    """Paths (from, to) along which records travel with one leader: to each follower."""
    return [(LEADER, follower) for follower in range(1, replicas)]


def all_write_paths(replicas: int) -> list[Path]:
    """Paths where every replica takes writes: from each to each other."""
    nodes = range(replicas)
    return [(source, target) for source in nodes for target in nodes if source != target]


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders of arrival that were tried, and those after which all logs are the same."""

    outcomes: int
    equal: int


def orders(replicas: int, one_leader: bool) -> Orders:
    """Try every order in which one record from each replica's clients reaches the logs.

    Without a leader each replica appends its own client's record first, and the others as they
    arrive.
    """
    if not 2 <= replicas <= MAX_REPLICAS:
        raise InputError(f"replicas={replicas} must lie between 2 and {MAX_REPLICAS}")
    nodes = range(replicas)
    logs: Iterable[Sequence[tuple[int, ...]]]
    if one_leader:
        logs = [[arrived] * replicas for arrived in permutations(nodes)]
    else:
        own_first = [[(own, *rest) for rest in permutations(set(nodes) - {own})] for own in nodes]
        logs = product(*own_first)
    equal = [len(set(outcome)) == 1 for outcome in logs]
    return Orders(len(equal), sum(equal))
